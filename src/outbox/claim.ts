import { toArray } from '../db/arrays.ts'
import type { Sql } from '../db/sql.ts'
import type { KindName } from './kind.ts'
import { committedSoon } from './settings.ts'

/** Targets that one walk passes; the next one goes on behind them. */
export const MAX_WALK = 5_000

/** A target with pending deliveries, and when the first of them may be taken: in the past where it is negative. */
export interface WaitingTarget {
  targetId: string
  dueInMs: number
  /** The same as Postgres writes it. */
  dueAt: string
  /** A little before that, or before now: what is due earlier, and not there yet, no transaction commits any more. */
  low: string
}

/** How many deliveries of a target are wanted; those from `dueAt` on are looked at. */
export interface Wish {
  targetId: string
  room: number
  dueAt: string
}

/** A job that nobody else has until its lease ends. */
export interface Claimed {
  id: string
  token: string
  projectId: string
  eventId: string
  targetId: string
  /** How often it was taken since its last outcome, this time included. */
  takes: number
  /** Failed attempts. */
  attempts: number
  /** Since the event was created, and since the job is to be made. */
  ageMs: number
  waitedMs: number
  /** Whether the event is there to be told of, or how long ago it was hidden. */
  isGone: boolean
  hiddenMs: number | null
}

/**
 * Walks from target to target, not from row to row: a target with 200,000 deliveries costs no more than one with a
 * single one. Deliveries due before `low` (null for none) are passed over.
 */
export async function findTargets(
  sql: Sql,
  { kind, after, low }: { kind: KindName; after: string; low: string | null },
): Promise<WaitingTarget[]> {
  // Where the clock has gone back, what is new is due earlier.
  const from =
    low === null ? sql`'-infinity'` : sql`least(${low}::timestamptz, now() - interval '10 s')`
  const rows = await sql<{ target_id: string; due_in_ms: number; due_at: string; low: string }[]>`
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
      target_id, available_at::text as due_at, (least(available_at, now()) - interval '10 s')::text as low,
      (extract(epoch from available_at - now()) * 1000)::float8 as due_in_ms
    from walk
    limit ${MAX_WALK}
  `
  return rows.map(row => ({
    targetId: row.target_id,
    dueInMs: row.due_in_ms,
    dueAt: row.due_at,
    low: row.low,
  }))
}

/**
 * Leases at most `most` due jobs, the oldest of each target first: the first of every target before the second of any.
 * Which ones is decided before they are locked, in a step of its own: the planner must not run that step again. Whoever
 * reads meanwhile what this transaction has taken is passed over, and waits for nothing.
 */
export async function claimJobs(
  sql: Sql,
  { kind, wishes, most, leaseMs }: ClaimOptions,
): Promise<Claimed[]> {
  const token = crypto.randomUUID()
  const rows = await sql<Row[]>`
    with wished as materialized (
      select w.target_id, w.room, w.low, w.place
      from unnest(
        ${toArray(wishes.map(({ targetId }) => targetId))}::uuid[],
        ${toArray(wishes.map(({ room }) => room))}::int[],
        ${toArray(wishes.map(({ dueAt }) => dueAt))}::timestamptz[]
      ) with ordinality as w (target_id, room, low, place)
        cross join ${committedSoon(sql)}
    ), chosen as materialized (
      select r.id
      from wished w
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
        available_at = now() + ${leaseMs}::float8 * interval '1 ms', token = ${token}, takes = o.takes + 1
      from locked l
      where o.id = l.id
      returning o.id, o.project_id, o.event_id, o.target_id, o.takes, o.attempts, o.since
    )
    select
      t.id, t.project_id, t.event_id, t.target_id, t.takes, t.attempts,
      e.id is null or p.deleted_at is not null as is_gone,
      coalesce(extract(epoch from clock_timestamp() - e.created_at) * 1000, 0)::float8 as age_ms,
      (extract(epoch from clock_timestamp() - t.since) * 1000)::float8 as waited_ms,
      (extract(epoch from clock_timestamp() - e.deleted_at) * 1000)::float8 as hidden_ms
    from taken t
      join projects p on p.id = t.project_id
      left join events e on e.project_id = t.project_id and e.id = t.event_id
  `
  return rows.map(row => ({
    id: row.id,
    token,
    projectId: row.project_id,
    eventId: row.event_id,
    targetId: row.target_id,
    takes: row.takes,
    attempts: row.attempts,
    ageMs: row.age_ms,
    waitedMs: row.waited_ms,
    isGone: row.is_gone,
    hiddenMs: row.hidden_ms,
  }))
}

interface ClaimOptions {
  kind: KindName
  wishes: readonly Wish[]
  most: number
  leaseMs: number
}

interface Row {
  id: string
  project_id: string
  event_id: string
  target_id: string
  takes: number
  attempts: number
  age_ms: number
  waited_ms: number
  is_gone: boolean
  hidden_ms: number | null
}
