import { createHash } from 'node:crypto'
import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import { isExpired } from '../../access/guard/sessions.ts'
import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { toBrowserName } from '../../base/user-agent.ts'
import { toNameLock } from '../../database/locks.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { toPage, parsePageQuery, type PageQuery } from '../../http/paging.ts'
import { toQrCode } from '../../http/qr-code.ts'
import { openAddress, sealAddress, type PushAddress } from './address.ts'
import type { QuietHours } from './quiet-hours.ts'
import { hastenQuietSummaries } from './quiet-summary.ts'
import type {
  AccountQuietHours,
  Mute,
  NewSubscription,
  PhoneLink,
  Subscription,
  SubscriptionEdit,
} from './subscription-schema.ts'

/** An account and the session of its browser. Ids are uuids. */
export interface Subscriber {
  accountId: string
  sessionId: string
  actor: Actor
}

/** The settings of a device, as `known_devices.push_settings` stores them. */
interface DeviceSettings {
  label: string
  isOn: boolean
  /** The next ones are not stored by 0.3.0. */
  quietHours?: QuietHours[] | null
  mutes?: Mute[]
  hasQuietSummary?: boolean
  letsCriticalThrough?: boolean | null
}

/** A stored subscription of the same session or the same endpoint. */
interface StoredSubscription {
  id: string
  account_id: string
  session_id: string
  address: string
  hash: string
}

/** Returns a page of an account's devices, newest first. */
export async function listSubscriptions(
  sql: Queryable,
  subscriber: Subscriber,
  query: PageQuery,
): Promise<Page<Subscription>> {
  const { after, rows } = parsePageQuery('psh', query)
  const where = after === undefined ? sql`` : sql`and d.id < ${after}`
  const found = await selectSubscriptions(sql, subscriber, where, rows)
  return toPage(found, query, ({ id }) => id)
}

/** Returns a device. Throws `not_found` if the account has no such device. */
export async function getSubscription(
  sql: Queryable,
  subscriber: Subscriber,
  id: string,
): Promise<Subscription> {
  const [found] = await selectSubscriptions(
    sql,
    subscriber,
    sql`and d.id = ${toSubscriptionUuid(id)}`,
    1,
  )
  if (!found) throw subscriptionNotFound()
  return found
}

/**
 * Stores the subscription of a browser, and returns its id. Replaces the previous subscription of
 * the session, and keeps its settings. So it does with those of a subscription of the browser that
 * has ended. Changes only the label if the same subscription is stored already.
 * A browser keeps its endpoint when another account signs in. The subscription then moves to that
 * account if the keys prove that it is the same browser. Throws `conflict` if they do not.
 */
export async function saveSubscription(
  tx: Tx,
  subscriber: Subscriber,
  { endpoint, keys, label }: { endpoint: URL } & Pick<NewSubscription, 'keys' | 'label'>,
  secrets: Secrets,
): Promise<string> {
  const { accountId, sessionId, actor } = subscriber
  const address: PushAddress = {
    endpoint: endpoint.href,
    p256dh: keys.p256dh.replace(/=+$/, ''),
    auth: keys.auth.replace(/=+$/, ''),
  }
  const hash = createHash('sha256').update(address.endpoint).digest('hex')
  const { known, browserId } = await lockStoredSubscriptions(tx, sessionId, hash)
  const own = known.find(row => row.session_id === sessionId)
  const same = known.find(row => row.hash === hash)
  if (same && !isSame(openAddress(secrets, same.id, same.address), address)) {
    // Push services never issue an endpoint twice, so other keys mean another browser.
    if (same.account_id !== accountId) {
      throw new Fault('conflict', 'This endpoint belongs to another browser. Subscribe again')
    }
  } else if (same && same === own) {
    if (label !== undefined) {
      await tx`update push_subscriptions set label = ${label.trim()} where id = ${same.id}`
    }
    return toId('psh', same.id)
  }
  // The previous subscription keeps its label and settings, unless it belonged to another account.
  const kept = own ?? (same?.account_id === accountId ? same : undefined)
  for (const { id } of known.filter(row => row !== kept)) {
    await tx`delete from push_subscriptions where id = ${id}`
  }
  const former = await takeFormerSettings(tx, accountId, browserId)
  const uuid = kept?.id ?? newId('psh').uuid
  const name = label?.trim() ?? null
  const { label: formerName, isOn = true, quietHours, hasQuietSummary = false } = former ?? {}
  const letsCriticalThrough = former?.letsCriticalThrough ?? null
  await tx`
    insert into push_subscriptions as d (
      id, account_id, session_id, browser_id, endpoint_hash, address, host, label, is_on, quiet_hours,
      mutes, has_quiet_summary, lets_critical_through
    )
    values (
      ${uuid}, ${accountId}, ${sessionId}, ${browserId}, decode(${hash}, 'hex'),
      ${sealAddress(secrets, uuid, address)}, ${endpoint.host},
      ${name ?? formerName ?? toBrowserName(actor.userAgent ?? '')}, ${isOn}, ${toJson(quietHours)}::text::jsonb,
      ${toJson(former?.mutes ?? [])}::text::jsonb, ${hasQuietSummary}, ${letsCriticalThrough}
    )
    on conflict (id) do update set
      session_id = excluded.session_id, browser_id = excluded.browser_id, endpoint_hash = excluded.endpoint_hash,
      address = excluded.address, host = excluded.host, label = coalesce(${name}, d.label),
      accepted_at = null, refused_at = null, service_ahead_s = null, refusals = 0, flagged = null
  `
  const id = toId('psh', uuid)
  const action = kept ? 'push.renewed' : 'push.subscribed'
  await writeAudit(tx, actor, { action, target: id, details: { host: endpoint.host } })
  return id
}

