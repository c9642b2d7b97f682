import { Fault } from '../../base/errors.ts'
import { NIL_UUID, toId, UUID_PATTERN } from '../../base/ids.ts'
import type { Fragment, Queryable } from '../../database/sql.ts'
import type { Page } from '../../http/envelope.ts'
import { DEFAULT_PAGE_LIMIT, parseCursor, toCursor, toPage } from '../../http/paging.ts'
import {
  isDispatching,
  KIND_NAMES,
  TARGET_PREFIX,
  type DeliveryKind,
  type KindName,
} from './delivery-kind.ts'
import type { Delivery, EventDeliveries, EventDeliveriesQuery } from './delivery-schema.ts'

const KIND = new RegExp(`^(${KIND_NAMES.join('|')})$`)
/** The rank of a delivery in a cursor: 0 for pending, 1 for ended. */
const RANK = /^[01]$/

export interface DeliveryRow {
  id: string
  event_id: string
  kind: KindName
  target_id: string | null
  state: Delivery['state']
  attempts: number
  latency_ms: string | null
  reason: string | null
  at: Date | null
  next_attempt_at: Date | null
}

interface View {
  projectId: string
  kinds: readonly DeliveryKind[]
}

type EventView = View & { eventId: string }

/** Returns a page of a project's pending deliveries, newest events first. */
export async function listPendingDeliveries(
  sql: Queryable,
  { query, ...view }: View & { query: EventDeliveriesQuery },
): Promise<Page<Delivery>> {
  const after = parseCursor(query.cursor, [UUID_PATTERN, KIND, UUID_PATTERN])
  const rows = await sql<DeliveryRow[]>`
    select
      id, event_id, kind, target_id, 'pending' as state, attempts, null as latency_ms, reason, null as at,
      ${nextAttemptAt(sql)} as next_attempt_at
    from outbox o
    where project_id = ${view.projectId}
      ${
        after
          ? sql`and (event_id, kind, target_id) < (${after[0] ?? ''}::uuid, ${after[1] ?? ''}, ${after[2] ?? ''}::uuid)`
          : sql``
      }
    order by event_id desc, kind desc, target_id desc
    limit ${(query.limit ?? DEFAULT_PAGE_LIMIT) + 1}
  `
  const page = toPage(rows, query, row => toCursor([row.event_id, row.kind, row.target_id ?? '']))
  return { ...page, items: await toDeliveries(sql, page.items, view) }
}

/**
 * Returns an expression: when the delivery `o` of the outbox is attempted next; null during an
 * attempt, and while its target is disabled.
 */
function nextAttemptAt(sql: Queryable): Fragment {
  return sql`case when o.token is null then nullif(greatest(
    o.available_at,
    (select t.paused_until from delivery_targets t where t.kind = o.kind and t.id = o.target_id)
  ), 'infinity') end`
}

/** Returns a page of a project's dead letters, newest first. */
export async function listDeadLetters(
  sql: Queryable,
  { query, ...view }: View & { query: EventDeliveriesQuery },
): Promise<Page<Delivery>> {
  const after = parseCursor(query.cursor, [UUID_PATTERN])
  const rows = await sql<DeliveryRow[]>`
    select
      id, event_id, kind, target_id, 'dead' as state, attempts, null as latency_ms, reason, at,
      null as next_attempt_at
    from dead_letters
    where project_id = ${view.projectId}
      ${after ? sql`and id < ${after[0] ?? ''}::uuid` : sql``}
    order by id desc
    limit ${(query.limit ?? DEFAULT_PAGE_LIMIT) + 1}
  `
  const page = toPage(rows, query, ({ id }) => toCursor([id]))
  return { ...page, items: await toDeliveries(sql, page.items, view) }
}

/**
 * Returns a page of an event's deliveries, pending and ended, by kind and target. The first page
 * also explains why a kind has none, if that is known. Throws `not_found` if neither the event nor
 * a record of it exists.
 */
