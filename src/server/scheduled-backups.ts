import { writeBackup, type BackupOptions } from './backup/backup.ts'
import { rotateCopies } from './backup/copies.ts'
import type { BackupSchedule } from '../base/config.ts'
import { describeWrongCounts, REMEDY_OF_COUNTS } from '../database/damage.ts'
import { withLock } from '../database/locks.ts'
import type { Pool } from '../database/pool.ts'
import type { Queryable } from '../database/sql.ts'
import { explainDatabaseError } from '../database/explanation.ts'
import { toReason } from '../base/errors.ts'
import { logger } from '../base/log.ts'
import { startLoop } from '../base/loop.ts'
import { registerGauge } from '../base/metrics.ts'
import type { SecretSource } from '../database/secrets/open-secrets.ts'
import { isDue, toKnownTime } from './schedule.ts'

const log = logger('backup')
const EVERY_MS = 30_000
/** The problem of an attempt until its end is recorded. */
export const BACKUP_NOT_ENDED = 'It has not ended yet, or the server ended during it.'

/** The last scheduled backup of an installation. */
export interface LastBackup {
  attempted_at: Date
  succeeded_at: Date | null
  /** The path of the last complete copy. */
  file: string | null
  /** Why the last attempt failed. Null if it did not. */
  problem: string | null
}

export interface ScheduledBackupOptions extends Pick<BackupOptions, 'cost'> {
  url: string
  /** Connections for small statements. */
  pool: Pool
  source: SecretSource
  schedule: BackupSchedule
  /** Called with the error of a failed backup. */
  onFailure?(error: unknown): void
}

/**
 * Makes the scheduled backups of an installation. A backup that was missed, and the first one, is
 * made at once. A failed one is tried again after an hour. Of several servers, one makes it.
 */
export function startScheduledBackups(options: ScheduledBackupOptions): { stop(): Promise<void> } {
  /** In Unix time; 0 if no backup is known to have succeeded. Undefined until the first read. */
  let succeededS: number | undefined
  const note = (last: LastBackup | undefined) => {
    const at = toKnownTime(last?.succeeded_at ?? null, new Date())
    succeededS = at === null ? 0 : at.getTime() / 1000
  }
  registerGauge(
    'tidings_backup_last_success_timestamp_seconds',
    'When the last scheduled backup was complete, in Unix time. 0 if none was.',
    { read: () => succeededS },
  )
  const loop = startLoop({
    everyMs: EVERY_MS,
    runsAtOnce: true,
    async round(signal) {
      // A backup can take hours, and the first one can fail to end.
      note(await options.pool.run(readLastBackup))
      note(await makeDueBackup(options, { signal }))
    },
    onFailure: reason =>
      log.warning('The schedule of backups cannot be read: {reason}', { reason }),
  })
  return { stop: () => loop.stop(new Error('The server stopped during the backup.')) }
}

/** Makes a backup if one is due at `now`. Returns the last one, or undefined if there is none. */
export async function makeDueBackup(
  options: ScheduledBackupOptions,
  { now = new Date(), signal }: { now?: Date; signal?: AbortSignal } = {},
): Promise<LastBackup | undefined> {
  const { pool, url, schedule } = options
  const last = await pool.run(readLastBackup)
  if (!isDue(last, schedule, now)) return last
  const lost = new AbortController()
  const onLost = () => lost.abort(new Error('The connection that held the lock was lost.'))
  await withLock(url, 'backups', onLost, async isHeld => {
    // Another server may have made it in the meantime.
    if (!isHeld || !isDue(await pool.run(readLastBackup), schedule, now)) return
    await makeBackup(options, now, AbortSignal.any([lost.signal, ...(signal ? [signal] : [])]))
  })
  return pool.run(readLastBackup)
}

/** Returns the last scheduled backup. Undefined if there was none. */
export async function readLastBackup(sql: Queryable): Promise<LastBackup | undefined> {
  const [row] = await sql<LastBackup[]>`
    select attempted_at, succeeded_at, file, problem from scheduled_backups
  `
  return row
}

async function makeBackup(
  { pool, url, source, schedule, cost, onFailure }: ScheduledBackupOptions,
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  const { folder, keep, passphrase } = schedule
  await pool.run(
    sql => sql`
    insert into scheduled_backups (attempted_at, problem)
    values (${now}, ${BACKUP_NOT_ENDED})
    on conflict (singleton) do update set
      attempted_at = excluded.attempted_at, problem = excluded.problem
  `,
  )
  try {
    const options = { source, passphrase, cost, signal }
    const { file, bytes, wrongCounts } = await writeBackup(url, { folder, at: now }, options)
    await pool.run(
      sql => sql`
      update scheduled_backups set succeeded_at = ${now}, file = ${file}, problem = null
    `,
    )
    log.info('Wrote the backup {file}', { file, bytes })
    for (const difference of describeWrongCounts(wrongCounts))
      log.warning('{difference} {remedy} Until then, no older backup is deleted.', {
        difference,
        remedy: REMEDY_OF_COUNTS,
      })
    // An older backup can have events that a damaged table has lost.
    if (wrongCounts.length === 0) rotate(file, keep)
  } catch (error) {
    onFailure?.(error)
    const problem = explainDatabaseError(error) ?? toReason(error)
    log.error('The scheduled backup failed and will be tried again in an hour: {problem}', {
      problem,
      reason: toReason(error),
    })
    await pool.run(sql => sql`update scheduled_backups set problem = ${problem}`)
  }
}

/** Deletes old copies. A copy that cannot be deleted does not make the backup a failed one. */
function rotate(file: string, keep: number): void {
  try {
    const { deleted, future, foreign } = rotateCopies(file, keep)
    log.debug('Deleted old backups', { deleted, foreign })
    if (future.length > 0)
      log.warning('Backups with times in the future are not deleted: {future}', { future })
  } catch (error) {
    log.error('Old backups could not be deleted: {reason}', { reason: toReason(error) })
  }
}
