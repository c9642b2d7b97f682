import { toArray, toBytea } from '../db/arrays.ts'
import { createBatcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import { invalidKey } from '../errors.ts'
import { setNewest } from '../functions.ts'
import { newId } from '../ids.ts'
import {
  StillRunning,
  type IdempotencyClaim,
  type InFlightRequests,
  type IdempotencyOutcome,
} from '../limits/idempotency.ts'
import type { DeferredAdmission } from '../keys/deferred-admission.ts'
import { toRateLimitResult, type RateLimitResult } from '../limits/rate-limit.ts'
import { appendBatch } from '../metrics.ts'
import type { NewEvent } from './new-event.ts'
import { toEventResponse, toResponseHead, toResponseTail } from './event-json.ts'

const MAX_ROWS = 500
const MAX_WAITING = 20_000
const MAX_CHANNELS = 10_000
const CHANNEL_FRESH_MS = 5_000

interface AppendJob {
  projectId: string
  event: NewEvent
  requestId: string
  claim: IdempotencyClaim | undefined
  /** Its admission, unless the request was admitted before. */
  admission: DeferredAdmission | undefined
}

interface AppendResult {
  outcome: IdempotencyOutcome
  body: string
}

export interface Appender {
  /**
   * Resolves when the event is committed. `body` is the whole JSON response. A repeated
   * Idempotency-Key gets the response of the first request.
   */
  append(job: AppendJob): Promise<AppendResult>
  /** The number of events that wait for the next batch. */
  readonly waiting: number
  /** Resolves when no event is waiting or being appended. */
  drain(): Promise<void>
}

/** The result of append_events. */
interface Row {
  at_ms: string
  /** For each key: limit, used, reset_at, retry_after. */
  windows: ([number, number, number, number] | null)[] | null
  seqs: (number | null)[]
  notes: Note[] | null
}

/** What append_events says about one event, by its position from 1. */
interface Note {
  ord: number
  outcome: 'replayed' | 'reused' | 'running' | null
  body: string | null
  /** This and the next two fields are null for a cached channel. */
  channelUuid: string | null
  channelId: string | null
  channelName: string | null
  userId: string | null
}

/** The fields of a channel that an event's row and response need. */
interface EventChannel {
  uuid: string
  id: string
  name: string
}

/** The outcome of one job. */
interface Appended {
  /** Undefined if the request was admitted before; null if no live key has its hash. */
  rateLimit: RateLimitResult | null | undefined
  /** Undefined if the event was not appended. */
  seq: number | undefined
  atMs: number
  note: Note | undefined
  cachedChannel: EventChannel | undefined
}

export interface AppenderOptions {
  pool: Pool
  inflight: InFlightRequests
  /** Called after each commit with the projects that have new events. */
  onAppended?(projectIds: ReadonlySet<string>): void
}

/**
 * The only writer of events. Requests that arrive together are counted and appended in one
 * transaction.
 */
export function createAppender({ pool, inflight, onAppended }: AppenderOptions): Appender {
  const channelCache = createChannelCache()

  async function run(jobs: AppendJob[]): Promise<Appended[]> {
    const nowMs = performance.now()
    const channels = jobs.map(({ projectId, event }) =>
      channelCache.find(projectId, event.channelSlug, nowMs),
    )
    const projects = number(jobs, ({ projectId }) => projectId)
    const keys = number(jobs, ({ admission }) =>
      admission && !admission.isSettled ? admission.hash : undefined,
    )
    let row: Row
    try {
      row = await pool.run(sql => appendRows(sql, { jobs, channels, projects, keys }))
    } catch (error) {
      // A cached channel may have been deleted, so the retry must look it up.
      channelCache.clear()
      throw error
    }
    const notes = new Map(row.notes?.map(note => [note.ord - 1, note]))
    const appended = new Set<string>()
    const places = keys.values.map(() => 0)
    const results = jobs.map((job, index): Appended => {
      const seq = row.seqs[index] ?? undefined
      if (seq !== undefined) appended.add(job.projectId)
      return {
        rateLimit: toRateLimit(row, keys, index, places),
        seq,
        atMs: Number(row.at_ms),
        note: notes.get(index),
        cachedChannel: channels[index],
      }
    })
    if (appended.size > 0) onAppended?.(appended)
    return results
  }

  /** Throws when the request was not admitted, or the project was deleted. */
  function toResult(result: Appended, job: AppendJob): AppendResult {
    const { rateLimit, seq, note, cachedChannel } = result
    const { projectId, event, requestId } = job
    if (rateLimit !== undefined) job.admission?.settle(rateLimit ?? undefined)
    if (note?.outcome === 'running') throw new StillRunning()
    if (note?.outcome && note.body !== null) return { outcome: note.outcome, body: note.body }
    if (seq === undefined) throw invalidKey()
    const channel = cachedChannel ?? toChannel(note)
    if (!cachedChannel) {
      channelCache.remember(projectId, event.channelSlug, channel, performance.now())
    }
    const assigned = {
      seq: String(seq),
      channelId: channel.id,
      channelName: channel.name,
      userId: note?.userId ?? event.userRef,
      createdAtMs: result.atMs,
    }
    return { outcome: 'done', body: toEventResponse(event, assigned, requestId) }
  }

  const batcher = createBatcher({
    run,
    toResult,
    toGroup: ({ projectId }) => projectId,
    toBytes,
    maxJobs: MAX_ROWS,
    maxRunning: pool.capacity,
    maxWaiting: MAX_WAITING,
    observe: jobs => appendBatch.observe(jobs),
  })

  return {
    async append(job) {
      const { projectId, claim, admission } = job
      if (!claim) return batcher.add(job)
      // This request may get the response of the one that runs, but counts by itself.
      if (admission && inflight.isRunning(projectId, claim)) await admission.admit()
      return inflight.once(projectId, claim, () => batcher.add(job))
    },
    get waiting() {
      return batcher.waiting
    },
    drain: () => batcher.drain(),
  }
}

/** The distinct values of a column, and for each job the position of its value, from 1. */
interface Numbered {
  values: string[]
  counts: number[]
  numbers: (number | null)[]
}

/** Numbers the distinct values of the jobs. A job without a value has no number. */
function number(jobs: AppendJob[], toValue: (job: AppendJob) => string | undefined): Numbered {
  const values: string[] = []
  const counts: number[] = []
  const known = new Map<string, number>()
  const numbers = jobs.map(job => {
    const value = toValue(job)
    if (value === undefined) return null
    let position = known.get(value)
    if (position === undefined) {
      position = values.push(value)
      counts.push(0)
      known.set(value, position)
    }
    counts[position - 1] = (counts[position - 1] ?? 0) + 1
    return position
  })
  return { values, counts, numbers }
}

/**
 * Returns the effect of a job's request on the window of its key. `places` has the number of
 * requests of each key before this one, and is advanced.
 */
function toRateLimit(
  row: Row,
  { counts, numbers }: Numbered,
  index: number,
  places: number[],
): RateLimitResult | null | undefined {
  const position = numbers[index]
  if (position === null || position === undefined) return undefined
  const window = row.windows?.[position - 1]
  if (!window) return null
  const [limit, used, resetAt, retryAfter] = window
  const nth = (places[position - 1] ?? 0) + 1
  places[position - 1] = nth
  return toRateLimitResult({ limit, used, resetAt, retryAfter }, counts[position - 1] ?? 0, nth)
}

interface Batch {
  jobs: AppendJob[]
  /** The cached channel of each job. */
  channels: (EventChannel | undefined)[]
  projects: Numbered
  keys: Numbered
}

async function appendRows(
  sql: Pool['sql'],
  { jobs, channels: cached, projects, keys }: Batch,
): Promise<Row> {
  // Events of a batch that create the same channel share one candidate.
  const candidates = new Map<string, EventChannel>()
  const channels = jobs.map(({ projectId, event, claim }, index) => {
    const channel = cached[index]
    // For a cached channel, the name is only needed in a response that the function stores.
    if (channel) return claim ? { ...channel, slug: null } : toUuidOnly(channel)
    const key = `${projectId} ${event.channelSlug}`
    const candidate = candidates.get(key) ?? { ...newId('chn'), name: event.channelName }
    candidates.set(key, candidate)
    return { ...candidate, slug: event.channelSlug }
  })
  const column = (value: (event: NewEvent) => Value, usual: Value = null) =>
    toColumn(jobs, ({ event }) => value(event), usual)
  const keyed = (value: (job: AppendJob, claim: IdempotencyClaim) => string) =>
    toColumn(jobs, job => (job.claim ? value(job, job.claim) : null), null)
  const [row] = await sql<[Row]>`
    select at_ms, windows, seqs, notes
    from append_events(
      ${toArray(projects.values)}::uuid[],
      ${keys.values.length > 0 ? toArray(keys.values.map(toBytea)) : null}::bytea[],
      ${toArray(keys.counts)}::int[],
      ${projects.values.length > 1 ? toArray(projects.numbers) : null}::int[],
      ${toArray(keys.numbers)}::int[],
      ${column(({ id }) => id.uuid)}::uuid[],
      ${column(({ occurredAtMs }) => toTime(occurredAtMs))}::timestamptz[],
      ${toArray(channels.map(({ uuid }) => uuid))}::uuid[],
      ${toColumn(channels, ({ id }) => id, null)}::text[],
      ${toColumn(channels, ({ slug }) => slug, null)}::text[],
      ${toColumn(channels, ({ name }) => name, null)}::text[],
      ${column(({ title }) => title)}::text[],
      ${column(({ description }) => description)}::text[],
      ${column(({ icon }) => icon)}::text[],
      ${column(({ tags }) => (tags.length > 0 ? toArray(tags) : null))}::text[],
      ${column(({ metadataJson }) => metadataJson, '{}')}::text[],
      ${column(({ userRef }) => userRef)}::text[],
      ${column(({ source }) => source, 'api')}::text[],
      ${column(({ notify }) => notify, true)}::boolean[],
      ${keyed((_, { key }) => key)}::text[],
      ${keyed((_, { fingerprint }) => toBytea(fingerprint.toString('hex')))}::bytea[],
      ${keyed(({ event }) => toResponseHead(event))}::text[],
      ${keyed(({ event, requestId }) => toResponseTail(event, requestId))}::text[]
    )
  `
  return row
}

type Value = string | boolean | null

/** Returns a column as an array literal, or null if each value is the usual one. */
function toColumn<Item>(
  items: readonly Item[],
  toValue: (item: Item) => Value,
  usual: Value,
): string | null {
  const values = items.map(toValue)
  return values.every(value => value === usual) ? null : toArray(values)
}

function toUuidOnly({ uuid }: EventChannel) {
  return { uuid, id: null, name: null, slug: null }
}

/** Returns the channel that append_events looked up or created. */
function toChannel(note: Note | undefined): EventChannel {
  const { channelUuid: uuid, channelId: id, channelName: name } = note ?? {}
  if (!uuid || !id || name === undefined || name === null) {
    throw new Error('append_events returned no channel')
  }
  return { uuid, id, name }
}

/**
 * Estimates the bytes that a job sends to Postgres. Short fields count as a constant. An event with
 * an Idempotency-Key is sent twice: as a row and as its response.
 */
function toBytes({ event, claim }: AppendJob): number {
  const { title, description, metadataJson } = event
  const text = 500 + title.length + (description?.length ?? 0) + metadataJson.length
  return claim ? 2 * text : text
}

function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/**
 * Caches channels for 5 s, so that a busy channel is not looked up for each event. Ids never
 * change; a name may be out of date.
 */
function createChannelCache() {
  const channels = new Map<string, { channel: EventChannel; untilMs: number }>()
  return {
    find(projectId: string, slug: string, nowMs: number): EventChannel | undefined {
      const entry = channels.get(`${projectId} ${slug}`)
      return entry && entry.untilMs > nowMs ? entry.channel : undefined
    },
    remember(projectId: string, slug: string, channel: EventChannel, nowMs: number): void {
      const entry = { channel, untilMs: nowMs + CHANNEL_FRESH_MS }
      setNewest(channels, `${projectId} ${slug}`, entry, MAX_CHANNELS)
    },
    clear: () => channels.clear(),
  }
}
