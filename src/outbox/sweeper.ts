import type { Pool } from '../db/pool.ts'
import { SWEEP_BATCH, type Sweep } from '../limits/sweeper.ts'

/** What this folder has to sweep. */
export const OUTBOX_SWEEPS: readonly Sweep[] = [sweepRecords, sweepWithheld, sweepDeadLetters]

/** One batch of records that are 30 days old; returns how many it deleted. */
export async function sweepRecords(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from deliveries
      where ctid = any(array(
        select d.ctid
        from deliveries d
        where d.at < now() - interval '30 days'
        order by d.at
        limit ${SWEEP_BATCH}
        for update skip locked
      ))
    `,
  )
  return deleted.count
}

/** One batch of what was withheld 30 days ago; returns how many rows it deleted. */
export async function sweepWithheld(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from withheld
      where ctid = any(array(
        select w.ctid
        from withheld w
        where w.at < now() - interval '30 days'
        order by w.at
        limit ${SWEEP_BATCH}
        for update skip locked
      ))
    `,
  )
  return deleted.count
}

/** One batch of dead letters that are 90 days old; returns how many it deleted. */
export async function sweepDeadLetters(pool: Pool): Promise<number> {
  const deleted = await pool.run(
    sql => sql`
      delete from dead_letters
      where id = any(array(
        select d.id
        from dead_letters d
        where d.at < now() - interval '90 days'
        order by d.at
        limit ${SWEEP_BATCH}
        for update skip locked
      ))
    `,
  )
  return deleted.count
}
