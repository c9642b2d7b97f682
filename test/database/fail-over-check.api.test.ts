import { expect, test } from 'bun:test'
import { startFailOverCheck } from '../../src/database/fail-over-check.ts'
import { createPool } from '../../src/database/pool.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { openSql } from '../support/sql.ts'
import { until } from '../support/until.ts'

test('scale §1 each other timeline begins one new epoch, whichever server finds it first', async () => {
  const url = await cloneDatabase()
  await using sql = openSql(url)
  const read = async () => {
    const [row] = await sql<[{ epoch: string; timeline: number | null }]>`
      select i.epoch, t.timeline from installation i left join epoch_timeline t on true
    `
    return row
  }
  /** Checks on two servers until the timeline is stored, and returns how many epochs have begun. */
  async function check(): Promise<number> {
    const servers = [1, 2].map(() => {
      const pool = createPool(url, { name: 'check', max: 1 })
      const stop = startFailOverCheck({ pool, primary: undefined, leave() {}, everyMs: 20 })
      return { pool, stop }
    })
    await until(async () => (await read()).timeline === 1)
    for (const { pool, stop } of servers) {
      await stop()
      await pool.end()
    }
    return (await sql`select from renewals`).count
  }
  await sql`create table renewals ()`
  await sql.unsafe(`
    create rule renewal as on update to installation do also insert into renewals default values
  `)
  const { epoch, timeline } = await read()
  expect(timeline).toBeNull()
  expect(await check()).toBe(0)
  // A standby was promoted, or a dump was restored into another Postgres.
  await sql`update epoch_timeline set timeline = 0`
  expect(await check()).toBe(1)
  await sql`update epoch_timeline set timeline = 7`
  expect(await check()).toBe(2)
  expect((await read()).epoch).not.toBe(epoch)
})
