import { toArray } from '../db/arrays.ts'
import { createBatcher } from '../db/batch.ts'
import type { Pool } from '../db/pool.ts'
import { toReason } from '../errors.ts'
import { toRateLimitResult, type RateLimitResult } from '../limits/rate-limit.ts'
import { logger } from '../log.ts'
import { admissionBatch } from '../metrics.ts'
import { parseScopes, type Scope } from './schema.ts'

const MAX_WAITING = 20_000
const USAGE_EVERY_MS = 15_000
const USAGE_BATCH = 500

const log = logger('keys')

/** A key that is neither revoked nor expired. */
export interface Key {
  id: string
  projectId: string
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
  /** Requests that wait for admission. */
  readonly waiting: number
  /** Stores the remaining usage counts, and stops. */
  stop(): Promise<void>
}

interface Row {
  hash: string
  id: string
  project_id: string
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
    // Windows are upserted in the order of keys, so that processes cannot deadlock.
    const rows = await pool.run(
      sql => sql<Row[]>`
      with requested as (
        select decode(r.hash, 'hex') as hash, r.n
        from unnest(${toArray([...counts.keys()])}::text[], ${toArray([...counts.values()])}::int[]) as r (hash, n)
      ), known as (
        select k.id, k.hash, k.project_id, k.scopes, k.rate_limit, r.n
        from requested r
          join api_keys k on k.hash = r.hash
        where k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
      ), counted as (
        insert into rate_windows as w (key_id, used, started_at)
        select id, n, now() from known order by id
        on conflict (key_id) do update set
          -- A window that begins more than 5 s in the future means that the clock was set back.
          used = case
            when w.started_at > now() - interval '60 s' and w.started_at <= now() + interval '5 s'
              then least(w.used + excluded.used, 1000000000)
            else excluded.used
          end,
          started_at = case
            when w.started_at > now() - interval '60 s' and w.started_at <= now() + interval '5 s'
              then w.started_at
            else excluded.started_at
          end
        returning key_id, used, started_at
      )
      select
        encode(k.hash, 'hex') as hash, k.id, k.project_id, array_to_string(k.scopes, ' ') as scopes, k.rate_limit,
        c.used, ceil(extract(epoch from c.started_at + interval '60 s'))::float8 as reset_at,
        extract(epoch from c.started_at + interval '60 s' - now())::float8 as retry_after
      from known k
        join counted c on c.key_id = k.id
    `,
    )
    const byHash = new Map(rows.map(row => [row.hash, { row, key: toKey(row), nth: 0 }]))
    return hashes.map(hash => {
      const found = byHash.get(hash)
      if (!found) return undefined
      usage.set(found.key.id, (usage.get(found.key.id) ?? 0) + 1)
      const { row, key } = found
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
        .catch((error: unknown) => {
          log.debug('Storing the usage of keys failed: {reason}', { reason: toReason(error) })
        })
    }
  }

  const batcher = createBatcher({
    run,
    toResult: admitted => admitted,
    maxJobs: 5_000,
    maxWaiting: MAX_WAITING,
    observe: jobs => admissionBatch.observe(jobs),
  })
  const timer = setInterval(() => void writeUsage(), USAGE_EVERY_MS)
  timer.unref()

  return {
    admit: hash => batcher.add(hash),
    get waiting() {
      return batcher.waiting
    },
    async stop() {
      clearInterval(timer)
      await batcher.drain()
      await writeUsage()
    },
  }
}

function toKey(row: Row): Key {
  return { id: row.id, projectId: row.project_id, scopes: parseScopes(row.scopes) }
}
