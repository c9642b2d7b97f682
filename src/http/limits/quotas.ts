import type { QuotaLimits } from '../../base/config.ts'
import { Fault } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { quotaRefusals } from '../../base/metrics.ts'
import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import type { Queryable, Tx } from '../../database/sql.ts'

const log = logger('limits')
const STORE_EVERY_MS = 1_000
const STORE_BATCH = 500
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** An event or a user to be counted. */
interface Counted {
  organizationId: string
  /** 1 for an event, 0 for a user. */
  events: number
  /** The UTF-8 bytes of its texts. */
  bytes: number
}

export interface Quotas {
  /**
   * Throws `quota_exceeded` if the organization has used its events of this minute or its bytes of
   * this day.
   */
  check(counted: Counted): void
  /** Counts an event or a user that was stored. Call `check` before. */
  count(counted: Counted): void
  /** Throws `quota_exceeded` if the organization has all of its webhooks. Locks it. */
  checkWebhook(tx: Tx, organizationId: string): Promise<void>
  /** Stores what is not stored yet, and stops. */
  stop(): Promise<void>
}

/** The use of an organization in all processes, when this one last stored its counts. */
interface Total {
  id: string
  events: number
  bytes: number
  /** When its minute and its day end, in milliseconds of `performance.now`. */
  minuteEndsMs: number
  dayEndsMs: number
}

/**
 * Each second, one statement adds what was stored meanwhile to the counts in the database, and
 * returns the totals of all processes. So quotas are exact within about a second, and cost no
 * request a query.
 */
export function createQuotas({ limits, pool }: { limits: QuotaLimits; pool: Pool }): Quotas {
  // Counts that are not in the database yet, and the totals that are, by organization.
  const pending = new Map<string, Counted>()
  const totals = new Map<string, Total>()

  function count({ organizationId, events, bytes }: Counted): void {
    const before = pending.get(organizationId)
    pending.set(organizationId, {
      organizationId,
      events: (before?.events ?? 0) + events,
      bytes: (before?.bytes ?? 0) + bytes,
    })
  }

  async function round(): Promise<void> {
    const counts = [...pending.values()]
    for (let at = 0; at < counts.length; at += STORE_BATCH) {
      const batch = counts.slice(at, at + STORE_BATCH)
      const stored = await pool.run(async sql => storeCounts(sql, batch))
      for (const { organizationId, events, bytes } of batch) {
        // Others were counted during the statement.
        count({ organizationId, events: -events, bytes: -bytes })
        const left = pending.get(organizationId)
        if (left?.events === 0 && left.bytes === 0) pending.delete(organizationId)
      }
      for (const total of stored) totals.set(total.id, total)
    }
    const nowMs = performance.now()
    for (const [id, { dayEndsMs }] of totals) if (dayEndsMs <= nowMs) totals.delete(id)
  }

  const { stop } = startLoop({
    everyMs: STORE_EVERY_MS,
    round,
    last: round,
    onFailure: reason =>
      log.debug('Storing the usage of organizations failed: {reason}', { reason }),
  })

  return {
    check({ organizationId, events, bytes }) {
      const nowMs = performance.now()
      const more = pending.get(organizationId)
      const total = totals.get(organizationId)
      const minuteLeftMs = (total?.minuteEndsMs ?? 0) - nowMs
      const inMinute = (more?.events ?? 0) + (total && minuteLeftMs > 0 ? total.events : 0)
      if (events > 0 && inMinute >= limits.eventsPerMinute) {
        const end = toEnd(minuteLeftMs, MINUTE_MS)
        throw toExceeded('events', 'events a minute', limits.eventsPerMinute, end)
      }
      const dayLeftMs = (total?.dayEndsMs ?? 0) - nowMs
      const today = (more?.bytes ?? 0) + (total && dayLeftMs > 0 ? total.bytes : 0)
      if (today + bytes <= limits.bytesPerDay) return
      throw toExceeded('bytes', 'bytes a day', limits.bytesPerDay, toEnd(dayLeftMs, DAY_MS))
    },
    count,
    async checkWebhook(tx, organizationId) {
      await tx`select from organizations where id = ${organizationId} for no key update`
      const [{ count }] = await tx<[{ count: number }]>`
        select count(*)::int as count
        from projects p
          join webhooks w on w.project_id = p.id
        where p.organization_id = ${organizationId} and p.deleted_at is null and w.deleted_at is null
      `
      if (count < limits.webhooks) return
      const advice = 'Delete one, or ask the operator of the server for more.'
      throw toExceeded('webhooks', 'webhooks', limits.webhooks, advice)
    },
    stop,
  }
}

