import { type AdmittedToken, toEffectiveRole } from '../guard/caller.ts'
import { isAtLeast, ROLES, type Role } from '../guard/permissions.ts'
import { toName } from '../guard/schema.ts'
import type { AdmittedSession } from '../guard/sessions.ts'
import { withdrawInvites } from '../sign-in/ways-in.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import type { Page } from '../../http/envelope.ts'
import { parsePageQuery, toPage, type PageQuery } from '../../http/paging.ts'
import { invalidField } from '../../http/validation.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { hashToken, MANAGEMENT_TOKEN } from '../../base/token-form.ts'
import {
  DEFAULT_DAYS,
  type CurrentToken,
  type ManagementToken,
  type NewManagementToken,
  type TokenBody,
} from './schema.ts'

const MAX_TOKENS = 50

/** The owner of tokens: an account, or an organization. Ids are uuids. */
export type TokenOwner = { accountId: string } | { organizationId: string }

/**
 * Returns the uuids of a token's projects. Throws `InvalidRequest` for a project that the account
 * is no member of, or that is not in the organization.
 */
async function resolveProjects(
  sql: Queryable,
  projects: TokenBody['projects'],
  { accountId, organizationId }: { accountId: string; organizationId: string | null },
): Promise<string[] | null> {
  if (!projects) return null
  const ids = [...new Set(projects)].map(id => parseId('prj', id))
  const found = await sql<{ id: string }[]>`
    select r.id
    from projects r
      join organizations o on o.id = r.organization_id and o.deleted_at is null
      join memberships m on m.organization_id = o.id and m.account_id = ${accountId}
    where r.id = any(${toArray(ids)}::uuid[]) and r.deleted_at is null
      and o.id = coalesce(${organizationId}, o.id)
  `
  if (found.length === ids.length) return found.map(({ id }) => id)
  throw invalidField('projects', 'invalid_value', 'Must name projects that you can open')
}

/**
 * Creates a token of an account, or of an organization. Returns it with its secret, which is not
 * stored. Throws `conflict` if there are too many, and like `resolveProjects`.
 */
export async function createToken(
  tx: Tx,
  { actor, admitted }: { actor: Actor; admitted: AdmittedSession },
  organizationId: string | null,
  { role, projects, expiresInDays = DEFAULT_DAYS, ...body }: TokenBody,
): Promise<NewManagementToken> {
  const accountId = admitted.account.id
  const owner = organizationId === null ? { accountId } : { organizationId }
  const name = toName(body.name)
  const projectIds = await resolveProjects(tx, projects, { accountId, organizationId })
  const [live] = await tx<[{ n: number }]>`
    select count(*)::int as n from management_tokens t where ${isOf(tx, owner)} and is_unexpired(t.expires_at, '365 days')
  `
  if (live.n >= MAX_TOKENS) {
    throw new Fault('conflict', `There can be at most ${MAX_TOKENS} tokens. Withdraw one first.`)
  }
  const { id, uuid } = newId('tok')
  const secret = MANAGEMENT_TOKEN.newToken()
  await tx`
    insert into management_tokens (
      id, hash, last_four, name, account_id, organization_id, role, project_ids,
      is_multi_factor, expires_at
    )
    values (
      ${uuid}, decode(${hashToken(secret)}, 'hex'), ${secret.slice(-4)}, ${name}, ${accountId},
      ${organizationId}, ${role}, ${projectIds && toArray(projectIds)}::uuid[],
      ${admitted.session.isMultiFactor},
      now() + make_interval(days => ${expiresInDays})
    )
  `
  await writeAudit(tx, actor, {
    action: 'token.created',
    ...(organizationId !== null && { organizationId }),
    target: id,
    details: { name, role, projects: projectIds?.length ?? null, expiresInDays },
  })
  return { ...(await getToken(tx, owner, id)), token: secret }
}

/**
 * Throws `forbidden` unless the account has `role` or a higher one in some organization. Otherwise
 * a later promotion of the account would raise the token with it. The lowest role is always
 * allowed.
 */
export async function checkPersonalRole(tx: Tx, accountId: string, role: Role): Promise<void> {
  const rows = await tx<{ role: Role }[]>`
    select m.role
    from memberships m
      join organizations o on o.id = m.organization_id and o.deleted_at is null
    where m.account_id = ${accountId}
  `
  if (role === ROLES[0] || rows.some(row => isAtLeast(row.role, role))) return
  throw new Fault('forbidden', `You have the ${role} role in none of your organizations`)
}

/**
 * Withdraws a token, with the open invites that it made. Its next request is refused by every
 * process. Throws `not_found`.
 */
