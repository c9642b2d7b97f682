import { logger } from '../log.ts'
import type { Pool } from './pool.ts'

const log = logger('clock')

/**
 * Looks at the database's clock, by which everything goes, and mends what a leap of it would spoil (`check_clock`). Returns
 * whether the clock is doubted: then nothing may be deleted because of its age.
 */
export async function isClockUntrusted(pool: Pool): Promise<boolean> {
  const [known] = await pool.run(
    sql => sql<{ is_steady: boolean; is_untrusted: boolean }[]>`
      select
        checked_at between now() - interval '1 minute' and now() + interval '20 seconds' as is_steady,
        coalesce(untrusted_until > now(), false) as is_untrusted
      from clock
    `,
  )
  if (known?.is_steady) return known.is_untrusted
  // Past the pool's deadline: after a leap there may be much to mend, once.
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
      "The database's clock has leapt ahead by {seconds} s, or no server ran for so long: nothing is deleted for its age until {until}. If the clock is wrong, set it",
      { seconds, until: noted.untrusted_until?.toISOString() },
    )
  } else if (noted.jump_s < 0) {
    log.warning("The database's clock has gone back by {seconds} s: what was due waits no longer", {
      seconds,
    })
  }
  return noted.is_untrusted
}
