import type { Pool } from '../db/pool.ts'
import { SWEEP_BATCH, type Sweep } from '../limits/sweeper.ts'

/** What this folder has to sweep. */
export const PUSH_SWEEPS: readonly Sweep[] = [sweepBursts, sweepMutes]

/** A batch of bursts that are over; returns how many it deleted. */
async function sweepBursts(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from push_bursts
      where ctid = any(array(
        select b.ctid
        from push_bursts b
        where b.touched_at < now() - interval '1 day'
        limit ${SWEEP_BATCH}
        for update skip locked
      ))
    `,
  )
  return deleted.count
}

/** A batch of settings that mean nothing any more. */
async function sweepMutes(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from channel_notifications
      where ctid = any(array(
        select n.ctid
        from channel_notifications n
        where n.mute_until < now() - interval '1 hour'
        limit ${SWEEP_BATCH}
        for update skip locked
      ))
    `,
  )
  return deleted.count
}
