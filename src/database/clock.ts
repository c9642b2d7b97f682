import { uptime } from 'node:os'
import { toReason } from '../base/errors.ts'
import { logger } from '../base/log.ts'
import type { Pool } from './pool.ts'

const log = logger('clock')
/** A longer difference between the clock and the time that has passed is a jump. */
const JUMP_S = 3_600
/** The most rows that one transaction moves after a jump. */
const MOVED_ROWS = 2_000

/**
 * Checks the database's clock at the start. If that fails, the deadlines of deliveries stand still
 * until a later check succeeds.
 */
export async function tryToCheckClock(pool: Pool): Promise<void> {
  try {
    await checkClock(pool)
  } catch (error) {
    log.warning('The clock could not be checked, and is checked again in a minute: {reason}', {
      reason: toReason(error),
    })
  }
}

/**
 * Returns a function that checks the database's clock. It resolves to true while the clock is
 * untrusted: nothing may be deleted for its age then. After a jump forward by more than an hour
 * that this process has seen, this lasts for a day, or until an operator confirms the clock.
 */
export function createClockCheck(pool: Pool): () => Promise<boolean> {
  let known: { nowS: number; upS: number } | undefined
  return async () => {
    const [row] = await pool.run(
      sql => sql<[{ now_s: number; is_steady: boolean | null; is_untrusted: boolean }]>`
        select
          extract(epoch from now())::float8 as now_s,
          c.checked_at between now() - interval '4 seconds' and now() + interval '20 seconds' as is_steady,
          coalesce(c.untrusted_until between now() and now() + interval '1 day', false) as is_untrusted
        from (select) as one
          left join clock c on true
      `,
    )
    // It counts the time in which the machine sleeps, which is no jump.
    const upS = uptime()
    const jumpS = known ? row.now_s - known.nowS - (upS - known.upS) : 0
    const hasJumped = jumpS > JUMP_S
    if (hasJumped) {
      await pool.run(sql => sql`update clock set untrusted_until = now() + interval '1 day'`)
      warn(jumpS)
    }
    known = { nowS: row.now_s, upS }
    return row.is_steady && !hasJumped ? row.is_untrusted : checkClock(pool)
  }
}

/** Records the time of the check. Resolves to whether the clock is untrusted. */
async function checkClock(pool: Pool): Promise<boolean> {
  const [row] = await pool.run(
    sql => sql<[{ jump_s: number; is_held: boolean; is_untrusted: boolean }]>`
      select
        jump_s, untrusted_until = now() + interval '1 day' as is_held,
        coalesce(untrusted_until between now() and now() + interval '1 day', false) as is_untrusted
      from check_clock()
    `,
  )
  const seconds = Math.round(Math.abs(row.jump_s))
  if (row.is_held) warn(row.jump_s)
  else if (row.jump_s > 0) {
    log.info('No server ran for {seconds} s, or the clock of the database went forward.', {
      seconds,
    })
  } else if (row.jump_s < 0) {
    log.warning('The clock of the database went back by {seconds} s.', { seconds })
  }
  return row.is_untrusted
}

function warn(jumpS: number): void {
  log.warning(
    "The database's clock jumped forward by {seconds} s. Nothing is deleted for its age for a day. Correct the clock if it is wrong. If it is right, run `tidings doctor --trust-clock`.",
    { seconds: Math.round(jumpS) },
  )
}

/** Moves waits of deliveries after a jump, in batches. Leaves it to another server that does so. */
export async function moveWaits(pool: Pool, signal: AbortSignal): Promise<void> {
  let isMore = true
  while (isMore && !signal.aborted) {
    const [row] = await pool.run(
      sql => sql<[{ is_more: boolean }]>`select extend_waits(${MOVED_ROWS}) as is_more`,
    )
    isMore = row.is_more
  }
}
