import { toArray } from '../db/arrays.ts'
import type { Fragment, Queryable } from '../db/sql.ts'
import type { ClaimedDelivery, Dispatched, KindName, NewLease } from './kind.ts'

type LeasedRow = Pick<ClaimedDelivery, 'id' | 'projectId' | 'eventId' | 'targetId' | 'ageMs'>

/** The row that `selectDispatched` returns. */
export interface DispatchedRow {
  count: number
  leased: readonly LeasedRow[] | null
}

/**
 * Returns the steps of a `with` that insert the rows of its step `wanted`. These rows have
 * project_id, event_id, target_id, and the event's created_at and deleted_at. With a lease, each
 * target gets one leased delivery, then a second one, and so on. The others are due at once.
 */
export function insertWanted(
  sql: Queryable,
  { kind, lease }: { kind: KindName; lease: NewLease | undefined },
): Fragment {
  if (!lease) {
    return sql`
      queued as (
        insert into outbox (project_id, event_id, kind, target_id)
        select project_id, event_id, ${kind}, target_id
        from wanted
        on conflict (project_id, event_id, kind, target_id) do nothing
        returning 1
      )
    `
  }
  return sql`
    ranked as materialized (
      select
        w.*, new_delivery_id() as id,
        row_number() over (
          partition by w.target_id, w.deleted_at is null order by w.created_at, w.event_id
        ) as rank
      from wanted w
    ), roomy as materialized (
      select
        r.*,
        r.deleted_at is null and r.rank <= coalesce(b.room, ${lease.perTarget}::int) as has_room
      from ranked r
        left join unnest(
          ${toArray(lease.rooms.map(({ targetId }) => targetId))}::uuid[],
          ${toArray(lease.rooms.map(({ room }) => room))}::int[]
        ) as b (target_id, room) on b.target_id = r.target_id
    ), chosen as materialized (
      select
        r.*,
        r.has_room and row_number() over (order by r.has_room desc, r.rank) <= ${lease.free}::int as is_leased
      from roomy r
    ), queued as (
      insert into outbox (id, project_id, event_id, kind, target_id, available_at, token, claim_count)
      select
        c.id, c.project_id, c.event_id, ${kind}, c.target_id,
        case when c.is_leased then now() + ${lease.leaseMs}::float8 * interval '1 ms' else now() end,
        case when c.is_leased then ${lease.token}::uuid end, c.is_leased::int
      from chosen c
      on conflict (project_id, event_id, kind, target_id) do nothing
      returning id
    )
  `
}

/** Returns the `select` after the steps of `insertWanted`, with one `DispatchedRow`. */
export function selectDispatched(sql: Queryable, lease: NewLease | undefined): Fragment {
  if (!lease) return sql`select (select count(*)::int from queued) as count, null as leased`
  return sql`
    select
      (select count(*)::int from queued) as count,
      (
        select json_agg(json_build_object(
          'id', c.id, 'projectId', c.project_id, 'eventId', c.event_id, 'targetId', c.target_id,
          'ageMs', extract(epoch from clock_timestamp() - c.created_at) * 1000
        ))
        from chosen c
          join queued q on q.id = c.id
        where c.is_leased
      ) as leased
  `
}

/** Returns the result of a dispatch from its row. */
export function toDispatched(
  { count, leased }: DispatchedRow,
  lease: NewLease | undefined,
): Dispatched {
  const token = lease?.token ?? ''
  const fresh = { token, claimCount: 1, attempts: 0, waitedMs: 0, isGone: false, hiddenMs: null }
  return { count, leased: (leased ?? []).map(row => ({ ...fresh, ...row })) }
}
