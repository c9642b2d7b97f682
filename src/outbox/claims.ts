import { toArray } from '../db/arrays.ts'
import type { Sql } from '../db/sql.ts'
import type { ClaimRequest, WaitingTarget } from './fair-queue.ts'
import type { KindName } from './kind.ts'
import { commitWithoutFsync } from '../db/delivery-settings.ts'

/** Targets that one walk visits; the next walk goes on behind them. */
export const MAX_TARGETS_PER_SCAN = 5_000

/** The right to settle one delivery, until its token is another's. */
export interface Lease {
  id: string
  token: string
}

/** A delivery that no other worker has until its lease ends. */
export interface ClaimedDelivery extends Lease {
  projectId: string
  eventId: string
  targetId: string
  /** Claims since the last outcome, this one included. */
  claimCount: number
  /** Failed attempts. */
  attempts: number
  /** Since the event was created, and since the delivery was due first. */
  ageMs: number
  waitedMs: number
  /** Whether the event or its project is gone, and how long ago the event was hidden. */
  isGone: boolean
  hiddenMs: number | null
}

interface ClaimOptions {
  kind: KindName
  requests: readonly ClaimRequest[]
  most: number
  leaseMs: number
}

/**
 * Walks from target to target, not from row to row: a target with 200,000 deliveries costs no more than one with a
 * single delivery. Deliveries due before `floor` are skipped.
 */
export async function findWaitingTargets(
  sql: Sql,
  { kind, after, floor }: { kind: KindName; after: string; floor: string | null },
): Promise<WaitingTarget[]> {
  // After the clock was set back, new deliveries are due earlier.
  const from =
    floor === null ? sql`'-infinity'` : sql`least(${floor}::timestamptz, now() - interval '10 s')`
  return sql<WaitingTarget[]>`
    with recursive walk as (
      (
        select o.target_id, o.available_at
        from outbox o
        where o.kind = ${kind} and o.target_id > ${after}
          and o.available_at >= ${from}
        order by o.target_id, o.available_at
        limit 1
      )
      union all
      select n.target_id, n.available_at
      from walk w
        cross join lateral (
          select o.target_id, o.available_at
          from outbox o
          where o.kind = ${kind} and o.target_id > w.target_id
            and o.available_at >= ${from}
          order by o.target_id, o.available_at
          limit 1
        ) n
    )
    select
      target_id as "targetId", available_at::text as "dueAt",
      (least(available_at, now()) - interval '10 s')::text as floor,
      (extract(epoch from available_at - now()) * 1000)::float8 as "dueInMs"
    from walk
    limit ${MAX_TARGETS_PER_SCAN}
  `
}

/**
 * Leases at most `most` due deliveries: the first of every target before the second of any, the oldest first. The choice
 * is a materialized step of its own, so that the planner does not repeat it while rows are locked. Locked rows are
 * skipped, not waited for.
 */
export async function claimDeliveries(
  sql: Sql,
  { kind, requests, most, leaseMs }: ClaimOptions,
): Promise<ClaimedDelivery[]> {
  return sql<ClaimedDelivery[]>`
    with requested as materialized (
      select w.target_id, w.room, w.low, w.place
      from unnest(
        ${toArray(requests.map(({ targetId }) => targetId))}::uuid[],
        ${toArray(requests.map(({ room }) => room))}::int[],
        ${toArray(requests.map(({ dueAt }) => dueAt))}::timestamptz[]
      ) with ordinality as w (target_id, room, low, place)
        cross join ${commitWithoutFsync(sql)}
    ), chosen as materialized (
      select r.id
      from requested w
        cross join lateral (
          select d.id, row_number() over (order by d.available_at, d.id) as rank
          from (
            select o.id, o.available_at
            from outbox o
            where o.kind = ${kind} and o.target_id = w.target_id
              and o.available_at >= w.low and o.available_at <= now()
            order by o.available_at, o.id
            limit w.room
          ) d
        ) r
      order by r.rank, w.place
      limit ${most}
    ), locked as materialized (
      select o.id
      from outbox o
      where o.id = any(array(select c.id from chosen c)) and o.available_at <= now()
      for update skip locked
    ), taken as (
      update outbox o set
        available_at = now() + ${leaseMs}::float8 * interval '1 ms',
        token = ${crypto.randomUUID()}, claim_count = o.claim_count + 1
      from locked l
      where o.id = l.id
      returning
        o.id, o.token, o.project_id, o.event_id, o.target_id, o.claim_count, o.attempts, o.requested_at
    )
    select
      t.id, t.token, t.project_id as "projectId", t.event_id as "eventId", t.target_id as "targetId",
      t.claim_count as "claimCount", t.attempts,
      e.id is null or p.deleted_at is not null as "isGone",
      coalesce(extract(epoch from clock_timestamp() - e.created_at) * 1000, 0)::float8 as "ageMs",
      (extract(epoch from clock_timestamp() - t.requested_at) * 1000)::float8 as "waitedMs",
      (extract(epoch from clock_timestamp() - e.deleted_at) * 1000)::float8 as "hiddenMs"
    from taken t
      join projects p on p.id = t.project_id
      left join events e on e.project_id = t.project_id and e.id = t.event_id
  `
}

/** Extends leases by `leaseMs` from now on; returns the ids of those that were still the caller's. */
export async function extendLeases(
  sql: Sql,
  { leases, leaseMs }: { leases: readonly Lease[]; leaseMs: number },
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    with input as materialized (
      select i.id, i.token
      from unnest(
        ${toArray(leases.map(({ id }) => id))}::uuid[], ${toArray(leases.map(({ token }) => token))}::uuid[]
      ) as i (id, token)
    ), held as materialized (
      select o.id
      from input i
        join outbox o on o.id = i.id and o.token = i.token
      order by o.id
      for update of o
    )
    update outbox o set available_at = now() + ${leaseMs}::float8 * interval '1 ms'
    from held h
    where o.id = h.id
    returning o.id
  `
  return rows.map(({ id }) => id)
}
