import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import type { Sql } from '../../src/database/sql.ts'
import { listPostgres } from '../faults/fleet.ts'
import { isRunning } from '../support/leftovers.ts'
import { createEmptyDatabase } from '../support/servers/postgres.ts'
import {
  compileBinary,
  listWorkers,
  runProgram,
  startProgram,
  toEmbeddedUrl,
  type Program,
} from '../support/servers/process.ts'
import { createRequests } from '../support/worlds/project.ts'
import { createHttpClient } from '../support/clients/http-client.ts'
import { makeDataDir } from '../support/servers/embedded.ts'
import { scaled, until } from '../support/until.ts'
import { openSql } from '../support/sql.ts'

// Deno checks and compiles the sources at each start.
setDefaultTimeout(scaled(180_000))
beforeAll(compileBinary, scaled(120_000))

const EVENT = { channelName: 'payments', title: 'New payment' }

/** Returns how many servers have a connection for appends. */
async function countWriters(sql: Sql): Promise<number> {
  const [row] = await sql<[{ n: number }]>`
    select count(*)::int as n
    from pg_stat_activity
    where datname = current_database() and application_name = 'tidings append'
  `
  return row.n
}

/** Posts events on a new connection each, until `servers` servers got one. */
async function reach(servers: number, program: Program, key: string, sql: Sql): Promise<number> {
  let posted = 0
  await until(async () => {
    const client = createHttpClient(program.url)
    const { status } = await client.request('POST', '/v1/events', {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(EVENT),
    })
    client.close()
    expect(status).toBe(201)
    posted++
    return (await countWriters(sql)) >= servers
  })
  return posted
}

test('design §5 on Deno workers share one port and one database', async () => {
  const databaseUrl = await createEmptyDatabase()
  await using program = await startProgram({
    runtime: 'deno',
    env: { DATABASE_URL: databaseUrl, WORKERS: '2' },
  })
  await expectShared(program, databaseUrl)
  const workers = listWorkers(program)
  expect(await program.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  expect(workers.filter(isRunning)).toEqual([])
})

test('design §5 workers of the executable share one embedded Postgres, which stops with the last one, even if their parent is killed', async () => {
  const dataDir = await makeDataDir()
  const start = () => startProgram({ runtime: 'binary', env: { DATA_DIR: dataDir, WORKERS: '2' } })
  await using program = await start()
  await expectShared(program, toEmbeddedUrl(dataDir))
  const workers = listWorkers(program)
  await program.kill('SIGKILL')
  await until(() => !workers.some(isRunning), 30_000)
  await until(() => listPostgres(dataDir).length === 0, 30_000)

  await using again = await start()
  expect(again.firstKey).toBeUndefined()
  expect((await createRequests(again.url, program.firstKey!).get('/v1/me')).status).toBe(200)
  expect(await again.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  expect(listPostgres(dataDir)).toEqual([])
})

/** Expects that two workers are one server, and that both get connections. */
async function expectShared(program: Program, databaseUrl: string): Promise<void> {
  expect(program.logged('/setup#')).toHaveLength(1)
  expect(program.logged('Bearer tdg_')).toHaveLength(1)
  const [line = ''] = program.logged(' workers are listening on')
  expect(JSON.parse(line).properties.address).toEndWith(`:${program.port}`)
  const sql = openSql(databaseUrl)
  const posted = await reach(2, program, program.firstKey!, sql)
  await sql.end()
  const { get } = createRequests(program.url, program.firstKey!)
  const [newest] = (await get('/v1/events')).body.data.items
  expect(newest.seq).toBe(posted)
  expect(listWorkers(program)).toHaveLength(2)
}

test('a worker that dies is restarted while others answer; one that gets a signal before it can handle one has stopped in good order', async () => {
  const databaseUrl = await createEmptyDatabase()
  const env = { DATABASE_URL: databaseUrl }
  await using program = await startProgram({ env, args: ['serve', '--workers', '2'] })
  const port = String(program.port)
  // Workers share a port with each other, and with no other server.
  const other = await runProgram({ env: { ...env, WORKERS: '2', PORT: port } })
  expect(other).toMatchObject({ code: 1, output: expect.stringContaining(`Port ${port}`) })

  const [first = 0, second = 0] = listWorkers(program)
  const sql = openSql(databaseUrl)
  process.kill(first, 'SIGKILL')
  await until(async () => (await countWriters(sql)) < 2)
  await reach(2, program, program.firstKey!, sql)
  await sql.end()
  expect(listWorkers(program)).toHaveLength(3)
  expect(program.logged('SIGKILL')).toHaveLength(1)

  process.kill(second, 'SIGKILL')
  await until(() => listWorkers(program).length === 4)
  const restarted = listWorkers(program).at(-1)!
  process.kill(restarted, 'SIGSTOP')
  // A thread that still runs would take the next signal, and the process would end.
  await until(() => listThreadStates(restarted).every(state => state === 'T'))
  const exit = program.kill('SIGTERM')
  await until(() => program.logged('Stopping').length > 0)
  process.kill(restarted, 'SIGCONT')
  expect(await exit).toEqual({ code: 0, signal: null })

  const APP_SECRET = Buffer.alloc(32, 'wrong').toString('base64')
  const wrong = await runProgram({ env: { ...env, WORKERS: '2', APP_SECRET } })
  expect(wrong.output).toContain('sealed with another APP_SECRET')
  expect(wrong.output).toContain('ended during its start (exit code 1)')
  expect(wrong.code).toBe(1)
})

test('a worker that freezes is killed and restarted; one that freezes in a stop makes it incomplete', async () => {
  const databaseUrl = await createEmptyDatabase()
  await using program = await startProgram({ env: { DATABASE_URL: databaseUrl, WORKERS: '2' } })
  const [, frozen = 0] = listWorkers(program)
  process.kill(frozen, 'SIGSTOP')
  await until(() => listWorkers(program).length === 3, 60_000)
  expect(program.logged('Worker 2 has not responded for 30 s and is killed')).toHaveLength(1)
  expect(isRunning(frozen)).toBe(false)

  const [first = 0, , restarted = 0] = listWorkers(program)
  process.kill(first, 'SIGSTOP')
  expect(await program.kill('SIGTERM')).toEqual({ code: 1, signal: null })
  expect(program.logged('Worker 1 did not stop in order')).toHaveLength(1)
  expect(program.logged('The stop is incomplete. Not finished: the workers.')).toHaveLength(1)
  expect([first, restarted].filter(isRunning)).toEqual([])
})

/** Returns the state of each thread of a process, as in /proc: `T` is stopped. */
function listThreadStates(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map(thread => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
    return stat.charAt(stat.lastIndexOf(')') + 2)
  })
}
