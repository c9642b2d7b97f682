import { createKnownChannels, type KnownChannel } from '../channels/known.ts'
import { toArray } from '../db/arrays.ts'
import { createBatcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import { invalidKey } from '../errors.ts'
import { newId } from '../ids.ts'
import { StillRunning, type Claim, type Inflight, type Outcome } from '../limits/idempotency.ts'
import { appendBatch } from '../metrics.ts'
import { toEventAnswer, toHead, toTail, type Draft } from './draft.ts'

const MAX_ROWS = 500
const MAX_WAITING = 20_000

export interface Append {
  projectId: string
  draft: Draft
  requestId: string
  claim: Claim | undefined
}

/** What became of an append: `body` is the whole answer, for a replay the one of the first time. */
export interface Appended {
  outcome: Outcome
  body: string
}

export interface Appender {
  /** Resolves when the event is committed. */
  append(job: Append): Promise<Appended>
  readonly waiting: number
  drain(): Promise<void>
}

interface Row {
  ord: number
  outcome: Outcome | 'running'
  seq: string
  at_ms: string
  /** Null, as the two after it, for a channel that was known. */
  channel_id: string | null
  channel_public_id: string | null
  channel_name: string | null
  user_id: string | null
  body: string | null
}

/** What the log made of a job, and the channel that it went to where that was known before. */
interface Placed {
  row: Row
  knownChannel: KnownChannel | undefined
}

export interface AppenderOptions {
  pool: Pool
  inflight: Inflight
  /** Told, after each commit, which projects have new events. */
  onAppended?(projectIds: ReadonlySet<string>): void
}

/** The one write path of the log: events that arrive together are appended in one transaction. */
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
      // A channel that is gone must be looked up again before the retry.
      known.clear()
      throw error
    }
  }

  /** Throws when the job's project is gone: then the function had no row for it. */
  function toResult(placed: Placed | undefined, { projectId, draft, requestId }: Append): Appended {
    if (!placed) throw invalidKey()
    const { row, knownChannel } = placed
    if (row.outcome === 'running') throw new StillRunning()
    const channel = knownChannel ?? toChannel(row)
    // Under a reused key the channel may be one that was never made.
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
    // One candidate for all events of a batch that may make the same channel.
    const candidates = new Map<string, KnownChannel>()
    const channels = jobs.map(({ projectId, draft }, index) => {
      const channel = found[index]
      // Only an answer that the function writes needs the name of a known one.
      if (channel) return jobs[index]?.claim ? { ...channel, slug: null } : toBare(channel)
      const key = `${projectId} ${draft.channelSlug}`
      const candidate = candidates.get(key) ?? { ...newId('chn'), name: draft.channelName }
      candidates.set(key, candidate)
      return { ...candidate, slug: draft.channelSlug }
    })
    const column = (value: (job: Append) => string | null) => toArray(jobs.map(value))
    const keyed = (value: (job: Append, claim: Claim) => string) =>
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

/** The channel that the function looked up or made. */
function toChannel(row: Row): KnownChannel {
  if (row.channel_id === null || row.channel_public_id === null || row.channel_name === null) {
    throw new Error('append_events returned no channel')
  }
  return { uuid: row.channel_id, id: row.channel_public_id, name: row.channel_name }
}

/** Nearly: what is short in every event counts as a constant. A keyed one is sent twice, as rows and as its answer. */
function toBytes({ draft, claim }: Append): number {
  const { title, description, metadataJson } = draft
  const text = 500 + title.length + (description?.length ?? 0) + metadataJson.length
  return claim ? 2 * text : text
}

function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