/** Stores the quota of channels, which `take_channels` reads. */
export async function storeChannelQuota(sql: Queryable, maxChannels: number): Promise<void> {
  const max = Math.min(maxChannels, 2 ** 31 - 1)
  await sql`update installation set max_channels = ${max} where max_channels is distinct from ${max}`
}

/**
 * Takes room for a channel if it does not exist. Throws `quota_exceeded` if the organization has
 * all of its channels.
 */
export async function takeChannel(
  sql: Queryable,
  { projectId, slug, maxChannels }: { projectId: string; slug: string; maxChannels: number },
): Promise<void> {
  const [{ is_full: isFull }] = await sql<[{ is_full: boolean }]>`
    select take_channels(array[${projectId}::uuid], array[${slug}::text]) <> '{}' as is_full
  `
  if (isFull) throw tooManyChannels(maxChannels)
}

export function tooManyChannels(maxChannels: number): Fault {
  const advice = 'Use one of its channels, or ask the operator of the server for more.'
  return toExceeded('channels', 'channels', maxChannels, advice)
}

/** Says when a quota begins anew. Without a stored total, the clock of this process tells. */
function toEnd(leftMs: number, periodMs: number): string {
  const nowMs = Date.now()
  const endMs = nowMs + (leftMs > 0 ? leftMs : periodMs - (nowMs % periodMs))
  const time = new Date(endMs).toISOString()
  return `It begins anew at ${time}.`
}

/** Adds counts to those of the current minute and day. Returns the totals. */
async function storeCounts(sql: Pool['sql'], counts: readonly Counted[]): Promise<Total[]> {
  const rows = await sql<
    (Pick<Total, 'id' | 'events' | 'bytes'> & { minute_ms: number; day_ms: number })[]
  >`
    with used as (
      select u.id, u.events, u.bytes
      from unnest(
        ${toArray(counts.map(({ organizationId }) => organizationId))}::uuid[],
        ${toArray(counts.map(({ events }) => events))}::bigint[],
        ${toArray(counts.map(({ bytes }) => bytes))}::bigint[]
      ) as u (id, events, bytes)
        join organizations o using (id)
      -- All processes lock organizations in the same order.
      order by u.id
    )
    insert into organization_usage as s (organization_id, minute, events, day, bytes)
    select id, date_trunc('minute', now()), events, date_trunc('day', now(), 'UTC'), bytes from used
    on conflict (organization_id) do update set
      events = excluded.events + case when s.minute = excluded.minute then s.events else 0 end,
      minute = excluded.minute,
      bytes = excluded.bytes + case when s.day = excluded.day then s.bytes else 0 end,
      day = excluded.day
    returning
      organization_id as id, events::float8, bytes::float8,
      (extract(epoch from minute + interval '1 minute' - now()) * 1000)::float8 as minute_ms,
      (extract(epoch from day + interval '1 day' - now()) * 1000)::float8 as day_ms
  `
  const nowMs = performance.now()
  return rows.map(({ minute_ms: minuteMs, day_ms: dayMs, ...used }) => ({
    ...used,
    minuteEndsMs: nowMs + minuteMs,
    dayEndsMs: nowMs + dayMs,
  }))
}

/** Counts a refusal, and returns the fault that says which quota is used, and what to do. */
function toExceeded(quota: string, what: string, limit: number, advice: string): Fault {
  quotaRefusals.inc({ quota })
  const used = `The organization has used its quota of ${what} (${limit.toLocaleString('en')}).`
  return new Fault('quota_exceeded', `${used} ${advice}`)
}
