import { isExpired } from '../accounts/sessions.ts'
import { writeAudit, type Actor } from '../audit/audit.ts'
import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import type { Page } from '../http/envelope.ts'
import { toPage, toSlice, type PageQuery } from '../http/paging.ts'
import { parseId, toId } from '../ids.ts'
import type { SealedTable } from '../secrets/rotation.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { parseTime, toTime } from './quiet.ts'
import type { Subscription, SubscriptionEdit } from './schema.ts'

/** The columns that are sealed, for the rotation of the APP_SECRET. */
export const SEALED_SUBSCRIPTIONS = {
  table: 'push_subscriptions',
  columns: ['address'],
} as const satisfies SealedTable

/** Where a push goes, and for whom it is encrypted: all of it is secret. */
export interface Address {
  endpoint: string
  p256dh: string
  auth: string
}

/** Whose subscriptions, and in which browser; uuids. */
export interface Subscriber {
  personId: string
  sessionId: string
  actor: Actor
}

interface Row {
  id: string
  session_id: string
  label: string
  host: string
  is_on: boolean
  quiet_from: number | null
  quiet_to: number | null
  quiet_zone: string | null
  created_at: Date
  last_push_at: Date | null
  last_outcome: string | null
  refusals: number
  flagged: string | null
}

/** A page of a person's devices, newest first. */
export async function listSubscriptions(
  sql: Queryable,
  subscriber: Subscriber,
  query: PageQuery,
): Promise<Page<Subscription>> {
  const { after, rows } = toSlice('psh', query)
  const where = after === undefined ? sql`` : sql`and d.id < ${after}`
  const found = await selectSubscriptions(sql, subscriber, where, rows)
  return toPage(found, query, ({ id }) => id)
}

/** Throws `not_found` for one that is not the person's. */
export async function getSubscription(
  sql: Queryable,
  subscriber: Subscriber,
  id: string,
): Promise<Subscription> {
  const [found] = await selectSubscriptions(sql, subscriber, sql`and d.id = ${toUuid(id)}`, 1)
  if (!found) throw noSubscription()
  return found
}

/** Changes what is given. */
export async function editSubscription(
  tx: Tx,
  { personId, actor }: Subscriber,
  { id, edit }: { id: string; edit: SubscriptionEdit },
): Promise<void> {
  const { label, isOn, quietHours } = edit
  const [from, to] = [parseTime(quietHours?.from ?? ''), parseTime(quietHours?.to ?? '')]
  const isKept = quietHours === undefined
  const edited = await tx`
    update push_subscriptions set
      label = coalesce(${label?.trim() ?? null}, label),
      is_on = coalesce(${isOn ?? null}, is_on),
      quiet_from = case when ${isKept} then quiet_from else ${from ?? null}::int end,
      quiet_to = case when ${isKept} then quiet_to else ${to ?? null}::int end,
      quiet_zone = case when ${isKept} then quiet_zone else ${quietHours?.timeZone ?? null}::text end
    where id = ${toUuid(id)} and person_id = ${personId}
  `
  if (edited.count === 0) throw noSubscription()
  const fields = Object.keys(edit).sort().join(' ')
  await writeAudit(tx, actor, { action: 'push.edited', target: id, details: { fields } })
}

/** Nothing is pushed to it from the commit on. */
export async function removeSubscription(
  tx: Tx,
  { personId, actor }: Subscriber,
  id: string,
): Promise<void> {
  const removed = await tx`
    delete from push_subscriptions where id = ${toUuid(id)} and person_id = ${personId}
  `
  if (removed.count === 0) throw noSubscription()
  await writeAudit(tx, actor, { action: 'push.unsubscribed', target: id })
}

/** An address as the database keeps it, for the subscription with this uuid. */
export function sealAddress(secrets: Secrets, id: string, address: Address): string {
  return secrets.seal(JSON.stringify(address), toPlace(id))
}

/** The address of the subscription with this uuid. */
export function openAddress(secrets: Secrets, id: string, sealed: string): Address {
  return JSON.parse(secrets.open(sealed, toPlace(id))) as Address // As sealAddress has it.
}

/** The uuid in a subscription's id. Throws `not_found`. */
export function toUuid(id: string): string {
  const uuid = parseId('psh', id)
  if (uuid === undefined) throw noSubscription()
  return uuid
}

export function noSubscription(): Fault {
  return new Fault('not_found', 'No device of yours has this id')
}

async function selectSubscriptions(
  sql: Queryable,
  { personId, sessionId }: Subscriber,
  where: Fragment,
  limit: number,
): Promise<Subscription[]> {
  const rows = await sql<Row[]>`
    select
      d.id, d.session_id, d.label, d.host, d.is_on, d.quiet_from, d.quiet_to, d.quiet_zone, d.created_at,
      d.last_push_at, d.last_outcome, d.refusals, d.flagged
    from push_subscriptions d
      join sessions s on s.id = d.session_id and not ${isExpired(sql)}
    where d.person_id = ${personId} ${where}
    order by d.id desc
    limit ${limit}
  `
  return rows.map(row => ({
    id: toId('psh', row.id),
    label: row.label,
    host: row.host,
    isOn: row.is_on,
    isCurrent: row.session_id === sessionId,
    quietHours:
      row.quiet_from === null || row.quiet_to === null || row.quiet_zone === null
        ? null
        : { from: toTime(row.quiet_from), to: toTime(row.quiet_to), timeZone: row.quiet_zone },
    createdAt: row.created_at.toISOString(),
    lastPushAt: row.last_push_at?.toISOString() ?? null,
    lastOutcome: row.last_outcome,
    refusals: row.refusals,
    flagged: row.flagged,
  }))
}

function toPlace(rowId: string) {
  return { table: SEALED_SUBSCRIPTIONS.table, column: SEALED_SUBSCRIPTIONS.columns[0], rowId }
}
