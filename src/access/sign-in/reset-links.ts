import { SERVER, writeAudit, type Actor, type AuditRecord } from '../audit/audit.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import type { Page } from '../../http/envelope.ts'
import { parsePageQuery, toPage, type PageQuery } from '../../http/paging.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { lockAccount } from './account.ts'
import type { OpenResetLink } from './schema.ts'
import { requirePasswords } from './credentials.ts'
import { hashSecret, newSecret } from '../guard/secret.ts'
import { endSessions } from '../guard/sessions.ts'
import { forgetDevices, rememberDevice } from './sign-in.ts'
import { clearAccountFailures } from './throttle.ts'
import { removeOtherWaysIn } from './ways-in.ts'

export interface ResetLink {
  id: string
  /** For `BASE_URL/reset#token`. It is not stored. */
  token: string
  expiresAt: Date
}

/** An owner who creates a link, and the organization in which they may. */
interface LinkCreator {
  accountId: string
  organizationId: string
}

/** A row of reset_links. */
export interface Link {
  account_id: string
  organization_id: string | null
}

/** Actions of the audit log of the installation, and of the log of the organization. */
const AUDIT_ACTIONS = {
  created: ['reset.created', 'member.resetLinkCreated'],
  used: ['password.reset', 'member.resetLinkUsed'],
  withdrawn: ['reset.withdrawn', 'member.resetLinkWithdrawn'],
  expired: ['reset.expired', 'member.resetLinkExpired'],
} as const

/**
 * Creates a link that sets an account's password, once and within an hour. The link gives full
 * control of the account. Withdraws older links of the account, and resets its failed sign-ins.
 * Throws `not_found`.
 */
export async function createResetLink(
  tx: Tx,
  actor: Actor,
  accountId: string,
  creator?: LinkCreator,
): Promise<ResetLink> {
  const { email } = await lockAccount(tx, accountId)
  await withdrawResetLinks(tx, actor, accountId)
  const { id, uuid } = newId('rst')
  const token = newSecret(256)
  const [link] = await tx<[Link & { expires_at: Date }]>`
    insert into reset_links (id, hash, account_id, expires_at, created_by, organization_id)
    values (
      ${uuid}, decode(${hashSecret(token)}, 'hex'), ${accountId}, now() + interval '1 hour',
      ${creator?.accountId ?? null}, ${creator?.organizationId ?? null}
    )
    returning account_id, organization_id, expires_at
  `
  await clearAccountFailures(tx, email)
  await audit(tx, actor, 'created', { link })
  return { id, token, expiresAt: link.expires_at }
}

/**
 * Creates a reset link for an owner. The caller has locked the memberships of the account. Throws
 * `forbidden` unless the owner may reset this account.
 */
export async function createOwnersResetLink(
  tx: Tx,
  actor: Actor,
  { accountId, creator }: { accountId: string; creator: LinkCreator },
): Promise<ResetLink> {
  await requirePasswords(tx)
  const [right] = await tx<[{ is_allowed: boolean }]>`
    select ${mayReset(tx, {
      creator: tx`${creator.accountId}::uuid`,
      organization: tx`${creator.organizationId}::uuid`,
      account: tx`${accountId}::uuid`,
    })} as is_allowed
  `
  if (right.is_allowed) return createResetLink(tx, actor, accountId, creator)
  throw new Fault(
    'forbidden',
    'This account has access to more than you own. Ask the operator of the server to run `tidings owner reset`.',
  )
}

/** Returns the account of a valid link whose creator may still create it. The link stays valid. */
export async function findResetAccount(
  sql: Queryable,
  token: string,
): Promise<{ accountId: string; name: string; email: string } | undefined> {
  const [row] = await sql<{ id: string; name: string; email: string }[]>`
    select p.id, p.name, p.email
    from reset_links r
      join accounts p on p.id = r.account_id
    where r.hash = decode(${hashSecret(token)}, 'hex') and is_unexpired(r.expires_at, '1 hour') and ${isCreatorAllowed(sql)}
  `
  return row && { accountId: row.id, name: row.name, email: row.email }
}

/**
 * Sets the password of an account, removes its passkeys and codes, and deletes the link. Ends all
 * sessions of the account, and the invites and reset links that it made. Forgets its known browsers
 * except the requesting one, whose secret is `device`. Returns undefined if the link has ended, or
 * if its creator may no longer create it.
 */
