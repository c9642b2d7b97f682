import { createKnownChannels } from '../channels/known.ts'
import { toArray } from '../db/arrays.ts'
import { createBatcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import { invalidKey } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Claim, Inflight, Outcome } from '../limits/idempotency.ts'
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
  outcome: Outcome
  seq: string
  at_ms: string
  channel_id: string
  channel_public_id: string
  channel_name: string
  user_id: string | null
  body: string | null
}

/** The one write path of the log: events that arrive together are appended in one transaction. */
export function createAppender({ pool, inflight }: { pool: Pool; inflight: Inflight }): Appender {
  const known = createKnownChannels()

  async function run(jobs: Append[]): Promise<(Appended | undefined)[]> {
    const nowMs = Date.now()
    const rows = await pool.run(sql => appendRows(sql, jobs, nowMs))
    const results = new Array<Appended | undefined>(jobs.length)
    for (const row of rows) {
      const { draft, projectId, requestId } = jobs[row.ord - 1]!
      const channel = { uuid: row.channel_id, id: row.channel_public_id, name: row.channel_name }
      known.keep(projectId, draft.channelSlug, channel, nowMs)
      const place = {
        seq: row.seq,
        channelId: channel.id,
        channelName: channel.name,
        userId: row.user_id,
        createdAtMs: Number(row.at_ms),
      }
      const body = row.body ?? toEventAnswer(draft, place, requestId)
      results[row.ord - 1] = { outcome: row.outcome, body }
    }
    return results
  }

  function appendRows(sql: Pool['sql'], jobs: Append[], nowMs: number): Promise<Row[]> {
    const candidates = new Map<string, { uuid: string; id: string; name: string }>()
    const channels = jobs.map(({ projectId, draft }) => {
      const found = known.find(projectId, draft.channelSlug, nowMs)
      if (found) return { ...found, slug: null }
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
    async run(jobs: Append[]) {
      try {
        return await run(jobs)
      } catch (error) {
        // A channel that is gone must be looked up again before the retry.
        known.clear()
        throw error
      }
    },
    maxJobs: MAX_ROWS,
    maxWaiting: MAX_WAITING,
    observe: jobs => appendBatch.observe(jobs),
  })

  return {
    append(job) {
      const work = async () => {
        const appended = await batcher.add(job)
        if (!appended) throw invalidKey()
        return appended
      }
      return job.claim ? inflight.once(job.projectId, job.claim, work) : work()
    },
    get waiting() {
      return batcher.waiting
    },
    drain: () => batcher.drain(),
  }
}

function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
