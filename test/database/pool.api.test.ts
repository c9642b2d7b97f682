import { beforeAll, expect, test } from 'bun:test'
import { createPool, transact } from '../../src/database/pool.ts'
import { connect, type Queryable, type Sql } from '../../src/database/sql.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { until } from '../support/until.ts'

/** Long, because it goes on while the machine is busy. */
const DEADLINE_MS = 5_000

let databaseUrl: string
beforeAll(async () => {
  databaseUrl = await cloneDatabase()
})

test('a pause of the process that outlasts the deadline fails no work and replaces no connection', async () => {
  const sql = connect(databaseUrl, { name: 'test', max: 1 })
  const pool = createPool(databaseUrl, { name: 'paused', max: 1, deadlineMs: DEADLINE_MS })
  const readPid = (own: Sql) =>
    own<[{ pid: number }]>`select pg_backend_pid() as pid, pg_sleep(0.5)::text`
  const [before] = await pool.run(readPid)
  await sql`select`
  const running = pool.run(readPid)
  const waiting = pool.run(readPid)
  await until(async () => {
    const active = await sql`
      select from pg_stat_activity where pid = ${before.pid} and state = 'active'
    `
    return active.count > 0
  })
  pauseProcess(DEADLINE_MS + 500)
  for (const [{ pid }] of await Promise.all([running, waiting])) expect(pid).toBe(before.pid)
  await Promise.all([pool.end(), sql.end()])
})

test('each reply restarts the deadline, so that slow work fails nothing and replaces no connection', async () => {
  const pool = createPool(databaseUrl, { name: 'slow', max: 1, deadlineMs: DEADLINE_MS / 2 })
  const readPid = async (own: Queryable) => {
    const [{ pid }] = await own<[{ pid: number }]>`select pg_backend_pid() as pid`
    return pid
  }
  const workSlowly = async (own: Queryable) => {
    for (let left = 4; left > 0; left--) await own`select pg_sleep(${DEADLINE_MS / 6_000})::text`
    return readPid(own)
  }
  const before = await pool.run(readPid)
  expect(await transact(pool, tx => tx.savepoint(workSlowly))).toBe(before)
  await pool.end()
})

test('a server without a reply within the deadline fails the work', async () => {
  const pool = createPool(databaseUrl, { name: 'silent', max: 1, deadlineMs: 100 })
  await pool.sql`select`
  await expect(pool.run(sql => sql`select pg_sleep(60)::text`)).rejects.toMatchObject({
    code: 'unavailable',
  })
  await pool.end()
})

/** Runs nothing else meanwhile, like a virtual machine that is moved. */
function pauseProcess(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
