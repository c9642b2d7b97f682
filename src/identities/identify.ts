import { toArray, alignRows } from '../db/arrays.ts'
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
import type { IdentifyInput } from './schema.ts'

const MAX_ROWS = 100
const MAX_WAITING = 5_000

interface IdentifyJob {
  projectId: string
  input: IdentifyInput
  requestId: string
  claim: IdempotencyClaim | undefined
}

export interface IdentityWriter {
  /** Creates or updates an identity and its aliases. `body` is the whole JSON response. */
  identify(job: IdentifyJob): Promise<{ outcome: IdempotencyOutcome; body: string }>
  /** The number of jobs that wait for the next batch. */
  readonly waiting: number
  /** Resolves when no job is waiting or running. */
  drain(): Promise<void>
}

/** A job with its properties as JSON. Null keeps the stored properties. */
type PreparedJob = IdentifyJob & { propertiesJson: string | null }

interface Row {
  ord: number
  outcome: IdempotencyOutcome | 'running'
  body: string
}

/**
 * Creates the only writer of identify. Calls that arrive together share a transaction, which locks
 * the logs of their projects.
 */
export function createIdentityWriter({
  pool,
  inflight,
}: {
  pool: Pool
  inflight: InFlightRequests
}): IdentityWriter {
  const batcher = createBatcher({
    async run(jobs: PreparedJob[]) {
      const rows = await pool.run(sql => identifyRows(sql, jobs))
      return alignRows(rows, jobs.length)
    },
    toResult(row) {
      // No row means that the project was deleted.
      if (!row) throw invalidKey()
      const { outcome, body } = row
      if (outcome === 'running') throw new StillRunning()
      return { outcome, body }
    },
    toGroup: ({ projectId }) => projectId,
    toBytes: ({ propertiesJson }) => 500 + 2 * (propertiesJson?.length ?? 0),
    maxJobs: MAX_ROWS,
    maxWaiting: MAX_WAITING,
  })
  return {
    identify(job) {
      const { properties } = job.input
      const propertiesJson = properties ? JSON.stringify(properties) : null
      const work = () => batcher.add({ ...job, propertiesJson })
      return job.claim ? inflight.once(job.projectId, job.claim, work) : work()
    },
    get waiting() {
      return batcher.waiting
    },
    drain: () => batcher.drain(),
  }
}

function identifyRows(sql: Pool['sql'], jobs: PreparedJob[]): Promise<Row[]> {
  const ids = jobs.map(() => newId('idn'))
  const column = (value: (job: PreparedJob) => string | null) => toArray(jobs.map(value))
  return sql<Row[]>`
    select ord, outcome, body
    from identify_users(
      ${column(({ projectId }) => projectId)}::uuid[],
      ${column(({ input }) => input.user_id)}::text[],
      ${toArray(ids.map(({ uuid }) => uuid))}::uuid[],
      ${toArray(ids.map(({ id }) => id))}::text[],
      ${column(({ propertiesJson }) => propertiesJson)}::text[],
      ${column(({ input }) => JSON.stringify(input.aliases ?? []))}::text[],
      ${column(({ claim }) => claim?.key ?? null)}::text[],
      ${column(({ claim }) => (claim ? `\\x${claim.fingerprint.toString('hex')}` : null))}::bytea[],
      ${column(({ requestId }) => `,"requestId":"${requestId}"}`)}::text[]
    )
  `
}
