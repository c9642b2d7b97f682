import { invalidKey } from '../../base/errors.ts'
import { setNewest } from '../../base/functions.ts'
import { newId } from '../../base/ids.ts'
import { createSemaphore } from '../../base/semaphore.ts'
import { toArray, alignRows } from '../../database/arrays.ts'
import { createBatcher, type Batcher } from '../../database/batch.ts'
import { runBriefly, type Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import {
  StillRunning,
  type IdempotencyClaim,
  type InFlightRequests,
  type IdempotencyOutcome,
} from '../../http/limits/idempotency.ts'
import type { Quotas } from '../../http/limits/quotas.ts'
import type { IdentifyInput } from './schema.ts'

/** The number of concurrent batches. An organization has one at a time. */
const MAX_RUNNING = 2
/** A batch holds the log of its projects for as long as this many jobs with this cost take. */
const MAX_ROWS = 100
const MAX_BATCH_COST = 256 * 1024
/** An alias takes about as long as so many bytes of properties. */
const ALIAS_COST = 4 * 1024
const MAX_BATCHERS = 1_000

interface IdentifyJob {
  organizationId: string
  projectId: string
  input: IdentifyInput
  requestId: string
  claim: IdempotencyClaim | undefined
}

interface IdentifyResult {
  outcome: IdempotencyOutcome
  body: string
}

export interface IdentityWriter {
  /**
   * Creates or updates an identity and its aliases. `body` is the JSON response, with codes in
   * place of reasons. Rejects with `quota_exceeded`.
   */
  identify(job: IdentifyJob): Promise<IdentifyResult>
  /** The number of jobs that wait for their batch. */
  readonly waiting: number
  /** Resolves when no job is waiting or running. */
  drain(): Promise<void>
}

/** A job with its properties as JSON. Null keeps the stored properties. */
type PreparedJob = IdentifyJob & { propertiesJson: string | null }

interface Waiting {
  job: PreparedJob
  resolve(result: Promise<IdentifyResult>): void
}

/** The jobs of an organization that wait for its next batch. */
interface Queue {
  jobs: Waiting[]
  /** Settles when the queue is empty and its last batch has ended. */
  emptied: Promise<void>
}

interface Row {
  ord: number
  outcome: IdempotencyOutcome | 'running'
  body: string
}

export interface IdentityWriterOptions {
  pool: Pool
  inflight: InFlightRequests
  quotas: Pick<Quotas, 'check' | 'count'>
  /** Called after each commit with the project of an identify and its organization. */
  onIdentified?(projectId: string, organizationId: string): void
}

/**
 * Creates the only writer of identify. Waiting calls of an organization share a transaction, which
 * locks the logs of their projects. No transaction has calls of two organizations.
 */
export function createIdentityWriter({
  pool,
  inflight,
  quotas,
  onIdentified,
}: IdentityWriterOptions): IdentityWriter {
  const turns = createSemaphore({ total: MAX_RUNNING, perKey: 1 })
  const queues = new Map<string, Queue>()
  // Kept after their queues are empty, because a batcher remembers which projects are locked.
  const batchers = new Map<string, Batcher<PreparedJob, IdentifyResult>>()

  function createOrganizationBatcher() {
    return createBatcher({
      async run(jobs: PreparedJob[], isBrief) {
        const identify = (sql: Queryable) => identifyRows(sql, jobs)
        const rows = await (isBrief ? runBriefly(pool, identify) : pool.run(identify))
        return alignRows(rows, jobs.length)
      },
      toResult(row, { projectId, organizationId }) {
        // No row means that the project was deleted.
        if (!row) throw invalidKey()
        const { outcome, body } = row
        if (outcome === 'running') throw new StillRunning()
        if (outcome === 'done') onIdentified?.(projectId, organizationId)
        return { outcome, body }
      },
      toGroup: ({ projectId }) => projectId,
      maxJobs: MAX_ROWS,
    })
  }

  function add(job: PreparedJob): Promise<IdentifyResult> {
    const { organizationId } = job
    return new Promise(resolve => {
      const queue = queues.get(organizationId)
      if (queue) return void queue.jobs.push({ job, resolve })
      const created = { jobs: [{ job, resolve }], emptied: Promise.resolve() }
      queues.set(organizationId, created)
      created.emptied = empty(organizationId, created)
    })
  }

  /** Runs the batches of a queue until it is empty. */
  async function empty(organizationId: string, queue: Queue): Promise<void> {
    while (queue.jobs.length > 0) {
      await turns.run(organizationId, async () => {
        const batch = takeBatch(queue)
        const batcher = batchers.get(organizationId) ?? createOrganizationBatcher()
        setNewest(batchers, organizationId, batcher, MAX_BATCHERS)
        for (const { job, resolve } of batch) resolve(batcher.add(job))
        await batcher.drain()
      })
    }
    queues.delete(organizationId)
  }

  return {
    async identify(job) {
      const { properties } = job.input
      const propertiesJson = properties ? JSON.stringify(properties) : null
      const prepared = { ...job, propertiesJson }
      const user = { organizationId: job.organizationId, events: 0, bytes: countBytes(prepared) }
      quotas.check(user)
      const written = await (job.claim
        ? inflight.once(job.projectId, job.claim, () => add(prepared))
        : add(prepared))
      if (written.outcome === 'done') quotas.count(user)
      return written
    },
    get waiting() {
      return queues.values().reduce((sum, { jobs }) => sum + jobs.length, 0)
    },
    async drain() {
      while (queues.size > 0) await Promise.all(queues.values().map(({ emptied }) => emptied))
    },
  }
}

/** Returns the UTF-8 bytes of the texts of a user. */
function countBytes({ propertiesJson, input: { user_id: userId, aliases = [] } }: PreparedJob) {
  return [userId, ...aliases, propertiesJson ?? ''].reduce(
    (sum, text) => sum + Buffer.byteLength(text),
    0,
  )
}

/** Removes the first jobs of a queue, up to the cost of a batch. */
function takeBatch(queue: Queue): Waiting[] {
  let cost = 0
  let size = 0
  while (size < queue.jobs.length && size < MAX_ROWS) {
    const next = toCost(queue.jobs[size])
    if (size > 0 && cost + next > MAX_BATCH_COST) break
    cost += next
    size++
  }
  return queue.jobs.splice(0, size)
}

function toCost(waiting: Waiting | undefined): number {
  if (!waiting) return 0
  const { propertiesJson, input } = waiting.job
  return (propertiesJson?.length ?? 0) + ALIAS_COST * (input.aliases?.length ?? 0)
}

function identifyRows(sql: Queryable, jobs: PreparedJob[]): Promise<Row[]> {
  const ids = jobs.map(() => newId('idn'))
  const column = (value: (job: PreparedJob) => string | null) => toArray(jobs.map(value))
  return sql<Row[]>`
    select ord, outcome, body
    from write_identities(
      project_ids => ${column(({ projectId }) => projectId)}::uuid[],
      user_ids => ${column(({ input }) => input.user_id)}::text[],
      ids => ${toArray(ids.map(({ uuid }) => uuid))}::uuid[],
      public_ids => ${toArray(ids.map(({ id }) => id))}::text[],
      properties_list => ${column(({ propertiesJson }) => propertiesJson)}::json[],
      alias_lists => ${column(({ input }) => JSON.stringify(input.aliases ?? []))}::json[],
      keys => ${column(({ claim }) => claim?.key ?? null)}::text[],
      fingerprints => ${column(({ claim }) => (claim ? `\\x${claim.fingerprint.toString('hex')}` : null))}::bytea[],
      response_tails => ${column(({ requestId }) => `,"requestId":"${requestId}"}`)}::text[]
    )
  `
}
