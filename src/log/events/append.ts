import { invalidKey } from '../../base/errors.ts'
import { setNewest } from '../../base/functions.ts'
import { appendBatch } from '../../base/metrics.ts'
import { createBatcher, type Batcher } from '../../database/batch.ts'
import { runBriefly, transact, type Pool } from '../../database/pool.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import {
  StillRunning,
  type InFlightRequests,
  type IdempotencyOutcome,
} from '../../http/limits/idempotency.ts'
import { takeChannel, tooManyChannels } from '../../http/limits/quotas.ts'
import { toRateLimitResult, type RateLimitResult } from '../../http/limits/rate-limit.ts'
import { invalidField } from '../../http/validation.ts'
import {
  appendOnNode,
  appendRows,
  number,
  type AppendedRows,
  type AppendJob,
  type Batch,
  type EventChannel,
  type Note,
  type Numbered,
} from './append-statement.ts'
import { toEventResponse } from './event-json.ts'
import { toNewEvent, type NewEvent } from './new-event.ts'
import type { EventInput } from './schema.ts'

const MAX_ROWS = 500
const MAX_CHANNELS = 10_000
const CHANNEL_FRESH_MS = 5_000
const MAX_PROJECTS = 10_000

interface AppendResult {
  outcome: IdempotencyOutcome
  body: string
}

export interface Appender {
  /**
   * Resolves when the event is committed. `body` is the whole JSON response. A repeated
   * Idempotency-Key gets the response of the first request. With `then`, the event has a
   * transaction of its own.
   */
  append(job: AppendJob, then?: AppendStep): Promise<AppendResult>
  /** The number of events that wait for the next batch. */
  readonly waiting: number
  /** Resolves when no event is waiting or being appended. */
  drain(): Promise<void>
}

/** Runs in the transaction that has appended an event, at a time in ms since 1970. */
export type AppendStep = (tx: Tx, createdAtMs: number) => Promise<void>

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
  /** For an event with a further step. It takes longer than a batch, and waits for its own log. */
  stepPool?: Pool
  inflight: InFlightRequests
  /** Called after each commit with the projects that have new events. */
  onAppended?(projectIds: ReadonlySet<string>): void
  /** True if projects are on several nodes. Each node then has batches of its own. */
  isDistributed?: boolean
  /** The quota of channels of an organization. */
  maxChannels?: number
}

/**
 * The only writer of events. Requests that arrive together are counted and appended in one
 * transaction.
 */
