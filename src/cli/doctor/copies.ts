import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../../base/config.ts'
import { NIL_UUID } from '../../base/ids.ts'
import { isLockHeld } from '../../database/locks.ts'
import type { Sql } from '../../database/sql.ts'
import { hasLaterCopy } from '../../server/backup/copies.ts'
import { toKnownTime } from '../../server/schedule.ts'
import { BACKUP_NOT_ENDED, readLastBackup } from '../../server/scheduled-backups.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

const OLD_BACKUP_MS = 26 * 3_600_000

/** Checks the last scheduled backup, if there is a schedule. */
export async function checkBackups(
  sql: Sql,
  { backupSchedule }: Pick<Config, 'backupSchedule'>,
  now = new Date(),
): Promise<Finding[]> {
  const check = 'backups'
  if (!backupSchedule) return []
  const last = await readLastBackup(sql)
  if (!last) return [warning(check, 'None yet. A running server makes the first one at once.')]
  const { attempted_at: attemptedAt, succeeded_at: succeededAt, file } = last
  const known = toKnownTime(succeededAt, now)
  const isOld = known === null || now.getTime() - known.getTime() > OLD_BACKUP_MS
  const made =
    succeededAt === null
      ? 'None was made yet'
      : `The last one is ${file} of ${succeededAt.toISOString()}`
  if (last.problem === BACKUP_NOT_ENDED && (await isLockHeld(sql, 'backups'))) {
    const text = `One has been running since ${attemptedAt.toISOString()}. ${made}.`
    return [(isOld ? warning : ok)(check, text)]
  }
  if (last.problem !== null) {
    const at = attemptedAt.toISOString()
    return [failed(check, `The attempt at ${at} failed: ${last.problem} ${made}.`)]
  }
  if (succeededAt !== null && known === null) {
    return [
      failed(
        check,
        `${made}, which lies in the future: a clock was wrong. Correct the clock. A running server then makes the next one.`,
      ),
    ]
  }
  if (isOld) return [failed(check, `${made}. Check that a server is running, and read its log.`)]
  // The server can run on another machine.
  if (file === null || !existsSync(dirname(file)) || existsSync(file)) return [ok(check, made)]
  if (hasLaterCopy(file)) return [ok(check, `${made}. A later backup has replaced it.`)]
  const remedy = `Find out who deleted it, and run \`tidings backup ${dirname(file)}\`.`
  return [failed(check, `${made}, which is missing. ${remedy}`)]
}

/** A month is exported some time after its end. */
const LATE_DAYS = 40
const MAX_CHANNELS = 100_000

/** Tells of events that retention keeps because no export has written them. */
export async function checkExport(
  sql: Sql,
  { retentionNeedsExport }: Pick<Config, 'retentionNeedsExport'>,
): Promise<Finding[]> {
  if (!retentionNeedsExport) return []
  const [row] = await sql<[{ projects: number }]>`
    select count(distinct project_id)::int as projects
    from channels_with_retention(${NIL_UUID}, ${NIL_UUID}, ${MAX_CHANNELS})
    where late_s > ${LATE_DAYS * 86_400}
  `
  return [
    row.projects === 0
      ? ok('export', 'Retention waits for no export')
      : warning(
          'export',
          `Expired events of ${row.projects} projects are kept, because they are not exported. Check the timer of \`tidings export\`.`,
        ),
  ]
}
