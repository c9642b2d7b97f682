import type { Config } from '../../base/config.ts'
import { isLockHeld } from '../../database/locks.ts'
import type { Sql } from '../../database/sql.ts'
import { readSize } from '../../log/archive/files.ts'
import { readLastRun, RUN_NOT_ENDED } from '../../log/archive/runs.ts'
import { toKnownTime } from '../../server/schedule.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

/** Runs are daily. One that is this old was missed. */
const OLD_ARCHIVE_MS = 36 * 3_600_000

export async function checkArchive(
  sql: Sql,
  { archive }: Pick<Config, 'archive'>,
): Promise<Finding[]> {
  const check = 'archive'
  if (!archive) return []
  const last = await readLastRun(sql)
  if (!last) return [warning(check, 'No run yet. A running server begins the first one at once.')]
  const { files, events, missing } = await readSize(sql)
  const made =
    last.succeeded_at === null
      ? 'No run was complete yet'
      : `The last complete run ended at ${last.succeeded_at.toISOString()}. ${events} events are in ${files} files`
  const now = new Date()
  const known = toKnownTime(last.succeeded_at, now)
  const isOld = known === null || now.getTime() - known.getTime() > OLD_ARCHIVE_MS
  if (last.problem === RUN_NOT_ENDED && (await isLockHeld(sql, 'archive'))) {
    const text = `A run has been in progress since ${last.attempted_at.toISOString()}. ${made}.`
    return [(isOld ? warning : ok)(check, text)]
  }
  if (last.problem !== null) {
    const at = last.attempted_at.toISOString()
    return [failed(check, `The run of ${at} failed: ${last.problem} ${made}.`)]
  }
  if (isOld) {
    return [failed(check, `${made}. Check that a server is running, and read its log.`)]
  }
  return missing === 0
    ? [ok(check, made)]
    : [
        warning(
          check,
          `${made}. ${missing} files are missing. Put a copy of each back under its name.`,
        ),
      ]
}
