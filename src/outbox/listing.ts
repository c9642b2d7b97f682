import type { Queryable } from '../db/sql.ts'
import { toId } from '../ids.ts'
import { TARGET_PREFIX, type DeliveryKind, type KindName } from './kind.ts'
import { KIND_PART, parsePlace, RANK_PART, toPlaceCursor, UUID_PART } from './place.ts'
import type { Delivery, PageQuery } from './schema.ts'

const DEFAULT_LIMIT = 50
/** Stands for no target where a list goes on. */
const NO_ID = '00000000-0000-0000-0000-000000000000'

export interface DeliveryPage {
  items: Delivery[]
  nextCursor: string | null
}

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

interface ListOptions {
  projectId: string
  kinds: readonly DeliveryKind[]
  query: PageQuery
}

/** The deliveries of an event, pending and ended ones, by kind and target. */
export async function listOfEvent(
  sql: Queryable,
  { projectId, eventId, kinds, query }: ListOptions & { eventId: string },
): Promise<DeliveryPage> {
  const place = parsePlace(query.cursor, [KIND_PART, UUID_PART, RANK_PART])
  const limit = query.limit ?? DEFAULT_LIMIT
  const rows = await sql<(DeliveryRow & { rank: number })[]>`
    select
      id, event_id, kind, target_id, state, attempts, latency_ms, reason, at, next_attempt_at, rank
    from (
      select
        o.id, o.event_id, o.kind, o.target_id, 'pending' as state, o.attempts, null::bigint as latency_ms, o.reason,
        null::timestamptz as at, case when o.token is null then o.available_at end as next_attempt_at, 0 as rank
      from outbox o
      where o.project_id = ${projectId} and o.event_id = ${eventId}
      union all
      select
        d.id, d.event_id, d.kind, d.target_id, d.state, d.attempts, d.latency_ms, d.reason, d.at, null, 1
      from delivery_records d
      where d.project_id = ${projectId} and d.event_id = ${eventId}
    ) as all_of_event
    ${
      place
        ? sql`where (kind, coalesce(target_id, ${NO_ID}), rank) > (${place[0] ?? ''}, ${place[1] ?? ''}::uuid, ${Number(place[2])})`
        : sql``
    }
    order by kind, coalesce(target_id, ${NO_ID}), rank
    limit ${limit + 1}
  `
  return toPage(sql, { rows, limit, projectId, kinds }, ({ kind, target_id, rank }) => [
    kind,
    target_id ?? NO_ID,
    String(rank),
  ])
}

/** For each kind that told nobody of an event, and wrote nothing down either, why; the event must be dispatched. */
export async function listSilence(
  sql: Queryable,
  { projectId, eventId, kinds }: Omit<ListOptions, 'query'> & { eventId: string },
): Promise<Delivery[]> {
  const rows: DeliveryRow[] = []
  for (const { name, explainSilence } of kinds) {
    const silence = await explainSilence?.(sql, { projectId, eventId })
    if (!silence) continue
    rows.push({
      // There is one at most of a kind and an event.
      id: eventId,
      event_id: eventId,
      kind: name,
      target_id: null,
      state: 'withheld',
      attempts: 0,
      latency_ms: null,
      reason: silence.reason,
      at: silence.at,
      next_attempt_at: null,
    })
  }
  return toDeliveries(sql, { rows, projectId, kinds })
}

/** The pending deliveries of a project, those of the newest events first. */
export async function listPending(
  sql: Queryable,
  { projectId, kinds, query }: ListOptions,
): Promise<DeliveryPage> {
  const place = parsePlace(query.cursor, [UUID_PART, KIND_PART, UUID_PART])
  const limit = query.limit ?? DEFAULT_LIMIT
  const rows = await sql<DeliveryRow[]>`
    select
      id, event_id, kind, target_id, 'pending' as state, attempts, null as latency_ms, reason, null as at,
      case when token is null then available_at end as next_attempt_at
    from outbox
    where project_id = ${projectId}
      ${
        place
          ? sql`and (event_id, kind, target_id) < (${place[0] ?? ''}::uuid, ${place[1] ?? ''}, ${place[2] ?? ''}::uuid)`
          : sql``
      }
    order by event_id desc, kind desc, target_id desc
    limit ${limit + 1}
  `
  return toPage(sql, { rows, limit, projectId, kinds }, ({ event_id, kind, target_id }) => [
    event_id,
    kind,
    target_id ?? NO_ID,
  ])
}

/** The dead letters of a project, the newest deliveries first. */
export async function listDead(
  sql: Queryable,
  { projectId, kinds, query }: ListOptions,
): Promise<DeliveryPage> {
  const place = parsePlace(query.cursor, [UUID_PART])
  const limit = query.limit ?? DEFAULT_LIMIT
  const rows = await sql<DeliveryRow[]>`
    select
      id, event_id, kind, target_id, 'dead' as state, attempts, null as latency_ms, reason, at,
      null as next_attempt_at
    from dead_letters
    where project_id = ${projectId} ${place ? sql`and id < ${place[0] ?? ''}::uuid` : sql``}
    order by id desc
    limit ${limit + 1}
  `
  return toPage(sql, { rows, limit, projectId, kinds }, ({ id }) => [id])
}

/** Deliveries as they are shown, with the names of their targets. */
export async function toDeliveries(
  sql: Queryable,
  { rows, projectId, kinds }: { rows: readonly DeliveryRow[] } & Omit<ListOptions, 'query'>,
): Promise<Delivery[]> {
  const names = new Map<string, string>()
  for (const kind of kinds) {
    const targetIds = rows.flatMap(row =>
      row.kind === kind.name && row.target_id !== null ? [row.target_id] : [],
    )
    if (targetIds.length === 0) continue
    const found = await kind.nameTargets(sql, { projectId, targetIds: [...new Set(targetIds)] })
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

async function toPage<Row extends DeliveryRow>(
  sql: Queryable,
  { rows, limit, ...more }: { rows: Row[]; limit: number } & Omit<ListOptions, 'query'>,
  toPlace: (row: Row) => string[],
): Promise<DeliveryPage> {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    items: await toDeliveries(sql, { rows: page, ...more }),
    nextCursor: rows.length > limit && last ? toPlaceCursor(toPlace(last)) : null,
  }
}
