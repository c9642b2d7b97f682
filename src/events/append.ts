import { toArray } from '../db/arrays.ts'
import { createBatcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import { invalidKey } from '../errors.ts'
import { newId } from '../ids.ts'
import {
  StillRunning,
  type IdempotencyClaim,
  type InFlightRequests,
  type IdempotencyOutcome,
} from '../limits/idempotency.ts'
import { appendBatch } from '../metrics.ts'
import type { Draft } from './draft.ts'
import { toEventAnswer, toHead, toTail } from './event-json.ts'

const MAX_ROWS = 500
const MAX_WAITING = 20_000
const MAX_CHANNELS = 10_000
const CHANNEL_FRESH_MS = 5_000

interface Append {
  projectId: string
  draft: Draft
  requestId: string
  claim: IdempotencyClaim | undefined
}

interface Appended {
  outcome: IdempotencyOutcome
  body: string
}

export interface Appender {
  /** Resolves when the event is committed. `body` is the whole answer; that of a replay is the first one. */
  append(job: Append): Promise<Appended>
  readonly waiting: number
  drain(): Promise<void>
}

interface Row {
  ord: number
  outcome: IdempotencyOutcome | 'running'
  seq: string
  at_ms: string
  /** This and the next two are null for a known channel. */
  channel_id: string | null
  channel_public_id: string | null
  channel_name: string | null
  user_id: string | null
  body: string | null
}

/** A channel as events need it. */
interface KnownChannel {
  uuid: string
  id: string
  name: string
}

interface Placed {
  row: Row
  knownChannel: KnownChannel | undefined
}

export interface AppenderOptions {
  pool: Pool
  inflight: InFlightRequests
  /** Called after each commit with the projects that have new events. */
  onAppended?(projectIds: ReadonlySet<string>): void
}

/** The only write path of the log. Events that arrive together are appended in one transaction. */
export function createAppender({ pool, inflight, onAppended }: AppenderOptions): Appender {
  const known = createKnownChannels()

  async function run(jobs: Append[]): Promise<(Placed | undefined)[]> {
    const nowMs = performance.now()
    const channels = jobs.map(({ projectId, draft }) =>
      known.find(projectId, draft.channelSlug, nowMs),
    )
    try {
      const rows = await pool.run(sql => appendRows(sql, jobs, channels))
      const placed = new Array<Placed | undefined>(jobs.length)
      const appended = new Set<string>()
      for (const row of rows) {
        const index = row.ord - 1
        placed[index] = { row, knownChannel: channels[index] }
        const job = jobs[index]
        if (job && row.outcome === 'done') appended.add(job.projectId)
      }
      if (appended.size > 0) onAppended?.(appended)
      return placed
    } catch (error) {
      // The retry must look up a channel that may be gone.
      known.clear()
      throw error
    }
  }

  /** Throws when the job has no row: its project is gone. */
  function toResult(placed: Placed | undefined, { projectId, draft, requestId }: Append): Appended {
    if (!placed) throw invalidKey()
    const { row, knownChannel } = placed
    if (row.outcome === 'running') throw new StillRunning()
    const channel = knownChannel ?? toChannel(row)
    // Under a reused key the channel may never have been created.
    if (row.channel_id !== null && row.outcome === 'done') {
      known.keep(projectId, draft.channelSlug, channel, performance.now())
    }
    if (row.body !== null) return { outcome: row.outcome, body: row.body }
    const place = {
      seq: row.seq,
      channelId: channel.id,
      channelName: channel.name,
      userId: row.user_id,
      createdAtMs: Number(row.at_ms),
    }
    return { outcome: row.outcome, body: toEventAnswer(draft, place, requestId) }
  }

  function appendRows(
    sql: Pool['sql'],
    jobs: Append[],
    found: (KnownChannel | undefined)[],
  ): Promise<Row[]> {
    // Events of a batch that create the same channel share one candidate.
    const candidates = new Map<string, KnownChannel>()
    const channels = jobs.map(({ projectId, draft }, index) => {
      const channel = found[index]
      // Of a known channel, only an answer that the function writes needs the name.
      if (channel) return jobs[index]?.claim ? { ...channel, slug: null } : toBare(channel)
      const key = `${projectId} ${draft.channelSlug}`
      const candidate = candidates.get(key) ?? { ...newId('chn'), name: draft.channelName }
      candidates.set(key, candidate)
      return { ...candidate, slug: draft.channelSlug }
    })
    const column = (value: (job: Append) => string | null) => toArray(jobs.map(value))
    const keyed = (value: (job: Append, claim: IdempotencyClaim) => string) =>
      toArray(jobs.map(job => (job.claim ? value(job, job.claim) : null)))
    return sql<Row[]>`
      select ord, outcome, seq, at_ms, channel_id, channel_public_id, channel_name, user_id, body
      from append_events(
        ${column(({ projectId }) => projectId)}::uuid[],
        ${column(({ draft }) => draft.id.uuid)}::uuid[],
        ${column(({ draft }) => toTime(draft.occurredAtMs))}::timestamptz[],
        ${toArray(channels.map(({ uuid }) => uuid))}::uuid[],
        ${toArray(channels.map(({ id }) => id))}::text[],
        ${toArray(channels.map(({ slug }) => slug))}::text[],
        ${toArray(channels.map(({ name }) => name))}::text[],
        ${column(({ draft }) => draft.title)}::text[],
        ${column(({ draft }) => draft.description)}::text[],
        ${column(({ draft }) => draft.icon)}::text[],
        ${column(({ draft }) => toArray(draft.tags))}::text[],
        ${column(({ draft }) => draft.metadataJson)}::text[],
        ${column(({ draft }) => draft.userRef)}::text[],
        ${column(({ draft }) => draft.source)}::text[],
        ${toArray(jobs.map(({ draft }) => draft.notify))}::boolean[],
        ${keyed((_, { key }) => key)}::text[],
        ${keyed((_, { fingerprint }) => `\\x${fingerprint.toString('hex')}`)}::bytea[],
        ${keyed(({ draft }) => toHead(draft))}::text[],
        ${keyed(({ draft, requestId }) => toTail(draft, requestId))}::text[]
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

function toBare({ uuid }: KnownChannel) {
  return { uuid, id: null, name: null, slug: null }
}

/** The channel that the function looked up or created. */
function toChannel(row: Row): KnownChannel {
  if (row.channel_id === null || row.channel_public_id === null || row.channel_name === null) {
    throw new Error('append_events returned no channel')
  }
  return { uuid: row.channel_id, id: row.channel_public_id, name: row.channel_name }
}

/** An estimate: short fields count as a constant. A keyed event is sent twice, as a row and as its answer. */
function toBytes({ draft, claim }: Append): number {
  const { title, description, metadataJson } = draft
  const text = 500 + title.length + (description?.length ?? 0) + metadataJson.length
  return claim ? 2 * text : text
}

function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** Remembers channels for some seconds, so that a busy one is not looked up for each event. Ids never change; names may. */
function createKnownChannels() {
  const channels = new Map<string, { channel: KnownChannel; untilMs: number }>()
  return {
    find(projectId: string, slug: string, nowMs: number): KnownChannel | undefined {
      const entry = channels.get(`${projectId} ${slug}`)
      return entry && entry.untilMs > nowMs ? entry.channel : undefined
    },
    keep(projectId: string, slug: string, channel: KnownChannel, nowMs: number): void {
      if (channels.size >= MAX_CHANNELS) channels.delete(channels.keys().next().value ?? '')
      const name = `${projectId} ${slug}`
      channels.delete(name)
      channels.set(name, { channel, untilMs: nowMs + CHANNEL_FRESH_MS })
    },
    clear: () => channels.clear(),
  }
}
