import { toArray } from '../db/arrays.ts'
import type { Sql } from '../db/sql.ts'
import { checksPlannedOnce } from './settings.ts'
import type { Settlement } from './settlement.ts'

/** A job as whoever has claimed it names it. */
export interface Held {
  id: string
  token: string
}

/**
 * Writes down what becomes of claimed jobs: records of those that have ended, dead letters of those that were given up,
 * and the time of the next attempt of the others. Returns the ids of those that were still the caller's: the others have
 * another token by now, or are gone, and nothing of them changes. Rows are locked in the order of their ids.
 */
export async function settleJobs(
  sql: Sql,
  settled: readonly (Held & Settlement)[],
): Promise<string[]> {
  const column = (value: (one: Held & Settlement) => string | number | null) =>
    toArray(settled.map(value))
  const rows = await sql<{ id: string }[]>`
    with input as materialized (
      select i.id, i.token, i.state, i.attempts, i.delay_ms, i.reason, i.latency_ms
      from unnest(
        ${column(({ id }) => id)}::uuid[],
        ${column(({ token }) => token)}::uuid[],
        ${column(({ state }) => state)}::text[],
        ${column(({ attempts }) => attempts)}::int[],
        ${column(({ delayMs }) => delayMs)}::float8[],
        ${column(({ reason }) => reason)}::text[],
        ${column(({ latencyMs }) => latencyMs)}::bigint[]
      ) as i (id, token, state, attempts, delay_ms, reason, latency_ms)
        cross join ${checksPlannedOnce(sql)}
    ), held as materialized (
      select i.id, i.state, i.attempts, i.delay_ms, i.reason, i.latency_ms
      from input i
        join outbox o on o.id = i.id and o.token = i.token
      order by o.id
      for update of o
    ), ended as (
      delete from outbox o
      using held h
      where o.id = h.id and h.state is not null
      returning
        o.id, o.project_id, o.event_id, o.kind, o.target_id, h.state, o.attempts + h.attempts as attempts,
        coalesce(h.reason, o.reason) as reason, h.latency_ms
    ), recorded as (
      insert into deliveries (
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms, reason
      )
      select
        id, project_id, event_id, kind, target_id, state, attempts, latency_ms,
        case when state <> 'delivered' then reason end
      from ended
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, state = excluded.state, attempts = excluded.attempts,
        latency_ms = excluded.latency_ms, reason = excluded.reason, at = excluded.at
    ), buried as (
      insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
      select id, project_id, event_id, kind, target_id, attempts, coalesce(reason, '')
      from ended
      where state = 'dead'
      on conflict (project_id, event_id, kind, target_id) do update set
        id = excluded.id, attempts = excluded.attempts, reason = excluded.reason, at = excluded.at
    ), kept as (
      update outbox o set
        available_at = now() + h.delay_ms * interval '1 ms',
        token = null, takes = 0, attempts = o.attempts + h.attempts, reason = coalesce(h.reason, o.reason)
      from held h
      where o.id = h.id and h.state is null
    )
    select id from held
  `
  return rows.map(({ id }) => id)
}

/** Keeps claimed jobs for another `leaseMs`; returns the ids of those that were still the caller's. */
export async function extendLeases(
  sql: Sql,
  { held, leaseMs }: { held: readonly Held[]; leaseMs: number },
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    with input as materialized (
      select i.id, i.token
      from unnest(
        ${toArray(held.map(({ id }) => id))}::uuid[], ${toArray(held.map(({ token }) => token))}::uuid[]
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
