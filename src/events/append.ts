import { toArray } from '../db/arrays.ts'
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

interface Row {
  ord: number
  outcome: IdempotencyOutcome | 'running'
  seq: string
  at_ms: string
  /** This and the next two fields are null for a cached channel. */
  channel_id: string | null
  channel_public_id: string | null
  channel_name: string | null
  user_id: string | null
  body: string | null
}

/** The fields of a channel that an event's row and response need. */
interface EventChannel {
  uuid: string
  id: string
  name: string
}

interface AppendedRow {
  row: Row
  cachedChannel: EventChannel | undefined
}

export interface AppenderOptions {
  pool: Pool
  inflight: InFlightRequests
  /** Called after each commit with the projects that have new events. */
  onAppended?(projectIds: ReadonlySet<string>): void
}

/** The only writer of events. Events that arrive together are appended in one transaction. */
export function createAppender({ pool, inflight, onAppended }: AppenderOptions): Appender {
  const channelCache = createChannelCache()

  async function run(jobs: AppendJob[]): Promise<(AppendedRow | undefined)[]> {
    const nowMs = performance.now()
    const channels = jobs.map(({ projectId, event }) =>
      channelCache.find(projectId, event.channelSlug, nowMs),
    )
    try {
      const rows = await pool.run(sql => appendRows(sql, jobs, channels))
      const appendedRows = new Array<AppendedRow | undefined>(jobs.length)
      const appended = new Set<string>()
      for (const row of rows) {
        const index = row.ord - 1
        appendedRows[index] = { row, cachedChannel: channels[index] }
        const job = jobs[index]
        if (job && row.outcome === 'done') appended.add(job.projectId)
      }
      if (appended.size > 0) onAppended?.(appended)
      return appendedRows
    } catch (error) {
      // A cached channel may have been deleted, so the retry must look it up.
      channelCache.clear()
      throw error
    }
  }

  /** Throws when the job has no row, because its project was deleted. */
  function toResult(
    appendedRow: AppendedRow | undefined,
    { projectId, event, requestId }: AppendJob,
  ): AppendResult {
    if (!appendedRow) throw invalidKey()
    const { row, cachedChannel } = appendedRow
    if (row.outcome === 'running') throw new StillRunning()
    const channel = cachedChannel ?? toChannel(row)
    // With a reused key, the channel may never have been created.
    if (row.channel_id !== null && row.outcome === 'done') {
      channelCache.remember(projectId, event.channelSlug, channel, performance.now())
    }
    if (row.body !== null) return { outcome: row.outcome, body: row.body }
    const assigned = {
      seq: row.seq,
      channelId: channel.id,
      channelName: channel.name,
      userId: row.user_id,
      createdAtMs: Number(row.at_ms),
    }
    return { outcome: row.outcome, body: toEventResponse(event, assigned, requestId) }
  }

  function appendRows(
    sql: Pool['sql'],
    jobs: AppendJob[],
    found: (EventChannel | undefined)[],
  ): Promise<Row[]> {
    // Events of a batch that create the same channel share one candidate.
    const candidates = new Map<string, EventChannel>()
    const channels = jobs.map(({ projectId, event }, index) => {
      const channel = found[index]
      // For a cached channel, the name is only needed in a response that the function stores.
      if (channel) return jobs[index]?.claim ? { ...channel, slug: null } : toUuidOnly(channel)
      const key = `${projectId} ${event.channelSlug}`
      const candidate = candidates.get(key) ?? { ...newId('chn'), name: event.channelName }
      candidates.set(key, candidate)
      return { ...candidate, slug: event.channelSlug }
    })
    const column = (value: (job: AppendJob) => string | null) => toArray(jobs.map(value))
    const keyed = (value: (job: AppendJob, claim: IdempotencyClaim) => string) =>
      toArray(jobs.map(job => (job.claim ? value(job, job.claim) : null)))
    return sql<Row[]>`
      select ord, outcome, seq, at_ms, channel_id, channel_public_id, channel_name, user_id, body
      from append_events(
        ${column(({ projectId }) => projectId)}::uuid[],
        ${column(({ event }) => event.id.uuid)}::uuid[],
        ${column(({ event }) => toTime(event.occurredAtMs))}::timestamptz[],
        ${toArray(channels.map(({ uuid }) => uuid))}::uuid[],
        ${toArray(channels.map(({ id }) => id))}::text[],
        ${toArray(channels.map(({ slug }) => slug))}::text[],
        ${toArray(channels.map(({ name }) => name))}::text[],
        ${column(({ event }) => event.title)}::text[],
        ${column(({ event }) => event.description)}::text[],
        ${column(({ event }) => event.icon)}::text[],
        ${column(({ event }) => toArray(event.tags))}::text[],
        ${column(({ event }) => event.metadataJson)}::text[],
        ${column(({ event }) => event.userRef)}::text[],
        ${column(({ event }) => event.source)}::text[],
        ${toArray(jobs.map(({ event }) => event.notify))}::boolean[],
        ${keyed((_, { key }) => key)}::text[],
        ${keyed((_, { fingerprint }) => `\\x${fingerprint.toString('hex')}`)}::bytea[],
        ${keyed(({ event }) => toResponseHead(event))}::text[],
        ${keyed(({ event, requestId }) => toResponseTail(event, requestId))}::text[]
      )
    `
  }

  const batcher = createBatcher({
    run,
    toResult,
    toGroup: ({ projectId }) => projectId,
    toBytes,
    maxJobs: MAX_ROWS,
    maxWaiting: MAX_WAITING,
    observe: jobs => appendBatch.observe(jobs),
  })

  return {
    append(job) {
      const work = () => batcher.add(job)
      return job.claim ? inflight.once(job.projectId, job.claim, work) : work()
    },
    get waiting() {
      return batcher.waiting
    },
    drain: () => batcher.drain(),
  }
}

function toUuidOnly({ uuid }: EventChannel) {
  return { uuid, id: null, name: null, slug: null }
}

/** Returns the channel that append_events looked up or created. */
function toChannel(row: Row): EventChannel {
  if (row.channel_id === null || row.channel_public_id === null || row.channel_name === null) {
    throw new Error('append_events returned no channel')
  }
  return { uuid: row.channel_id, id: row.channel_public_id, name: row.channel_name }
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
