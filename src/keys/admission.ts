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

/** A live key, as admission knows it. */
export interface Key {
  id: string
  projectId: string
  scopes: readonly Scope[]
}

export interface AdmittedRequest {
  key: Key
  grant: RateLimitResult
}

export interface Admission {
  /** Takes one request of the rate window of the key with this SHA-256. Returns undefined without a live key. */
  admit(hash: string): Promise<AdmittedRequest | undefined>
  readonly waiting: number
  /** Stores the remaining usage of keys, and stops. */
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
 * Admits requests that arrive together in one statement. Nothing is cached, so that a revocation holds from the next
 * request on, and a limit is exact over any number of processes.
 */
export function createAdmission({ pool, background }: { pool: Pool; background: Pool }): Admission {
  // Requests of each key that are not stored yet.
  const used = new Map<string, number>()

  async function run(hashes: string[]): Promise<(AdmittedRequest | undefined)[]> {
    const asked = new Map<string, number>()
    for (const hash of hashes) asked.set(hash, (asked.get(hash) ?? 0) + 1)
    // Windows are upserted in the order of keys, because two processes could deadlock otherwise.
    const rows = await pool.run(
      sql => sql<Row[]>`
      with asked as (
        select decode(a.hash, 'hex') as hash, a.n
        from unnest(${toArray([...asked.keys()])}::text[], ${toArray([...asked.values()])}::int[]) as a (hash, n)
      ), known as (
        select k.id, k.hash, k.project_id, k.scopes, k.rate_limit, asked.n
        from asked
          join api_keys k on k.hash = asked.hash
        where k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
      ), taken as (
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
        t.used, ceil(extract(epoch from t.started_at + interval '60 s'))::float8 as reset_at,
        extract(epoch from t.started_at + interval '60 s' - now())::float8 as retry_after
      from known k
        join taken t on t.key_id = k.id
    `,
    )
    const byHash = new Map(rows.map(row => [row.hash, { row, key: toKey(row), dealt: 0 }]))
    return hashes.map(hash => {
      const found = byHash.get(hash)
      if (!found) return undefined
      used.set(found.key.id, (used.get(found.key.id) ?? 0) + 1)
      const { row, key } = found
      const window = {
        limit: row.rate_limit,
        used: row.used,
        resetAt: row.reset_at,
        retryAfter: row.retry_after,
      }
      return { key, grant: toRateLimitResult(window, asked.get(hash) ?? 0, ++found.dealt) }
    })
  }

  /** Stores usage for the dashboard. A failed write loses its counts. */
  async function writeUsage(): Promise<void> {
    const counts = [...used]
    used.clear()
    for (let at = 0; at < counts.length; at += USAGE_BATCH) {
      const some = counts.slice(at, at + USAGE_BATCH)
      // In the order of keys, against deadlocks. Deleted keys are left out.
      await background
        .run(
          sql => sql`
            with used as (
              select u.id, u.n
              from unnest(
                ${toArray(some.map(([id]) => id))}::uuid[], ${toArray(some.map(([, n]) => n))}::bigint[]
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
          log.debug('The usage of keys was not stored: {reason}', { reason: toReason(error) })
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
