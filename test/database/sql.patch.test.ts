import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { connect, type Sql } from '../../src/database/sql.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { startTcpProxy, type TcpProxy } from '../support/servers/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { listen } from '../support/loopback.ts'

// Faults of postgres.js 3.4.9 on a lost connection, which patches/ corrects: each test fails
// without the patch.

let databaseUrl: string
let admin: Sql
let proxy: TcpProxy
beforeAll(async () => {
  databaseUrl = await cloneDatabase()
  admin = connect(databaseUrl, { name: 'admin', max: 1 })
  proxy = await startTcpProxy(databaseUrl)
  await admin`create table notes (body text)`
})
afterAll(async () => {
  await admin.end({ timeout: 1 })
  await proxy.close()
})

/**
 * Opens one connection, and a function that ends its backend and resolves when the driver notices.
 */
function open(url = databaseUrl) {
  const sql = connect(url, { name: 'guarded', max: 1 })
  return {
    sql,
    async terminate(pid: number) {
      const closed = Promise.withResolvers<void>()
      sql.options.onclose = () => closed.resolve()
      await admin`select pg_terminate_backend(${pid})`
      await closed.promise
    },
    [Symbol.asyncDispose]: () => sql.end({ timeout: 0 }),
  }
}

async function readPid(sql: Sql | Parameters<Parameters<Sql['begin']>[1]>[0]): Promise<number> {
  const [row] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`
  return row.pid
}

/** Returns the outcome of a statement; a hang is not an outcome. */
async function settle(statement: PromiseLike<unknown>): Promise<unknown> {
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(() => late.resolve('HANGS'), 2_000)
  const outcome = await Promise.race([
    statement.then(
      () => 'done',
      (error: { code: string }) => error.code,
    ),
    late.promise,
  ])
  clearTimeout(timer)
  return outcome
}

test('fault 1: a statement in a transaction whose backend died ends in an error, not the process', async () => {
  await using database = open()
  const { sql } = database
  let inner: unknown
  const outer = sql.begin(async tx => {
    await database.terminate(await readPid(tx))
    inner = await settle(tx`select 1`)
  })
  expect(await settle(outer)).toBe('CONNECTION_CLOSED')
  await until(() => inner !== undefined)
  expect(inner).toBe('CONNECTION_CLOSED')
  expect(await settle(sql`select 1`)).toBe('done')
})

test('faults 2 and 4: a statement while the connection is lost is an error, and the next one works', async () => {
  await using database = open(proxy.url)
  for (let round = 0; round < 3; round++) {
    const { between } = await lose(database.sql)
    expect(await between).toMatch(/^CONNECTION_/)
    expect(await settle(database.sql`select 1`)).toBe('done')
  }
})

test('fault 3: the next connection does not run a statement of a dead transaction', async () => {
  await using database = open()
  const { sql } = database
  const inner = Promise.withResolvers<unknown>()
  const outer = sql.begin(async tx => {
    await database.terminate(await readPid(tx))
    // The same connection object is alive again, with another backend.
    await sql`select 1`
    inner.resolve(await settle(tx`insert into notes values ('half')`))
  })
  expect(await settle(outer)).toBe('CONNECTION_CLOSED')
  expect(await inner.promise).toBe('CONNECTION_CLOSED')
  expect(await admin`select body from notes`).toHaveLength(0)
})

test('fault 5: rows of an interrupted statement are not part of the next result', async () => {
  await using database = open()
  const { sql } = database
  const pid = await readPid(sql)
  const slow = settle(sql`
    select repeat('x', 9000), pg_sleep(0.01) from generate_series(1, 500)
  `)
  await until(async () => {
    const rows = await admin`
      select from pg_stat_activity
      where pid = ${pid} and state = 'active' and clock_timestamp() - query_start > interval '0.3 s'
    `
    return rows.length > 0
  })
  await database.terminate(pid)
  expect(await slow).toBe('CONNECTION_CLOSED')
  const rows = await sql<{ one: number }[]>`select 1 as one`
  expect([...rows]).toEqual([{ one: 1 }])
})

test('a server that hangs up before its greeting is an error, with a pause before the next connection', async () => {
  let dialled = 0
  const server = createServer(socket => {
    dialled++
    socket.destroy()
  })
  const port = await listen(server)
  await using database = open(`postgres://tidings:secret@127.0.0.1:${port}/postgres`)
  for (let nth = 0; nth < 3; nth++)
    expect(await settle(database.sql`select 1`)).toMatch(/^(CONNECTION_CLOSED|ECONNRESET)$/)
  expect(dialled).toBeLessThanOrEqual(4)
  server.close()
})

/** Resets the connection during a statement, and sends another one before the first has ended. */
async function lose(sql: Sql): Promise<{ between: Promise<unknown> }> {
  await sql`select 1`
  const asleep = sql`select pg_sleep(10)`.then(
    () => undefined,
    () => ({ between: settle(sql`select 1`) }),
  )
  await until(async () => {
    const rows = await admin`
      select from pg_stat_activity
      where datname = current_database() and wait_event = 'PgSleep' and state = 'active'
    `
    return rows.length > 0
  })
  proxy.reset()
  const lost = await asleep
  if (!lost) throw new Error('The connection was not lost')
  return lost
}
