import { createBatcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import { invalidKey } from '../errors.ts'
import {
  StillRunning,
  type InFlightRequests,
  type IdempotencyOutcome,
} from '../limits/idempotency.ts'
import { toRateLimitResult, type RateLimitResult } from '../limits/rate-limit.ts'
import { appendBatch } from '../metrics.ts'
import {
  appendRows,
  number,
  type AppendedRows,
  type AppendJob,
  type Note,
  type Numbered,
} from './append-statement.ts'
import { createChannelCache, type EventChannel } from './channel-cache.ts'
import { toEventResponse } from './event-json.ts'

const MAX_ROWS = 500
const MAX_WAITING = 20_000

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
    const projects = number(jobs.map(({ projectId }) => projectId))
    const keys = number(
      jobs.map(({ admission }) => (admission?.isSettled === false ? admission.hash : undefined)),
    )
    let row: AppendedRows
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
    maxWaiting: MAX_WAITING,
    groupShare: 0.5,
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

/**
 * Returns the effect of a job's request on the window of its key. `places` has the number of
 * requests of each key before this one, and is advanced.
 */
function toRateLimit(
  row: AppendedRows,
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
