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
/** Small usage is stored this often, in place of every second. */
const STORE_SMALL_EVERY_MS = 15_000
/** Usage below this share of a quota is small. */
const SMALL_SHARE = 0.01
const STORE_BATCH = 500
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** How long an organization that sends nothing is remembered. */
const FORGET_AFTER_MS = 60_000

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

/** The usage of an organization, as this process knows it. */
interface Usage {
  /** Counted here and not stored yet. */
  events: number
  bytes: number
  /** The totals over all processes when they were last stored here. */
  storedEvents: number
  storedBytes: number
  storedAtMs: number
  /** When an event or a user was last checked. */
  checkedAtMs: number
  /** When the minute and the day of the totals end, in milliseconds of `performance.now`. */
  minuteEndsMs: number
  dayEndsMs: number
}

interface StoredRow {
  id: string
  events: number
  bytes: number
  minute_left_ms: number
  day_left_ms: number
}

interface QuotasOptions {
  limits: QuotaLimits
  pool: Pool
}

/**
 * Counts what organizations use, in memory. A timer adds the counts to those of other processes,
 * and reads the totals. So quotas are exact within about a second over all processes, and cost no
 * request a query.
 */
export function createQuotas({ limits, pool }: QuotasOptions): Quotas {
  const usages = new Map<string, Usage>()

  function getUsage(organizationId: string): Usage {
    const found = usages.get(organizationId)
    if (found) return found
    const usage: Usage = {
      events: 0,
      bytes: 0,
      storedEvents: 0,
      storedBytes: 0,
      storedAtMs: -Infinity,
      checkedAtMs: 0,
      minuteEndsMs: 0,
      dayEndsMs: 0,
    }
    usages.set(organizationId, usage)
    return usage
  }

  /** Adds the counts of these organizations to the stored ones. */
  async function store(batch: [string, Usage][]): Promise<void> {
    const counts = batch.map(([id, { events, bytes }]) => ({ id, events, bytes }))
    const rows = await pool.run(async sql => storeCounts(sql, counts))
    const totals = new Map(rows.map(row => [row.id, row]))
    const nowMs = performance.now()
    for (const { id, events, bytes } of counts) {
      const usage = getUsage(id)
      usage.events -= events
      usage.bytes -= bytes
      usage.storedAtMs = nowMs
      const total = totals.get(id)
      // A deleted organization has none.
      if (!total) continue
      usage.storedEvents = total.events
      usage.storedBytes = total.bytes
      usage.minuteEndsMs = nowMs + total.minute_left_ms
      usage.dayEndsMs = nowMs + total.day_left_ms
    }
  }

  async function round(isLast = false): Promise<void> {
    const nowMs = performance.now()
    const due = [...usages].filter(([, usage]) => {
      if (usage.events === 0 && usage.bytes === 0) return false
      const isSmall =
        usage.events < limits.eventsPerMinute * SMALL_SHARE &&
        usage.bytes < limits.bytesPerDay * SMALL_SHARE
      return isLast || !isSmall || nowMs - usage.storedAtMs > STORE_SMALL_EVERY_MS
    })
    for (let at = 0; at < due.length; at += STORE_BATCH) {
      await store(due.slice(at, at + STORE_BATCH))
    }
    for (const [id, { events, bytes, checkedAtMs }] of usages) {
      if (events > 0 || bytes > 0 || nowMs - checkedAtMs <= FORGET_AFTER_MS) continue
      usages.delete(id)
    }
  }

  const { stop } = startLoop({
    everyMs: STORE_EVERY_MS,
    round: () => round(),
    last: () => round(true),
    onFailure: reason =>
      log.debug('Storing the usage of organizations failed: {reason}', { reason }),
  })

  return {
    check({ organizationId, events, bytes }) {
      const usage = getUsage(organizationId)
      const nowMs = performance.now()
      usage.checkedAtMs = nowMs
      const { minuteEndsMs, dayEndsMs } = usage
      const inMinute = usage.events + (minuteEndsMs > nowMs ? usage.storedEvents : 0)
      if (events > 0 && inMinute >= limits.eventsPerMinute) {
        const end = toEnd(minuteEndsMs - nowMs, MINUTE_MS)
        throw toExceeded('events', 'events a minute', limits.eventsPerMinute, end)
      }
      const today = usage.bytes + (dayEndsMs > nowMs ? usage.storedBytes : 0)
      if (today + bytes <= limits.bytesPerDay) return
      const end = toEnd(dayEndsMs - nowMs, DAY_MS)
      throw toExceeded('bytes', 'bytes a day', limits.bytesPerDay, end)
    },
    count({ organizationId, events, bytes }) {
      const usage = getUsage(organizationId)
      usage.events += events
      usage.bytes += bytes
    },
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
function storeCounts(
  sql: Pool['sql'],
  counts: readonly { id: string; events: number; bytes: number }[],
): PromiseLike<StoredRow[]> {
  return sql<StoredRow[]>`
    with used as (
      select u.id, u.events, u.bytes
      from unnest(
        ${toArray(counts.map(({ id }) => id))}::uuid[],
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
      (extract(epoch from minute + interval '1 minute' - now()) * 1000)::float8 as minute_left_ms,
      (extract(epoch from day + interval '1 day' - now()) * 1000)::float8 as day_left_ms
  `
}

/** Counts a refusal, and returns the fault that says which quota is used, and what to do. */
function toExceeded(quota: string, what: string, limit: number, advice: string): Fault {
  quotaRefusals.inc({ quota })
  const used = `The organization has used its quota of ${what} (${limit.toLocaleString('en')}).`
  return new Fault('quota_exceeded', `${used} ${advice}`)
}