export async function resetPassword(
  tx: Tx,
  actor: Actor,
  reset: { token: string; accountId: string; passwordHash: string; device: string | undefined },
): Promise<{ email: string; device: string } | undefined> {
  const { token, accountId, passwordHash } = reset
  await lockMemberships(tx, accountId)
  const [link] = await tx<Link[]>`
    delete from reset_links r
    where r.hash = decode(${hashSecret(token)}, 'hex') and r.account_id = ${accountId}
      and is_unexpired(r.expires_at, '1 hour') and ${isCreatorAllowed(tx)}
    returning r.account_id, r.organization_id
  `
  if (!link) return undefined
  if (link.organization_id !== null) await requirePasswords(tx)
  const [{ email }] = await tx<[{ email: string }]>`
    update accounts set
      password_hash = ${passwordHash},
      is_password_from_machine = ${link.organization_id === null}
    where id = ${accountId}
    returning email
  `
  // Somebody else may have made them, or the account may have lost them.
  await removeOtherWaysIn(tx, actor, accountId)
  const sessionsEnded = await endSessions(tx, accountId)
  await withdrawAllLinks(tx, actor, accountId)
  // The requesting browser becomes a known one, so that failures elsewhere do not delay it.
  await clearAccountFailures(tx, email)
  await forgetDevices(tx, accountId)
  const device = await rememberDevice(tx, accountId, reset.device)
  await audit(tx, actor, 'used', { link, details: { sessionsEnded } })
  return { email, device: device.secret }
}

/**
 * Returns a page of the open links that owners of an organization see, newest first: those that
 * were created in it, and those of members whose password the caller may reset.
 */
export async function listResetLinks(
  sql: Queryable,
  caller: LinkCreator,
  query: PageQuery,
): Promise<Page<OpenResetLink>> {
  const { after, rows: limit } = parsePageQuery('rst', query)
  const rows = await sql<OpenResetLink[]>`
    select
      r.id, json_build_object('id', p.id, 'name', p.name) as person, c.name as "createdBy",
      to_iso(r.created_at) as "createdAt", to_iso(r.expires_at) as "expiresAt"
    from memberships m
      join reset_links r on r.account_id = m.account_id
      join accounts p on p.id = r.account_id
      left join accounts c on c.id = r.created_by
    where m.organization_id = ${caller.organizationId} and ${after ? sql`r.id < ${after}` : sql`true`}
      and is_unexpired(r.expires_at, '1 hour') and ${isCreatorAllowed(sql)} and ${isVisible(sql, caller)}
    order by r.id desc
    limit ${limit}
  `
  const links = rows.map(row => ({
    ...row,
    id: toId('rst', row.id),
    person: { ...row.person, id: toId('per', row.person.id) },
  }))
  return toPage(links, query, ({ id }) => id)
}

/** Withdraws an open link that the caller sees in `listResetLinks`. Throws `not_found`. */
export async function withdrawResetLink(
  tx: Tx,
  actor: Actor,
  { caller, id }: { caller: LinkCreator; id: string },
): Promise<void> {
  const { organizationId } = caller
  const withdrawn = await withdraw(
    tx,
    actor,
    tx`
      r.id = ${parseId('rst', id) ?? null} and is_unexpired(r.expires_at, '1 hour') and ${isVisible(tx, caller)}
    `,
    organizationId,
  )
  if (withdrawn === 0) throw new Fault('not_found', 'No open reset link has this id')
}

/** Writes the audit entries of expired links that were deleted. */
export async function auditExpiredLinks(tx: Tx, links: readonly Link[]): Promise<void> {
  for (const link of links) await audit(tx, SERVER, 'expired', { link })
}

/** Withdraws the links of an account, and those that it made. */
export async function withdrawAllLinks(tx: Tx, actor: Actor, accountId: string): Promise<void> {
  await withdraw(tx, actor, tx`r.account_id = ${accountId} or r.created_by = ${accountId}`)
}

/** Withdraws all links of an account. */
export async function withdrawResetLinks(tx: Tx, actor: Actor, accountId: string): Promise<void> {
  await withdraw(tx, actor, tx`r.account_id = ${accountId}`)
}

/**
 * Withdraws links after the memberships of an account have changed: those that owners created for
 * it, and those that it created and could no longer create.
 */