export async function withdrawToken(
  tx: Tx,
  actor: Actor,
  { owner, id }: { owner: TokenOwner; id: string },
): Promise<void> {
  const [gone] = await tx<{ name: string; account_id: string }[]>`
    delete from management_tokens t
    where ${isOf(tx, owner)} and t.id = ${parseId('tok', id) ?? null}
    returning t.name, t.account_id
  `
  if (!gone) throw tokenNotFound()
  const isOfEndedToken = tx`
    i.token_id is not null and not exists (
      select from management_tokens t where t.id = i.token_id
    )
  `
  await withdrawInvites(tx, actor, tx`i.invited_by = ${gone.account_id} and ${isOfEndedToken}`)
  await writeAudit(tx, actor, {
    action: 'token.withdrawn',
    ...('organizationId' in owner && owner),
    target: id,
    details: { name: gone.name },
  })
}

/** Returns a page of an owner's tokens, newest first. Expired ones stay for 30 days. */
export async function listTokens(
  sql: Queryable,
  owner: TokenOwner,
  query: PageQuery,
): Promise<Page<ManagementToken>> {
  const { after, rows } = parsePageQuery('tok', query)
  const where = sql`${isOf(sql, owner)} ${after ? sql`and t.id < ${after}` : sql``}`
  return toPage(await selectTokens(sql, where, rows), query, ({ id }) => id)
}

/** Returns one token of an owner. Throws `not_found`. */
async function getToken(sql: Queryable, owner: TokenOwner, id: string): Promise<ManagementToken> {
  const where = sql`${isOf(sql, owner)} and t.id = ${parseId('tok', id) ?? null}`
  const [token] = await selectTokens(sql, where, 1)
  if (!token) throw tokenNotFound()
  return token
}

/** Returns the token of a request, with the organizations and projects that it reaches. */
export async function getCurrentToken(
  sql: Queryable,
  { account, token }: AdmittedToken,
): Promise<CurrentToken> {
  const rows = await sql<
    {
      expires_at: Date
      organization_id: string | null
      organization: string
      role: Role
      project_id: string | null
      project: string
    }[]
  >`
    select
      t.expires_at, o.id as organization_id, o.name as organization, m.role, r.id as project_id,
      r.name as project
    from management_tokens t
      left join memberships m on m.account_id = t.account_id
        and m.organization_id = coalesce(t.organization_id, m.organization_id)
      left join organizations o on o.id = m.organization_id and o.deleted_at is null
      left join projects r on r.organization_id = o.id and r.deleted_at is null
        and (t.project_ids is null or r.id = any(t.project_ids))
        and not lacks_second_factor(o.requires_second_factor, t.is_multi_factor)
    where t.id = ${token.id}
    order by o.id, r.id
  `
  const [first] = rows
  if (!first) throw new Fault('signed_out', 'The management token was withdrawn')
  const organizations = new Map<string, CurrentToken['organizations'][number]>()
  for (const row of rows) {
    if (row.organization_id === null || (token.isLimited && row.project_id === null)) continue
    const id = toId('org', row.organization_id)
    const role = toEffectiveRole(row.role, token)
    const known = organizations.get(id) ?? { id, name: row.organization, role, projects: [] }
    organizations.set(id, known)
    if (row.project_id !== null) {
      known.projects.push({ id: toId('prj', row.project_id), name: row.project })
    }
  }
  return {
    id: toId('tok', token.id),
    name: token.name,
    kind: token.kind,
    role: token.role,
    createdBy: { id: toId('per', account.id), name: account.name },
    expiresAt: first.expires_at.toISOString(),
    organizations: [...organizations.values()],
  }
}

async function selectTokens(
  sql: Queryable,
  where: Fragment,
  limit: number,
): Promise<ManagementToken[]> {
  // Deleted projects, and those left since, are not among the projects.
  const rows = await sql<ManagementToken[]>`
    select
      t.id, t.name, ${MANAGEMENT_TOKEN.prefix} as prefix, t.last_four as "lastFour", t.role,
      case when t.project_ids is not null then (
        select coalesce(json_agg(json_build_object('id', r.id, 'name', r.name) order by r.id), '[]')
        from projects r
          join memberships m on m.organization_id = r.organization_id and m.account_id = t.account_id
        where r.id = any(t.project_ids) and r.deleted_at is null
      ) end as projects,
      json_build_object('id', p.id, 'name', p.name) as "createdBy", to_iso(t.created_at) as "createdAt",
      to_iso(t.last_used_at) as "lastUsedAt", to_iso(t.expires_at) as "expiresAt",
      not is_unexpired(t.expires_at, '365 days') as "isExpired"
    from management_tokens t
      join accounts p on p.id = t.account_id
    where ${where}
    order by t.id desc
    limit ${limit}
  `
  return rows.map(row => ({
    ...row,
    id: toId('tok', row.id),
    projects: row.projects?.map(({ id, name }) => ({ id: toId('prj', id), name })) ?? null,
    createdBy: { id: toId('per', row.createdBy.id), name: row.createdBy.name },
  }))
}

/** The SQL condition that the token `t` belongs to an owner. */
function isOf(sql: Queryable, owner: TokenOwner): Fragment {
  return 'organizationId' in owner
    ? sql`t.organization_id = ${owner.organizationId}`
    : sql`t.account_id = ${owner.accountId} and t.organization_id is null`
}

function tokenNotFound(): Fault {
  return new Fault('not_found', 'No token has this id')
}
