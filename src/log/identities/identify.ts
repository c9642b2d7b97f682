import { invalidKey } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { toArray, alignRows } from '../../database/arrays.ts'
import { createBatcher } from '../../database/batch.ts'
import { runBriefly, type Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import { parseExact } from '../../http/exact-json.ts'
import {
  StillRunning,
  type IdempotencyClaim,
  type InFlightRequests,
  type IdempotencyOutcome,
} from '../../http/limits/idempotency.ts'
import type { Quotas } from '../../http/limits/quotas.ts'
import type { Identified, IdentifyInput } from './schema.ts'

/** A batch holds the logs of its projects for as long as this many identifies take. */
const MAX_ROWS = 100
/** An alias takes about as long as so many bytes of properties. */
const ALIAS_COST = 4 * 1024

/** Why an alias was not created, by the codes that the SQL function `claim_aliases` returns. */
const REASONS = {
  repeated: 'Repeated in this request',
  own_user_id: "Equals this user's own user_id",
  other_user_id: "Equals another user's user_id",
  own_alias: 'Already an alias of this user',
  other_alias: 'Already an alias of another user',
  too_many: 'This user already has 1,000 aliases',
}

/** The codes that tell whose name an alias is. */
const OWNERS = new Set(['other_user_id', 'own_alias', 'other_alias'])
const HIDDEN_REASON = 'Already in use'

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

interface Row {
  ord: number
  outcome: IdempotencyOutcome | 'running'
  body: string
}

interface IdentityWriterOptions {
  pool: Pool
  inflight: InFlightRequests
  quotas: Pick<Quotas, 'check' | 'count'>
  /** Called after each commit with the project of an identify and its organization. */
  onIdentified(projectId: string, organizationId: string): void
}

/**
 * Creates the only writer of identify. Calls that arrive together share a transaction, which locks
 * the logs of their projects.
 */
export function createIdentityWriter({
  pool,
  inflight,
  quotas,
  onIdentified,
}: IdentityWriterOptions): IdentityWriter {
  const batcher = createBatcher({
    async run(jobs: PreparedJob[], isBrief) {
      const identify = (sql: Queryable) => identifyRows(sql, jobs)
      const rows = await (isBrief ? runBriefly(pool, identify) : pool.run(identify))
      return alignRows(rows, jobs.length)
    },
    toResult(row, { projectId, organizationId }): IdentifyResult {
      // No row means that the project was deleted.
      if (!row) throw invalidKey()
      const { outcome, body } = row
      if (outcome === 'running') throw new StillRunning()
      if (outcome === 'done') onIdentified(projectId, organizationId)
      return { outcome, body }
    },
    toGroup: ({ projectId }) => projectId,
    toBytes: toCost,
    maxJobs: MAX_ROWS,
  })

  return {
    async identify(job) {
      const { properties } = job.input
      const propertiesJson = properties ? JSON.stringify(properties) : null
      const prepared = { ...job, propertiesJson }
      const user = { organizationId: job.organizationId, events: 0, bytes: countBytes(prepared) }
      quotas.check(user)
      const written = await (job.claim
        ? inflight.once(job.projectId, job.claim, () => batcher.add(prepared))
        : batcher.add(prepared))
      if (written.outcome === 'done') quotas.count(user)
      return written
    },
    get waiting() {
      return batcher.waiting
    },
    drain: batcher.drain,
  }
}

/**
 * Returns the response to identify, from the body that Postgres has written, with reasons in place
 * of codes. A key that may not read users gets nothing that the request did not send: no stored
 * properties, and no owners of aliases. `body` can be a replay.
 */
export function toIdentifyResponse(
  body: string,
  input: IdentifyInput,
  mayReadUsers: boolean,
): string {
  // Most responses have no failed alias, and keep their bytes.
  if (mayReadUsers && !body.includes('"failed":[')) return body
  const response = parseExact(body).value as { data: Identified }
  const { data } = response
  for (const one of data.aliases.failed ?? []) {
    const isHidden = !mayReadUsers && OWNERS.has(one.reason)
    one.reason = isHidden ? HIDDEN_REASON : REASONS[one.reason as keyof typeof REASONS]
  }
  // The user of a replay may be erased since. Its response is empty.
  if (!mayReadUsers) data.properties = (data.userId !== null && input.properties) || {}
  return JSON.stringify(response)
}

/** Returns the UTF-8 bytes of the texts of a user. */
function countBytes({ propertiesJson, input: { user_id: userId, aliases = [] } }: PreparedJob) {
  return [userId, ...aliases, propertiesJson ?? ''].reduce(
    (sum, text) => sum + Buffer.byteLength(text),
    0,
  )
}

/** Returns the cost of a job, in bytes of properties that take as long. */
function toCost({ propertiesJson, input: { aliases = [] } }: PreparedJob): number {
  return (propertiesJson?.length ?? 0) + ALIAS_COST * aliases.length
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
