import { toArray } from '../../database/arrays.ts'
import type { Sql } from '../../database/sql.ts'
import type { ClaimRequest, WaitingTarget } from './fair-queue.ts'
import type { ClaimedDelivery, KindName, Lease } from './delivery-kind.ts'

/** The number of targets that one scan returns. The next scan continues after the last of them. */
export const MAX_TARGETS_PER_SCAN = 5_000
/** Later scans find the other timers, when these are no longer due. */
const MAX_DUE_TIMERS = 50_000
/** The worker scans at least this often. */
export const POLL_MS = 1_000

interface ClaimOptions {
  kind: KindName
  requests: readonly ClaimRequest[]
  maxDeliveries: number
  leaseMs: number
}

/**
 * Finds the first delivery of each target that does not wait. It skips deliveries that were due
 * before `floor`, but not those of a target whose pause has ended lately. The query jumps from
 * target to target, so a target with 200,000 deliveries costs no more than a target with one.
 */
export async function findWaitingTargets(
  sql: Sql,
  { kind, after, floor }: { kind: KindName; after: string; floor: string | null },
): Promise<WaitingTarget[]> {
  // After the clock was set back, new deliveries are due before the old `floor`.
  const from =
    floor === null ? sql`'-infinity'` : sql`least(${floor}::timestamptz, now() - interval '10 s')`
  return sql<WaitingTarget[]>`
    with recursive walk as (
      select ${after}::text::uuid as target_id, null::timestamptz as available_at
      union all
      select coalesce(f.target_id, w.id), f.available_at
      from walk t
        cross join lateral (
          -- The deliveries of a target that waits are older than the floor, and the walk would read all of them.
          select (
            select d.id from delivery_targets d where d.kind = ${kind} and d.id > t.target_id order by d.id limit 1
          ) as id
        ) w
        left join lateral (
          select o.target_id, o.available_at
          from outbox o
          where o.kind = ${kind} and o.target_id > t.target_id
            and o.target_id < coalesce(w.id, 'ffffffff-ffff-ffff-ffff-ffffffffffff') and o.available_at >= ${from}
          order by o.target_id, o.available_at
          limit 1
        ) f on true
      where coalesce(f.target_id, w.id) is not null
    ), due as (
      -- Most timers are targets of their own that are not due.
      select o.target_id, min(o.available_at) as available_at
      from (
        select target_id, available_at
        from outbox
        where kind = 'timer' and available_at >= ${from} and available_at < now() + ${POLL_MS} * interval '1 ms'
        order by available_at
        limit ${MAX_DUE_TIMERS}
      ) o
      where o.target_id > ${after}
      group by o.target_id
      order by o.target_id
    ), targets as (
      (
        select w.target_id, w.available_at, false as is_single, false as is_resumed
        from ${kind === 'timer' ? sql`due` : sql`walk`} w
        where w.available_at is not null
        limit ${MAX_TARGETS_PER_SCAN}
      )
      union all
      select
        t.id, f.available_at, t.single_until > now(),
        -- Only outbox_waiting has this order.
        (
          select o.id
          from outbox o
          where o.kind = t.kind and o.target_id = t.id and o.claimed_at < t.resumed_at and o.token is null
          order by o.claimed_at
          limit 1
        ) is not null
      from delivery_targets t
        cross join lateral (
          select o.available_at
          from outbox o
          where o.kind = t.kind and o.target_id = t.id
          order by o.available_at
          limit 1
        ) f
      where t.kind = ${kind} and t.id > ${after} and t.paused_until <= now()
    )
    select
      target_id as "targetId", available_at::text as "dueAt",
      (least(available_at, now()) - interval '10 s')::text as floor, is_single as "isSingle",
      case
        when is_resumed then least(0, d.due_in_ms)
        else d.due_in_ms
      end as "dueInMs"
    from targets
      cross join lateral (
        select (extract(epoch from available_at - now()) * 1000)::float8 as due_in_ms
      ) d
    order by target_id
    limit ${MAX_TARGETS_PER_SCAN}
  `
}

/**
 * Leases at most `maxDeliveries` due deliveries: first the oldest of each target, then the second
 * oldest of each, and so on. It skips locked rows.
 */
export async function claimDeliveries(
  sql: Sql,
  { kind, requests, maxDeliveries, leaseMs }: ClaimOptions,
): Promise<ClaimedDelivery[]> {
  const token = crypto.randomUUID()
  const rows = await sql<Omit<ClaimedDelivery, 'token'>[]>`
    select
      id, project_id as "projectId", event_id as "eventId", target_id as "targetId", claim_count as "claimCount",
      attempts, is_gone as "isGone", age_ms as "ageMs", waited_ms as "waitedMs", hidden_ms as "hiddenMs"
    from claim_deliveries(
      of_kind => ${kind},
      target_ids => ${toArray(requests.map(({ targetId }) => targetId))}::uuid[],
      rooms => ${toArray(requests.map(({ room }) => room))}::int[],
      due_ats => ${toArray(requests.map(({ dueAt }) => dueAt))}::timestamptz[],
      max_deliveries => ${maxDeliveries},
      lease_ms => ${leaseMs},
      new_token => ${token}
    )
  `
  return rows.map(row => ({ ...row, token }))
}

/**
 * Extends leases to `leaseMs` from now. Returns the ids of the leases that were extended, and of
 * those that the caller has lost. A lease whose row is locked is in neither list.
 */
export async function extendLeases(
  sql: Sql,
  { leases, leaseMs }: { leases: readonly Lease[]; leaseMs: number },
): Promise<{ extended: string[]; lost: string[] }> {
  const [row] = await sql<[{ extended: string[]; lost: string[] }]>`
    with given as materialized (
      select i.id, i.token
      from unnest(
          ${toArray(leases.map(({ id }) => id))}::uuid[],
          ${toArray(leases.map(({ token }) => token))}::uuid[]
        ) as i (id, token)
    ), held as materialized (
      -- One locked row must not let the other leases end.
      select o.id
      from given g
        join outbox o on o.id = g.id and o.token = g.token
      order by o.id
      for update of o skip locked
    ), extended as (
      update outbox o set available_at = now() + ${leaseMs}::float8 * interval '1 ms'
      from held h
      where o.id = h.id
      returning o.id
    )
    select
      (select coalesce(json_agg(e.id), '[]') from extended e) as extended,
      (
        select coalesce(json_agg(g.id), '[]')
        from given g
        where not exists (select from outbox o where o.id = g.id and o.token = g.token)
      ) as lost
  `
  return row
}