export async function listEventDeliveries(
  sql: Queryable,
  { query, ...view }: EventView & { query: EventDeliveriesQuery },
): Promise<EventDeliveries> {
  const isDispatched = await checkDispatched(sql, view)
  const after = parseCursor(query.cursor, [KIND, UUID_PATTERN, RANK])
  const rows = await sql<(DeliveryRow & { rank: number })[]>`
    select
      id, event_id, kind, target_id, state, attempts, latency_ms, reason, at, next_attempt_at, rank
    from (
      select
        o.id, o.event_id, o.kind, o.target_id, 'pending' as state, o.attempts, null::bigint as latency_ms, o.reason,
        null::timestamptz as at, ${nextAttemptAt(sql)} as next_attempt_at, 0 as rank
      from outbox o
      where o.project_id = ${view.projectId} and o.event_id = ${view.eventId}
      union all
      select
        d.id, d.event_id, d.kind, d.target_id, d.state, d.attempts, d.latency_ms, d.reason, d.at, null, 1
      from delivery_records d
      where d.project_id = ${view.projectId} and d.event_id = ${view.eventId}
    ) as all_of_event
    ${
      after
        ? sql`where (kind, coalesce(target_id, ${NIL_UUID}), rank) > (${after[0] ?? ''}, ${after[1] ?? ''}::uuid, ${Number(after[2])})`
        : sql``
    }
    order by kind, coalesce(target_id, ${NIL_UUID}), rank
    limit ${(query.limit ?? DEFAULT_PAGE_LIMIT) + 1}
  `
  const page = toPage(rows, query, row => toCursor([row.kind, row.target_id ?? NIL_UUID, row.rank]))
  const isWhole = query.cursor === undefined && page.nextCursor === null
  // Only a single, complete page shows that a kind has no delivery.
  const explained =
    isDispatched && isWhole ? await explainMissingDeliveries(sql, view, page.items) : []
  const items = await toDeliveries(sql, [...explained, ...page.items], view)
  return { ...page, items, isDispatched }
}

/** Converts rows to deliveries as the API returns them, with the names of their targets. */
export async function toDeliveries(
  sql: Queryable,
  rows: readonly DeliveryRow[],
  { projectId, kinds }: View,
): Promise<Delivery[]> {
  const names = new Map<string, string>()
  for (const kind of kinds) {
    const targetIds = rows.flatMap(row =>
      row.kind === kind.name && row.target_id !== null ? [row.target_id] : [],
    )
    if (targetIds.length === 0) continue
    const found = await kind.getTargetNames(sql, { projectId, targetIds: [...new Set(targetIds)] })
    for (const [targetId, name] of found) names.set(`${kind.name} ${targetId}`, name)
  }
  return rows.map(row => ({
    id: toId('dlv', row.id),
    eventId: toId('evt', row.event_id),
    kind: row.kind,
    target:
      row.target_id === null
        ? null
        : {
            id: toId(TARGET_PREFIX[row.kind], row.target_id),
            name: names.get(`${row.kind} ${row.target_id}`) ?? null,
          },
    state: row.state,
    attempts: row.attempts,
    latencyMs: row.latency_ms === null ? null : Number(row.latency_ms),
    reason: row.reason,
    at: row.at?.toISOString() ?? null,
    nextAttemptAt: row.next_attempt_at?.toISOString() ?? null,
  }))
}

/**
 * Returns true if every kind has dispatched the event. Throws `not_found` if neither the event nor
 * a record of it exists.
 */
async function checkDispatched(
  sql: Queryable,
  { projectId, eventId, kinds }: EventView,
): Promise<boolean> {
  const [row] = await sql<{ is_known: boolean; cursors: number }[]>`
    select
      e.id is not null or exists (
        select from delivery_records d where d.project_id = ${projectId} and d.event_id = ${eventId}
      ) as is_known,
      (
        select count(*)::int
        from delivery_cursors c
        where c.project_id = ${projectId} and (e.id is null or c.seq >= e.seq)
      ) as cursors
    from (values (true)) as one
      left join lateral event_by_id(${projectId}, ${eventId}) e on true
  `
  if (!row?.is_known) throw new Fault('not_found', 'No event has this id')
  return row.cursors >= kinds.filter(isDispatching).length
}

/**
 * Explains why there is no delivery, for each kind that is not among `rows`. Nothing is known of an
 * event so old that its records may have been deleted.
 */
async function explainMissingDeliveries(
  sql: Queryable,
  { projectId, eventId, kinds }: EventView,
  rows: readonly DeliveryRow[],
): Promise<DeliveryRow[]> {
  const missing = kinds.filter(({ name }) => !rows.some(({ kind }) => kind === name))
  if (missing.length === 0) return []
  const [event] = await sql<{ notify: boolean; level: string | null; created_at: Date }[]>`
    select e.notify, level_name(e.level) as level, e.created_at
    from event_by_id(${projectId}, ${eventId}) e
    where e.deleted_at is null
      -- Records are kept for 30 days.
      and e.created_at > now() - interval '29 days'
  `
  if (!event) return []
  const { notify, level } = event
  const explained: DeliveryRow[] = []
  for (const { name, explainNoDelivery } of missing) {
    const reason = await explainNoDelivery?.(sql, { projectId, notify, level })
    if (reason === undefined) continue
    explained.push({
      // Unique, because an event has at most one such entry of each kind.
      id: eventId,
      event_id: eventId,
      kind: name,
      target_id: null,
      state: 'withheld',
      attempts: 0,
      latency_ms: null,
      reason,
      at: event.created_at,
      next_attempt_at: null,
    })
  }
  return explained
}
