import type { ArchiveSettings } from '../../base/config/archive.ts'
import { toLock } from '../../database/locks.ts'
import { connect, type Queryable, type Sql } from '../../database/sql.ts'
import { explainDatabaseError } from '../../database/explanation.ts'
import { toReason } from '../../base/errors.ts'
import { findErasureKey } from '../identities/erased-users.ts'
import { openSecrets, type SecretSource } from '../../database/secrets/open-secrets.ts'
import type { Archive } from './archive.ts'
import { createBucketStore } from './bucket-store.ts'
import { createFolderStore } from './folder-store.ts'
import { runArchive, type ArchiveResult } from './run.ts'
import type { ArchiveStore } from './store.ts'

/** The last run of the archive. */
export interface LastRun {
  attempted_at: Date
  succeeded_at: Date | null
  /** Why the last run failed. Null if it did not. */
  problem: string | null
}

export interface RunOptions {
  /** The database itself, without a pooler in transaction mode. */
  url: string
  source: SecretSource
  settings: ArchiveSettings
  /** The place of the settings by default. */
  store?: ArchiveStore
  /** True to take over the archive of another installation. */
  isAdopting?: boolean | undefined
  signal?: AbortSignal | undefined
}

/**
 * Runs the archive, and records the outcome. Undefined if another run is in progress. Throws if the
 * run could not begin; a project that fails is in `problems`.
 */
export async function runRecorded({
  url,
  source,
  settings,
  store = openStore(settings),
  isAdopting,
  signal,
}: RunOptions): Promise<ArchiveResult | undefined> {
  const lost = new AbortController()
  const sql = connect(url, { name: 'archive', max: 2, settings: { statement_timeout: 60_000 } })
  const lock = connect(url, {
    name: 'archive lock',
    max: 1,
    // A lost connection releases the lock, so the run has to stop.
    listener: { onNotify() {}, onClose: () => lost.abort() },
  })
  try {
    const [row] = await lock<[{ is_alone: boolean }]>`
      select pg_try_advisory_lock(${toLock(lock, 'archive')}) as is_alone
    `
    if (!row.is_alone) return undefined
    const erasureKey = await findErasureKey(sql, await openSecrets(sql, source))
    const stop = AbortSignal.any([lost.signal, ...(signal ? [signal] : [])])
    const { afterDays } = settings
    return await record(sql, { sql, store, erasureKey, afterDays, isAdopting, signal: stop })
  } finally {
    await Promise.all([sql.end({ timeout: 1 }), lock.end({ timeout: 1 })])
  }
}

function openStore({ place }: ArchiveSettings): ArchiveStore {
  return typeof place === 'string' ? createFolderStore(place) : createBucketStore(place)
}

/** Returns the last run. Undefined if there was none. */
export async function readLastRun(sql: Queryable): Promise<LastRun | undefined> {
  const [row] = await sql<LastRun[]>`
    select attempted_at, succeeded_at, problem from archive_runs
  `
  return row
}

/** The problem of a run until its end is recorded. */
export const RUN_NOT_ENDED = 'It has not ended yet, or it was interrupted.'

async function record(sql: Sql, archive: Archive): Promise<ArchiveResult> {
  await sql`
    insert into archive_runs (attempted_at, problem)
    values (now(), ${RUN_NOT_ENDED})
    on conflict (singleton) do update set
      attempted_at = excluded.attempted_at, problem = excluded.problem
  `
  try {
    const result = await runArchive(archive)
    const problem = result.problems.length > 0 ? result.problems.join(' ') : null
    await sql`
      update archive_runs set
        problem = ${problem}, succeeded_at = case when ${problem === null} then now() else succeeded_at end
    `
    return result
  } catch (error) {
    await sql`
      update archive_runs set problem = ${explainDatabaseError(error) ?? toReason(error)}
    `.catch(() => {})
    throw error
  }
}