/** Changes the given fields. Throws `not_found`. */
export async function editSubscription(
  tx: Tx,
  { accountId, actor }: Subscriber,
  { id, edit }: { id: string; edit: SubscriptionEdit },
): Promise<void> {
  const { label, isOn, quietHours, mutes, hasQuietSummary, letsCriticalThrough } = edit
  const rows = quietHours && toRows(quietHours)
  const edited = await tx`
    update push_subscriptions set
      label = coalesce(${label?.trim() ?? null}, label),
      is_on = coalesce(${isOn ?? null}, is_on),
      lets_critical_through = coalesce(${letsCriticalThrough ?? null}, lets_critical_through),
      has_quiet_summary = coalesce(${hasQuietSummary ?? null}, has_quiet_summary),
      mutes = coalesce(${toJson(mutes)}::text::jsonb, mutes),
      quiet_hours = case when ${rows === undefined} then quiet_hours else ${toJson(rows)}::text::jsonb end
    where id = ${toSubscriptionUuid(id)} and account_id = ${accountId}
  `
  if (edited.count === 0) throw subscriptionNotFound()
  await hastenQuietSummaries(tx, accountId)
  const fields = Object.keys(edit).sort().join(' ')
  await writeAudit(tx, actor, { action: 'push.edited', target: id, details: { fields } })
}

/**
 * Removes a device with its settings. Nothing is pushed to it after the commit. Throws `not_found`.
 */
export async function removeSubscription(
  tx: Tx,
  { accountId, actor }: Subscriber,
  id: string,
): Promise<void> {
  const [removed] = await tx<{ browser_id: string | null }[]>`
    delete from push_subscriptions
    where id = ${toSubscriptionUuid(id)} and account_id = ${accountId}
    returning browser_id
  `
  if (!removed) throw subscriptionNotFound()
  await takeFormerSettings(tx, accountId, removed.browser_id)
  await writeAudit(tx, actor, { action: 'push.unsubscribed', target: id })
}

/** Returns the quiet hours of the devices that have none of their own. */
export async function getQuietHours(
  sql: Queryable,
  { accountId }: Subscriber,
): Promise<AccountQuietHours> {
  const [row] = await sql<AccountQuietHours[]>`
    select coalesce(quiet_hours, '[]') as "quietHours" from accounts where id = ${accountId}
  `
  return row ?? { quietHours: [] }
}

/** Changes them. */
export async function setQuietHours(
  tx: Tx,
  { accountId, actor }: Subscriber,
  { quietHours }: AccountQuietHours,
): Promise<void> {
  const rows = toRows(quietHours)
  await tx`
    update accounts set quiet_hours = ${toJson(rows.length > 0 ? rows : null)}::text::jsonb where id = ${accountId}
  `
  await hastenQuietSummaries(tx, accountId)
  const details = { fields: 'quietHours' }
  await writeAudit(tx, actor, { action: 'push.edited', target: toId('per', accountId), details })
}

