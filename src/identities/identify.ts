import { toArray } from '../db/arrays.ts'
import { createBatcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import { invalidKey } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Claim, Inflight, Outcome } from '../limits/idempotency.ts'
import type { IdentifyInput } from './schema.ts'

const MAX_ROWS = 100
const MAX_WAITING = 5_000

export interface Identify {
  projectId: string
  input: IdentifyInput
  requestId: string
  claim: Claim | undefined
}

export interface Identifier {
  /** Creates or updates one identity and claims its aliases; `body` is the whole answer. */
  identify(job: Identify): Promise<{ outcome: Outcome; body: string }>
  drain(): Promise<void>
}

interface Row {
  ord: number
  outcome: Outcome
  body: string
}

/** Identifies that arrive together share a transaction, and the project's lock with the events. */
export function createIdentifier({
  pool,
  inflight,
}: {
  pool: Pool
  inflight: Inflight
}): Identifier {
  const batcher = createBatcher({
    async run(jobs: Identify[]) {
      const rows = await pool.run(sql => identifyRows(sql, jobs))
      const results = new Array<Row | undefined>(jobs.length)
      for (const row of rows) results[row.ord - 1] = row
      return results
    },
    toResult(row) {
      // No row: the project is gone.
      if (!row) throw invalidKey()
      return row
    },
    toGroup: ({ projectId }) => projectId,
    maxJobs: MAX_ROWS,
    maxWaiting: MAX_WAITING,
  })
  return {
    identify(job) {
      const work = () => batcher.add(job)
      return job.claim ? inflight.once(job.projectId, job.claim, work) : work()
    },
    drain: () => batcher.drain(),
  }
}

function identifyRows(sql: Pool['sql'], jobs: Identify[]): Promise<Row[]> {
  const ids = jobs.map(() => newId('idn'))
  const column = (value: (job: Identify) => string | null) => toArray(jobs.map(value))
  return sql<Row[]>`
    select ord, outcome, body
    from identify_users(
      ${column(({ projectId }) => projectId)}::uuid[],
      ${column(({ input }) => input.user_id)}::text[],
      ${toArray(ids.map(({ uuid }) => uuid))}::uuid[],
      ${toArray(ids.map(({ id }) => id))}::text[],
      ${column(({ input }) => (input.properties ? JSON.stringify(input.properties) : null))}::text[],
      ${column(({ input }) => JSON.stringify(input.aliases ?? []))}::text[],
      ${column(({ claim }) => claim?.key ?? null)}::text[],
      ${column(({ claim }) => (claim ? `\\x${claim.fingerprint.toString('hex')}` : null))}::bytea[],
      ${column(({ requestId }) => `,"requestId":"${requestId}"}`)}::text[]
    )
  `
}
