import { expect, test } from 'bun:test'
import { createPool } from '../../../src/database/pool.ts'
import { startFailOverCheck } from '../../../src/log/events/fail-over-check.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { until } from '../../support/until.ts'
import { openSql } from '../../support/sql.ts'

test('scale §1 a first start on a later timeline begins a new epoch, unless another server decides', async () => {
  const url = await cloneDatabase()
  const sql = openSql(url)
  const read = async () => {
    const [row] = await sql<[{ epoch: string; timeline: number | null }]>`
      select i.epoch, t.timeline from installation i left join epoch_timeline t on true
    `
    return row
  }
  /** Checks until the timeline is stored, and returns the epoch. */
  async function check(meanwhile?: () => Promise<unknown>): Promise<string> {
    const pool = createPool(url, { name: 'check', max: 1 })
    const checks = startFailOverCheck({ pool, primary: undefined, leave() {}, everyMs: 20 })
    await meanwhile?.()
    await until(async () => (await read()).timeline === 1)
    await checks.stop()
    await pool.end()
    return (await read()).epoch
  }
  const { epoch, timeline } = await read()
  expect(timeline).toBeNull()
  expect(await check()).toBe(epoch)
  // Another server ran through the fail-over and has found everything.
  await sql`update epoch_timeline set timeline = 0`
  expect(await check(() => sql`update epoch_timeline set timeline = 1`)).toBe(epoch)
  // Nobody knows what was lost.
  await sql`update epoch_timeline set timeline = 0`
  const renewed = await check()
  expect(renewed).not.toBe(epoch)
  // A dump was restored into another Postgres, which begins with timeline 1.
  await sql`update epoch_timeline set timeline = 7`
  expect(await check()).toBe(renewed)
  await sql.end()
})
