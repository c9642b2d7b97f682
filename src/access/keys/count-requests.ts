import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { admissionBatch } from '../../base/metrics.ts'
import { toArray, toBytea } from '../../database/arrays.ts'
import { createBatcher } from '../../database/batch.ts'
import type { Pool } from '../../database/pool.ts'
import { toRateLimitResult, type RateLimitResult } from '../../http/limits/rate-limit.ts'
import { parseScopes, type Scope } from './schema.ts'

const USAGE_EVERY_MS = 15_000
const USAGE_BATCH = 500

const log = logger('keys')

/** A key that is neither revoked nor expired. */
export interface Key {
  id: string
  projectId: string
  /** The organization of the project. A project never moves to another one. */
  organizationId: string
  scopes: readonly Scope[]
}

export interface AdmittedRequest {
  key: Key
  rateLimit: RateLimitResult
}

export interface Admission {
  /**
   * Counts one request of the key with this SHA-256 (hex). Returns undefined if no live key has it.
   */
  admit(hash: string): Promise<AdmittedRequest | undefined>
  /** Adds a request to the usage counts. `admit` does this by itself. */
  countUsage(keyId: string): void
  /** Requests that wait for admission. */
  readonly waiting: number
  /** Stores the remaining usage counts, and stops. */
  stop(): Promise<void>
}

/**
 * A row of count_requests, with the organization. A hash that no live key has leaves all but `ord`
 * null.
 */
interface Row {
  ord: number
  key_id: string | null
  project_id: string
  organization_id: string | null
  scopes: string
  rate_limit: number
  used: number
  reset_at: number
  retry_after: number
}

/**
 * Admits concurrent requests in batches, one statement per batch. Nothing is cached: a revoked key
 * fails from the next request on, and rate limits are exact across all processes.
 */
export function createAdmission({ pool, background }: { pool: Pool; background: Pool }): Admission {
  // Requests by key id, since usage was last stored.
  const usage = new Map<string, number>()

  async function run(hashes: string[]): Promise<(AdmittedRequest | undefined)[]> {
    const counts = new Map<string, number>()
    for (const hash of hashes) counts.set(hash, (counts.get(hash) ?? 0) + 1)
    const asked = [...counts.keys()]
    const rows = await pool.run(
      sql => sql<Row[]>`
        select
          c.ord, c.key_id, c.project_id,
          (select p.organization_id from projects p where p.id = c.project_id) as organization_id,
          c.scopes, c.rate_limit, c.used, c.reset_at, c.retry_after
        from count_requests(
          ${toArray(asked.map(toBytea))}::bytea[], ${toArray([...counts.values()])}::int[]
        ) c
      `,
    )
    const byHash = new Map(
      rows.map(row => [asked[row.ord - 1] ?? '', { row, key: toKey(row), nth: 0 }]),
    )
    return hashes.map(hash => {
      const found = byHash.get(hash)
      if (!found?.key) return undefined
      const { row, key } = found
      countUsage(key.id)
      const window = {
        limit: row.rate_limit,
        used: row.used,
        resetAt: row.reset_at,
        retryAfter: row.retry_after,
      }
      const rateLimit = toRateLimitResult(window, counts.get(hash) ?? 0, ++found.nth)
      return { key, rateLimit }
    })
  }

  function countUsage(keyId: string): void {
    usage.set(keyId, (usage.get(keyId) ?? 0) + 1)
  }

  /** Stores usage counts for the dashboard. A failed write loses its counts. */
  async function writeUsage(): Promise<void> {
    const counts = [...usage]
    usage.clear()
    for (let at = 0; at < counts.length; at += USAGE_BATCH) {
      const batch = counts.slice(at, at + USAGE_BATCH)
      // Keys are locked in order, so that processes cannot deadlock. Deleted keys are skipped.
      await background
        .run(
          sql => sql`
            with used as (
              select u.id, u.n
              from unnest(
                ${toArray(batch.map(([id]) => id))}::uuid[], ${toArray(batch.map(([, n]) => n))}::bigint[]
              ) as u (id, n)
            ), known as (
              select k.id
              from api_keys k
              where k.id in (select id from used)
              order by k.id
              for no key update
            ), touched as (
              update api_keys k set last_used_at = now() from known where k.id = known.id
            )
            insert into key_usage as u (key_id, hour, requests)
            select id, date_trunc('hour', now()), used.n
            from used
              join known using (id)
            order by id
            on conflict (key_id, hour) do update set requests = u.requests + excluded.requests
          `,
        )
        .catch((error: unknown) => warn(toReason(error)))
    }
  }

  const batcher = createBatcher({
    run,
    toResult: admitted => admitted,
    maxJobs: 5_000,
    observe: jobs => admissionBatch.observe(jobs),
  })
  const writing = startLoop({
    everyMs: USAGE_EVERY_MS,
    round: writeUsage,
    last: writeUsage,
    onFailure: warn,
  })

  return {
    admit: hash => batcher.add(hash),
    countUsage,
    get waiting() {
      return batcher.waiting
    },
    async stop() {
      await batcher.drain()
      await writing.stop()
    },
  }
}

function warn(reason: string): void {
  log.debug('Storing the usage of keys failed: {reason}', { reason })
}

function toKey(row: Row): Key | undefined {
  const { key_id: id, project_id: projectId, organization_id: organizationId, scopes } = row
  // A project that was committed meanwhile has no organization in the snapshot of the statement.
  if (id === null || organizationId === null) return undefined
  return { id, projectId, organizationId, scopes: parseScopes(scopes) }
}
