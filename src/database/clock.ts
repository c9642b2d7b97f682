import { toReason } from '../base/errors.ts'
import { logger } from '../base/log.ts'
import type { Pool } from './pool.ts'

const log = logger('clock')
/** The most deliveries that one transaction extends, and the time for those of one check. */
const EXTENDED_ROWS = 2_000
const EXTENDING_MS = 2_000

/**
 * Checks the database's clock at the start. If that fails, the deadlines of deliveries stand still
 * until a later check succeeds.
 */
export async function tryToCheckClock(pool: Pool): Promise<void> {
  try {
    await isClockUntrusted(pool)
  } catch (error) {
    log.warning('The clock could not be checked, and is checked again in a minute: {reason}', {
      reason: toReason(error),
    })
  }
}

/**
 * Checks the database's clock, which every deadline uses. After a jump, it adjusts stored times
 * with `check_clock`. Returns true while the clock is untrusted: nothing may be deleted for its age
 * then.
 */
export async function isClockUntrusted(pool: Pool): Promise<boolean> {
  const [known] = await pool.run(
    sql => sql<{ is_steady: boolean; is_untrusted: boolean; is_extending: boolean }[]>`
      select
        exists (select from wait_extensions) as is_extending,
        checked_at between now() - interval '1 minute' and now() + interval '20 seconds' as is_steady,
        coalesce(untrusted_until > now(), false) as is_untrusted
      from clock
    `,
  )
  if (known?.is_steady) {
    if (known.is_extending) await extendWaits(pool)
    return known.is_untrusted
  }
  // Without the pool's deadline, because there can be many times to adjust after a jump.
  const [noted] = await pool.sql.begin(async tx => {
    await tx`set local statement_timeout = '1min'`
    return tx<{ jump_s: number; untrusted_until: Date | null; is_untrusted: boolean }[]>`
      select jump_s, untrusted_until, coalesce(untrusted_until > now(), false) as is_untrusted from check_clock()
    `
  })
  if (!noted) return true
  const seconds = Math.round(Math.abs(noted.jump_s))
  if (noted.jump_s > 0) {
    log.warning(
      "The database's clock jumped forward by {seconds} s, no server ran for that long, or a backup of that age was restored. Nothing is deleted for its age until {until}. Correct the clock if it is wrong.",
      { seconds, until: noted.untrusted_until?.toISOString() },
    )
  } else if (noted.jump_s < 0) {
    log.warning(
      "The database's clock went back by {seconds} s. Stored times in the future were corrected.",
      {
        seconds,
      },
    )
  }
  await extendWaits(pool)
  return noted.is_untrusted
}

/**
 * Extends waits of deliveries after a jump forward. There can be millions, or locked ones, so later
 * checks continue it. Returns at once while another server extends them.
 */
async function extendWaits(pool: Pool): Promise<void> {
  const untilMs = performance.now() + EXTENDING_MS
  try {
    do {
      const [row] = await pool.run(
        sql => sql<[{ is_more: boolean }]>`select extend_waits(${EXTENDED_ROWS}) as is_more`,
      )
      if (!row.is_more) return
    } while (performance.now() < untilMs)
  } catch (error) {
    log.warning('Extending the waits of deliveries failed: {reason}', { reason: toReason(error) })
  }
}