export async function withdrawLinksOfMember(
  tx: Tx,
  actor: Actor,
  accountId: string,
): Promise<void> {
  const ofOwners = tx`r.created_by is not null and r.account_id = ${accountId}`
  const own = tx`r.created_by = ${accountId} and not ${isCreatorAllowed(tx)}`
  await withdraw(tx, actor, tx`${ofOwners} or ${own}`)
}

/** Withdraws the links that owners of an organization created. */
export async function withdrawLinksOfOrganization(
  tx: Tx,
  actor: Actor,
  organizationId: string,
): Promise<void> {
  await withdraw(tx, actor, tx`r.organization_id = ${organizationId}`)
}

/**
 * Deletes links, and returns their number. The audit entry of a link from the command line goes to
 * the log of `organizationId`, if it is given.
 */
async function withdraw(
  tx: Tx,
  actor: Actor,
  where: Fragment,
  organizationId: string | null = null,
): Promise<number> {
  const withdrawn = await tx<(Link & { was_live: boolean })[]>`
    delete from reset_links r
    where ${where}
    returning r.account_id, coalesce(r.organization_id, ${organizationId}) as organization_id,
      is_unexpired(r.expires_at, '1 hour') as was_live
  `
  // The sweep may not have deleted an expired link yet.
  await auditExpiredLinks(
    tx,
    withdrawn.filter(link => !link.was_live),
  )
  for (const link of withdrawn) if (link.was_live) await audit(tx, actor, 'withdrawn', { link })
  return withdrawn.length
}

/** The SQL condition that `listResetLinks` shows the link `r` to an owner. */
function isVisible(sql: Queryable, { accountId, organizationId }: LinkCreator): Fragment {
  return sql`(
    r.organization_id = ${organizationId} or ${mayReset(sql, {
      creator: sql`${accountId}::uuid`,
      organization: sql`${organizationId}::uuid`,
      account: sql`r.account_id`,
    })}
  )`
}

/**
 * Locks accounts until the transaction ends, so that they cannot join an organization meanwhile.
 */
export async function lockMemberships(tx: Tx, ...accountIds: string[]): Promise<void> {
  // A new membership references the row, and waits only for `for update`. The order prevents a
  // deadlock of two owners who reset each other.
  await tx`
    select from accounts where id = any(${toArray(accountIds)}::uuid[]) order by id for update
  `
}

/**
 * The SQL condition that the creator of the link `r` could create it now. The command line always
 * can.
 */
function isCreatorAllowed(sql: Queryable): Fragment {
  const rule = mayReset(sql, {
    creator: sql`r.created_by`,
    organization: sql`r.organization_id`,
    account: sql`r.account_id`,
  })
  return sql`(r.created_by is null or ${rule})`
}

/**
 * The SQL condition that `creator` may reset `account`. A link gives control of the whole account.
 * Therefore the account must be a member of `organization`, and the creator an owner of every
 * organization of the account. Only operators can reset operators.
 */
function mayReset(
  sql: Queryable,
  { creator, organization, account }: Record<'creator' | 'organization' | 'account', Fragment>,
): Fragment {
  const memberships = sql`
    memberships theirs
      join organizations o on o.id = theirs.organization_id and o.deleted_at is null
  `
  return sql`(
    exists (
      select
      from ${memberships}
      where theirs.account_id = ${account} and theirs.organization_id = ${organization}
    )
    and not exists (
      select
      from ${memberships}
        left join memberships own
          on own.organization_id = theirs.organization_id and own.account_id = ${creator}
      where theirs.account_id = ${account} and own.role is distinct from 'owner'
    )
    and exists (
      select
      from accounts a
        join accounts c on c.id = ${creator}
      where a.id = ${account} and (c.is_operator or not a.is_operator)
    )
  )`
}

/** Writes to the audit logs of the installation and of the link's organization, if it has one. */
async function audit(
  tx: Tx,
  actor: Actor,
  event: keyof typeof AUDIT_ACTIONS,
  { link, details = {} }: { link: Link; details?: NonNullable<AuditRecord['details']> },
): Promise<void> {
  const [action, organizationAction] = AUDIT_ACTIONS[event]
  const { account_id, organization_id: organizationId } = link
  const target = toId('per', account_id)
  await writeAudit(tx, actor, { action, target, details })
  if (organizationId === null) return
  await writeAudit(tx, actor, { action: organizationAction, organizationId, target })
}
