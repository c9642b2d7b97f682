import { writeAudit, type Actor, type AuditRecord } from '../audit/audit.ts'
import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { toId } from '../ids.ts'
import { lockAccount } from './account.ts'
import { hashSecret, newSecret } from './secret.ts'
import { endSessions } from './sessions.ts'
import { forgetDevices, rememberDevice } from './sign-in.ts'
import { clearAccountFailures } from './throttle.ts'

export interface ResetLink {
  /** For `BASE_URL/reset#token`. It is returned here and stored nowhere. */
  token: string
  expiresAt: Date
}

/** An owner, and the organization in whose name they make a link. */
interface LinkCreator {
  accountId: string
  organizationId: string
}

interface Link {
  account_id: string
  organization_id: string | null
}

/** An event in the life of a link, as the audit logs of the installation and of the link's organization name it. */
const AUDITED = {
  created: ['reset.created', 'member.resetLinkCreated'],
  used: ['password.reset', 'member.resetLinkUsed'],
  withdrawn: ['reset.withdrawn', 'member.resetLinkWithdrawn'],
} as const

/**
 * Makes a link that sets a new password of an account once, within an hour. Withdraws older links of the account and
 * forgets its failed sign-ins. The link gives control of the account. Throws `not_found`.
 */
export async function createResetLink(
  tx: Tx,
  actor: Actor,
  accountId: string,
  creator?: LinkCreator,
): Promise<ResetLink> {
  const { email } = await lockAccount(tx, accountId)
  await withdrawResetLinks(tx, actor, accountId)
  const token = newSecret(256)
  const [link] = await tx<[Link & { expires_at: Date }]>`
    insert into reset_links (hash, account_id, expires_at, created_by, organization_id)
    values (
      decode(${hashSecret(token)}, 'hex'), ${accountId}, now() + interval '1 hour',
      ${creator?.accountId ?? null}, ${creator?.organizationId ?? null}
    )
    returning account_id, organization_id, expires_at
  `
  await clearAccountFailures(tx, email)
  await audit(tx, actor, 'created', { link })
  return { token, expiresAt: link.expires_at }
}

/** Makes such a link in the name of an owner. Throws `forbidden` unless they may reset this account. */
export async function createOwnersResetLink(
  tx: Tx,
  actor: Actor,
  { accountId, maker }: { accountId: string; maker: LinkCreator },
): Promise<ResetLink> {
  await lockMemberships(tx, accountId)
  const [right] = await tx<[{ holds: boolean }]>`
    select ${mayReset(tx, {
      maker: tx`${maker.accountId}::uuid`,
      organization: tx`${maker.organizationId}::uuid`,
      account: tx`${accountId}::uuid`,
    })} as holds
  `
  if (right.holds) return createResetLink(tx, actor, accountId, maker)
  throw new Fault(
    'forbidden',
    'This account opens more than you own: ask the operator of the server, who runs `tidings owner reset`',
  )
}

/** The account of a live link whose maker still has the right to make it. The link stays usable. */
export async function findResetAccount(
  sql: Queryable,
  token: string,
): Promise<{ accountId: string; name: string; email: string } | undefined> {
  const [row] = await sql<{ id: string; name: string; email: string }[]>`
    select p.id, p.name, p.email
    from reset_links r
      join accounts p on p.id = r.account_id
    where r.hash = decode(${hashSecret(token)}, 'hex') and r.expires_at > now() and ${isCreatorAllowed(sql)}
  `
  return row && { accountId: row.id, name: row.name, email: row.email }
}

/**
 * Sets the password of an account by a link, which is used up, and ends all sessions of the account. Its browsers are no
 * longer known, but for the one that asks, whose secret was `device`. Returns undefined for a link that is no longer
 * live, or whose maker lost the right to make it.
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
      and r.expires_at > now() and ${isCreatorAllowed(tx)}
    returning r.account_id, r.organization_id
  `
  if (!link) return undefined
  const [{ email }] = await tx<[{ email: string }]>`
    update accounts set password_hash = ${passwordHash} where id = ${accountId} returning email
  `
  const sessionsEnded = await endSessions(tx, accountId)
  await withdrawResetLinks(tx, actor, accountId)
  // Others may guess on: this browser belongs to the account, and their failures do not delay it.
  await clearAccountFailures(tx, email)
  await forgetDevices(tx, accountId)
  const device = await rememberDevice(tx, accountId, reset.device)
  await audit(tx, actor, 'used', { link, details: { sessionsEnded } })
  return { email, device }
}

/** Ends every open link of an account. */
export async function withdrawResetLinks(tx: Tx, actor: Actor, accountId: string): Promise<void> {
  await withdraw(tx, actor, tx`r.account_id = ${accountId}`)
}

/**
 * Ends the links that depend on the memberships of an account, after these have changed: links that owners made for it,
 * and links that it made and could not make any more.
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

/** Ends the links that were made in the name of an organization. */
export async function withdrawLinksOfOrganization(
  tx: Tx,
  actor: Actor,
  organizationId: string,
): Promise<void> {
  await withdraw(tx, actor, tx`r.organization_id = ${organizationId}`)
}

async function withdraw(tx: Tx, actor: Actor, where: Fragment): Promise<void> {
  const withdrawn = await tx<(Link & { was_live: boolean })[]>`
    delete from reset_links r
    where ${where}
    returning r.account_id, r.organization_id, r.expires_at > now() as was_live
  `
  for (const link of withdrawn) if (link.was_live) await audit(tx, actor, 'withdrawn', { link })
}

/** Locks an account until the transaction ends: it joins no organization meanwhile. */
async function lockMemberships(tx: Tx, accountId: string): Promise<void> {
  // A new membership refers to the row, so it waits for `for update` and not for a weaker lock.
  await tx`select from accounts where id = ${accountId} for update`
}

/** The condition under which the maker of the link `r` could make it now. The command line always may. */
function isCreatorAllowed(sql: Queryable): Fragment {
  const rule = mayReset(sql, {
    maker: sql`r.created_by`,
    organization: sql`r.organization_id`,
    account: sql`r.account_id`,
  })
  return sql`(r.created_by is null or ${rule})`
}

/**
 * The condition under which an owner may reset an account. A link hands over the whole account, and what it opens
 * elsewhere: the account must belong to the organization in whose name the maker acts, and the maker must own every
 * organization of the account. Only an operator resets an operator.
 */
function mayReset(
  sql: Queryable,
  { maker, organization, account }: Record<'maker' | 'organization' | 'account', Fragment>,
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
          on own.organization_id = theirs.organization_id and own.account_id = ${maker}
      where theirs.account_id = ${account} and own.role is distinct from 'owner'
    )
    and exists (
      select
      from accounts p
        join accounts m on m.id = ${maker}
      where p.id = ${account} and (m.is_operator or not p.is_operator)
    )
  )`
}

/** Writes to the log of the installation, and to that of the organization in whose name the link was made. */
async function audit(
  tx: Tx,
  actor: Actor,
  what: keyof typeof AUDITED,
  { link, details = {} }: { link: Link; details?: NonNullable<AuditRecord['details']> },
): Promise<void> {
  const [action, organizationAction] = AUDITED[what]
  const { account_id, organization_id: organizationId } = link
  const target = toId('per', account_id)
  await writeAudit(tx, actor, { action, target, details })
  if (organizationId === null) return
  await writeAudit(tx, actor, { action: organizationAction, organizationId, target })
}