/** Returns the link to the page on which a phone subscribes, with its QR code. */
export function toPhoneLink(siteUrl: string): PhoneLink {
  const url = `${siteUrl}/notifications`
  return { url, qr: toQrCode(url) }
}

/** Returns the uuid of a subscription's public id. Throws `not_found`. */
export function toSubscriptionUuid(id: string): string {
  const uuid = parseId('psh', id)
  if (uuid === undefined) throw subscriptionNotFound()
  return uuid
}

export function subscriptionNotFound(): Fault {
  return new Fault('not_found', 'You have no device with this id')
}

/** Returns rows as they are stored. */
function toRows(quietHours: readonly QuietHours[]): QuietHours[] {
  return quietHours.map(({ days, from, to, timeZone }) => ({
    ...{ days: [...new Set(days)].sort(), from, to, timeZone },
  }))
}

function toJson(rows: object[] | null | undefined): string | null {
  return rows ? JSON.stringify(rows) : null
}

/**
 * Returns the subscriptions of this session and of this endpoint, locked, and the id of the
 * browser; null if the session began before browsers had one. Concurrent requests for either of
 * them wait. Throws `signed_out` if the session has ended.
 */
async function lockStoredSubscriptions(
  tx: Tx,
  sessionId: string,
  hash: string,
): Promise<{ known: StoredSubscription[]; browserId: string | null }> {
  const [session] = await tx<{ browser_id: string | null }[]>`
    select browser_id from sessions where id = ${sessionId} for no key update
  `
  if (!session) throw new Fault('signed_out', 'Sign in first')
  await tx`select pg_advisory_xact_lock(${toNameLock(tx, 'push endpoint', hash)})`
  const known = await tx<StoredSubscription[]>`
    select d.id, d.account_id, d.session_id, d.address, encode(d.endpoint_hash, 'hex') as hash
    from push_subscriptions d
    where d.session_id = ${sessionId} or d.endpoint_hash = decode(${hash}, 'hex')
    order by d.id
    for update
  `
  return { known, browserId: session.browser_id }
}

/** Returns the settings of the last subscription of a browser that has ended, and forgets them. */
async function takeFormerSettings(
  tx: Tx,
  accountId: string,
  browserId: string | null,
): Promise<DeviceSettings | null> {
  const [former] = await tx<{ settings: DeviceSettings | null }[]>`
    select push_settings as settings
    from known_devices
    where account_id = ${accountId} and id = ${browserId} and push_settings is not null
    for no key update
  `
  if (!former) return null
  await tx`
    update known_devices set push_settings = null
    where account_id = ${accountId} and id = ${browserId}
  `
  return former.settings
}

function isSame(one: PushAddress, other: PushAddress): boolean {
  return one.p256dh === other.p256dh && one.auth === other.auth
}

async function selectSubscriptions(
  sql: Queryable,
  { accountId, sessionId }: Subscriber,
  where: Fragment,
  limit: number,
): Promise<Subscription[]> {
  const rows = await sql<Subscription[]>`
    select
      d.id, d.label, d.host, d.is_on as "isOn", d.lets_critical_through as "letsCriticalThrough", d.session_id = ${sessionId} as "isCurrent",
      to_iso(d.created_at) as "createdAt", to_iso(d.last_push_at) as "lastPushAt", d.last_outcome as "lastOutcome", d.refusals, d.flagged,
      coalesce(d.quiet_hours, a.quiet_hours) as "quietHours", d.quiet_hours is not null as "ownQuietHours",
      d.mutes, d.has_quiet_summary as "hasQuietSummary",
      exists (
        select
        from memberships m
          join organizations o on o.id = m.organization_id and o.deleted_at is null
        where m.account_id = d.account_id and lacks_second_factor(o.requires_second_factor, s.is_multi_factor)
      ) as "lacksSecondFactor"
    from push_subscriptions d
      join accounts a on a.id = d.account_id
      join sessions s on s.id = d.session_id and not ${isExpired(sql)}
    where d.account_id = ${accountId} ${where}
    order by d.id desc
    limit ${limit}
  `
  return rows.map(row => ({ ...row, id: toId('psh', row.id) }))
}