export function createAppender({
  pool,
  stepPool = pool,
  inflight,
  onAppended,
  isDistributed = false,
  maxChannels = Infinity,
}: AppenderOptions): Appender {
  const channelCache = createChannelCache()
  const places = createPlaces(pool)

  function toBatch(jobs: AppendJob[]): Batch {
    const nowMs = performance.now()
    return {
      jobs,
      channels: jobs.map(({ projectId, event }) =>
        channelCache.find(projectId, event.channelSlug, nowMs),
      ),
      projects: number(jobs.map(({ projectId }) => projectId)),
      keys: number(
        jobs.map(({ admission }) => (admission?.isSettled === false ? admission.hash : undefined)),
      ),
    }
  }

  /** Appends to the logs of each shard on its own, in the order in which all servers do. */
  async function runOnNode(jobs: AppendJob[], isBrief: boolean): Promise<Appended[]> {
    const shards = new Map<string, number>()
    for (const { projectId } of jobs)
      if (!shards.has(projectId)) shards.set(projectId, (await places.find(projectId)).shard)
    const groups = [...Map.groupBy(jobs, ({ projectId }) => shards.get(projectId) ?? 0)]
    const batches = groups.sort(([a], [b]) => a - b).map(([, own]) => toBatch(own))
    const append = (sql: Queryable) => appendOnNode(sql, batches)
    const rows = await (isBrief ? runBriefly(pool, append) : pool.run(append))
    const appended = new Map<AppendJob, Appended>()
    batches.forEach((batch, nth) => {
      // append_batches returns one row per batch.
      const results = toAppended(batch, rows[nth] as AppendedRows)
      results.forEach((result, index) => appended.set(batch.jobs[index] as AppendJob, result))
    })
    return jobs.map(job => appended.get(job) as Appended)
  }

  async function run(jobs: AppendJob[], isBrief: boolean, then?: AppendStep): Promise<Appended[]> {
    let results: Appended[]
    try {
      if (isDistributed) {
        results = await runOnNode(jobs, isBrief)
      } else {
        const batch = toBatch(jobs)
        const append = async (sql: Queryable) => toAppended(batch, await appendRows(sql, batch))
        const appendWith = async (tx: Tx) => {
          const made = await append(tx)
          if (made[0]?.seq) await then?.(tx, made[0].atMs)
          return made
        }
        results = await (then
          ? transact(stepPool.of(jobs[0]?.projectId ?? ''), appendWith)
          : isBrief
            ? runBriefly(pool, append)
            : pool.run(append))
      }
    } catch (error) {
      // A cached channel may have been deleted, and a project moved, so the retry must look it up.
      channelCache.clear()
      places.clear()
      throw error
    }
    const projectIds = jobs.flatMap(({ projectId }, n) => (results[n]?.seq ? [projectId] : []))
    if (projectIds.length > 0) onAppended?.(new Set(projectIds))
    return results
  }

  function toAppended({ jobs, channels, keys }: Batch, row: AppendedRows): Appended[] {
    const notes = new Map(row.notes?.map(note => [note.ord - 1, note]))
    const places = keys.values.map(() => 0)
    return jobs.map((_, index) => ({
      rateLimit: toRateLimit(row, keys, index, places),
      seq: row.seqs[index] ?? undefined,
      atMs: Number(row.at_ms),
      note: notes.get(index),
      cachedChannel: channels[index],
    }))
  }

  /** Throws when the request was not admitted, or the project was deleted. */
  function toResult(result: Appended, job: AppendJob): AppendResult {
    const { rateLimit, seq, note, cachedChannel } = result
    const { projectId, event, requestId } = job
    if (rateLimit !== undefined) job.admission?.settle(rateLimit ?? undefined)
    if (note?.outcome === 'running') throw new StillRunning()
    if (note?.outcome === 'full') throw tooManyChannels(maxChannels)
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
      level: note?.level ?? null,
      state: note?.state ?? null,
      threadSeq: note?.threadSeq ?? null,
      createdAtMs: result.atMs,
    }
    return { outcome: 'done', body: toEventResponse(event, assigned, requestId) }
  }

  const batchers = new Map<number, Batcher<AppendJob, AppendResult>>()

  function toBatcher(node: number): Batcher<AppendJob, AppendResult> {
    const known = batchers.get(node)
    if (known) return known
    const batcher = createBatcher({
      run,
      toResult,
      toGroup: ({ projectId }) => projectId,
      toBytes,
      maxJobs: MAX_ROWS,
      observe: jobs => appendBatch.observe(jobs),
    })
    batchers.set(node, batcher)
    return batcher
  }

  async function add(job: AppendJob): Promise<AppendResult> {
    if (!isDistributed) return toBatcher(0).add(job)
    // Counted on the coordinator, before the statement goes to the node of the project.
    if (job.admission?.isSettled === false) await job.admission.admit()
    const { projectId, event } = job
    if (!channelCache.find(projectId, event.channelSlug, performance.now()))
      await pool.run(sql => takeChannel(sql, { projectId, slug: event.channelSlug, maxChannels }))
    return toBatcher((await places.find(projectId)).node).add(job)
  }

  return {
    async append(job, then) {
      const { projectId, claim, admission } = job
      if (then && isDistributed)
        throw invalidField(
          'actions',
          'invalid_value',
          'This server has its projects on several nodes',
        )
      const write = async () =>
        then ? toResult((await run([job], false, then))[0] as Appended, job) : add(job)
      if (!claim) return write()
      // This request may get the response of the one that runs, but counts by itself.
      if (admission && inflight.isRunning(projectId, claim)) await admission.admit()
      return inflight.once(projectId, claim, write)
    },
    get waiting() {
      return batchers.values().reduce((sum, { waiting }) => sum + waiting, 0)
    },
    async drain() {
      await Promise.all(batchers.values().map(batcher => batcher.drain()))
    },
  }
}

/** An event that the server writes itself. */
export type OwnEvent = Omit<EventInput, 'channelName'>

/**
 * Appends an event of the server in the transaction of what it tells, and locks the log. Undefined
 * if its project or channel is gone. After the commit, call `onAppended`.
 */
export async function appendOwn(
  tx: Tx,
  { projectId, channelId }: { projectId: string; channelId: string },
  own: OwnEvent,
): Promise<(Pick<NewEvent, 'id'> & { seq: number }) | undefined> {
  const [channel] = await tx<EventChannel[]>`
    select c.id as uuid, c.public_id as id, c.name from channel_by_id(${projectId}, ${channelId}) c
  `
  if (!channel) return undefined
  const event = toNewEvent({ ...own, channelName: channel.name })
  const { seqs } = await appendRows(tx, {
    jobs: [{ projectId, event, requestId: '', claim: undefined, admission: undefined }],
    channels: [channel],
    projects: number([projectId]),
    keys: number([undefined]),
  })
  const [seq] = seqs
  return seq ? { id: event.id, seq } : undefined
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

/** Returns the channel that append_batch looked up or created. */
function toChannel(note: Note | undefined): EventChannel {
  const { channelUuid: uuid, channelId: id, channelName: name } = note ?? {}
  if (!uuid || !id || name === undefined || name === null) {
    throw new Error('append_batch returned no channel')
  }
  return { uuid, id, name }
}

/** Estimates the bytes that a job sends to Postgres. Short fields count as a constant. */
function toBytes({ event: { title, description, metadataJson, url } }: AppendJob): number {
  return 500 + title.length + (description?.length ?? 0) + metadataJson.length + (url?.length ?? 0)
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

/** The shard of Citus that has the log of a project, and its node. */
interface Place {
  node: number
  shard: number
}

/** Finds the shards that have the logs of projects, and remembers them. */
function createPlaces(pool: Pool) {
  const places = new Map<string, Place>()
  return {
    async find(projectId: string): Promise<Place> {
      const known = places.get(projectId)
      if (known) return known
      const [place] = await pool.run(
        sql => sql<[Place]>`
          select p.groupid as node, p.shardid::int as shard
          from pg_dist_placement p
          where p.shardid = get_shard_id_for_distribution_column('event_logs', ${projectId}::uuid)
        `,
      )
      setNewest(places, projectId, place, MAX_PROJECTS)
      return place
    },
    clear: () => places.clear(),
  }
}
