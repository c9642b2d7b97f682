import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import { writeAudit } from '../audit/audit.ts'
import { requireVerifiedFor } from '../guard/authorize.ts'
import { ACTIONS, isAtLeast, ROLES, type Role } from '../guard/permissions.ts'
import type { InvitePreview, Invite } from './schema.ts'
import { hashSecret, isSecret, newSecret } from '../guard/secret.ts'
import { withdrawLinksOfMember } from '../sign-in/reset-links.ts'
import { withdrawInvites } from '../sign-in/ways-in.ts'
import { lockOrganization, type OrganizationCall } from './organizations.ts'

const MAX_OPEN = 100
const RANKS = toArray(ROLES)

/** An open invite, as the holder of its token sees it. */
export interface LiveInvite extends InvitePreview {
  organizationId: string
}

/**
 * Creates an invite that is valid for 7 days, and ends with the management token that makes it. Its
 * role cannot be higher than the caller's. The secret of its link is not stored.
 */
export async function createInvite(
  tx: Tx,
  call: OrganizationCall,
  { role, email }: { role: Role; email: string | null },
): Promise<{ id: string; token: string; expiresAt: Date }> {
  const { organizationId, actor, admitted } = call
  const ownRole = await lockOrganization(tx, call, 'invites.create')
  if (!isAtLeast(ownRole, role)) {
    throw new Fault('forbidden', `You cannot invite as ${role}. Your own role is ${ownRole}.`)
  }
  requireVerifiedFor(role, admitted)
  const [found] = await tx<[{ open: number; is_member: boolean }]>`
    select
      (
        select count(*)::int
        from invites i
        where i.organization_id = ${organizationId} and is_unexpired(i.expires_at, '7 days')
      ) as open,
      exists (
        select
        from memberships m
          join accounts p on p.id = m.account_id
        where m.organization_id = ${organizationId} and p.email = ${email}
      ) as is_member
  `
  if (found.is_member) {
    throw new Fault('conflict', 'A member of the organization has this e-mail address')
  }
  if (found.open >= MAX_OPEN) {
    throw new Fault(
      'conflict',
      `An organization can have at most ${MAX_OPEN} open invites. Withdraw one first.`,
    )
  }
  const { id, uuid } = newId('inv')
  const token = newSecret(256)
  const tokenId = admitted.token?.id ?? null
  const [created] = await tx<[{ expires_at: Date }]>`
    insert into invites (
      id, organization_id, hash, role, email, invited_by, token_id, expires_at
    )
    values (
      ${uuid}, ${organizationId}, decode(${hashSecret(token)}, 'hex'), ${role}, ${email},
      ${admitted.account.id}, ${tokenId},
      least(
        now() + interval '7 days', (select expires_at from management_tokens where id = ${tokenId})
      )
    )
    returning expires_at
  `
  await writeAudit(tx, actor, {
    action: 'invite.created',
    organizationId,
    target: id,
    details: { role, isBound: email !== null },
  })
  return { id, token, expiresAt: created.expires_at }
}

/** Returns a page of an organization's open invites, newest first. */
export async function listInvites(
  sql: Queryable,
  organizationId: string,
  query: PageQuery,
): Promise<Page<Invite>> {
  const { after, rows: limit } = parsePageQuery('inv', query)
  const where = sql`i.organization_id = ${organizationId} ${after ? sql`and i.id < ${after}` : sql``}`
  const rows = await selectLive(sql, where, limit)
  const invites = rows.map(({ organizationId: _, organization: __, ...invite }) => ({
    ...invite,
    id: toId('inv', invite.id),
  }))
  return toPage(invites, query, ({ id }) => id)
}

/** Withdraws an open invite. Throws `not_found`. */
export async function withdrawInvite(tx: Tx, call: OrganizationCall, id: string): Promise<void> {
  const { organizationId, actor } = call
  await lockOrganization(tx, call, 'invites.withdraw')
  const where = tx`i.organization_id = ${organizationId} and i.id = ${parseId('inv', id) ?? null}`
  if ((await withdrawInvites(tx, actor, where)) > 0) return
  throw new Fault('not_found', 'No open invite has this id')
}

/**
 * Withdraws what an account may no longer pass on after its role in an organization has changed or
 * ended: the invites that it created, and the reset links of `withdrawLinksOfMember`.
 */
export async function withdrawDisallowed(
  tx: Tx,
  { organizationId, actor }: Pick<OrganizationCall, 'organizationId' | 'actor'>,
  accountId: string,
): Promise<void> {
  const isAllowed = tx`exists (
    select
    from memberships m
    where m.organization_id = i.organization_id and m.account_id = i.invited_by and ${mayInvite(tx)}
  )`
  const where = tx`
    i.organization_id = ${organizationId} and i.invited_by = ${accountId} and not ${isAllowed}
  `
  await withdrawInvites(tx, actor, where)
  await withdrawLinksOfMember(tx, actor, accountId)
}

/**
 * Returns the open invite with this token. An invite ends when it is used, withdrawn or expired, or
 * when its creator may no longer invite. It also ends with the management token that made it.
 */
export async function findInvite(sql: Queryable, token: string): Promise<LiveInvite | undefined> {
  if (!isSecret(token)) return undefined
  const [row] = await selectLive(sql, sql`i.hash = decode(${hashSecret(token)}, 'hex')`, 1)
  if (!row) return undefined
  const { organizationId, organization, role, invitedBy, email, expiresAt } = row
  return {
    ...{ organizationId, role, email, expiresAt },
    organization: { name: organization },
    invitedBy: { name: invitedBy },
  }
}

/**
 * Returns an open invite. Locks its organization until the transaction ends, so that only one of
 * concurrent calls gets the invite.
 */
export async function lockInvite(tx: Tx, token: string): Promise<LiveInvite | undefined> {
  const seen = await findInvite(tx, token)
  if (!seen) return undefined
  await tx`select from organizations where id = ${seen.organizationId} for no key update`
  return findInvite(tx, token)
}

/** Deletes an invite that `lockInvite` has returned. */
export async function deleteInvite(tx: Tx, token: string): Promise<void> {
  await tx`delete from invites where hash = decode(${hashSecret(token)}, 'hex')`
}

async function selectLive(sql: Queryable, where: Fragment, limit: number) {
  return await sql<(Invite & { organizationId: string; organization: string })[]>`
    select
      i.id, i.organization_id as "organizationId", o.name as organization, i.role, i.email,
      p.name as "invitedBy", to_iso(i.created_at) as "createdAt", to_iso(i.expires_at) as "expiresAt"
    from invites i
      join organizations o on o.id = i.organization_id and o.deleted_at is null
      join memberships m on m.organization_id = i.organization_id and m.account_id = i.invited_by
      join accounts p on p.id = m.account_id
    where ${where} and is_unexpired(i.expires_at, '7 days') and ${mayInvite(sql)}
    order by i.id desc
    limit ${limit}
  `
}

/** The SQL condition that the membership `m` may create the invite `i`, with the same token. */
function mayInvite(sql: Queryable): Fragment {
  return sql`
    (i.token_id is null or exists (select from management_tokens t where t.id = i.token_id))
    and array_position(${RANKS}::text[], m.role) >= greatest(
      array_position(${RANKS}::text[], i.role),
      array_position(${RANKS}::text[], ${ACTIONS['invites.create'].role})
    )
  `
}
