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
  type Runtime,
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

// The other tests run Bun.
test.each<Runtime>(['deno', 'binary'])(
  'design §5 on %s workers share one port and one database, and each delivery is sent once',
  async runtime => {
    const databaseUrl = await createEmptyDatabase()
    const sql = openSql(databaseUrl)
    const env = { DATABASE_URL: databaseUrl, WORKERS: '2' }
    await using program = await startProgram({ runtime, env })
    expect(program.logged('/setup#')).toHaveLength(1)
    expect(program.logged('Bearer tdg_')).toHaveLength(1)
    const [line = ''] = program.logged(' workers are listening on')
    const { port } = new URL(program.url)
    expect(JSON.parse(line).properties.address).toEndWith(`:${port}`)

    const { get } = createRequests(program.url, program.firstKey!)
    const posted = await reach(2, program, program.firstKey!, sql)
    const [newest] = (await get('/v1/events')).body.data.items
    expect(newest.seq).toBe(posted)
    await sql.end()
    const workers = listWorkers(program)
    expect(workers).toHaveLength(2)
    expect(await program.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    expect(workers.filter(isRunning)).toEqual([])
  },
)

test('a worker that dies is restarted while others answer; one that gets a signal before it can handle one has stopped in good order', async () => {
  const databaseUrl = await createEmptyDatabase()
  const sql = openSql(databaseUrl)
  await using program = await startProgram({
    env: { DATABASE_URL: databaseUrl },
    args: ['serve', '--workers', '3'],
  })
  await reach(3, program, program.firstKey!, sql)
  const [first = 0, second = 0] = listWorkers(program)
  process.kill(first, 'SIGKILL')
  await until(() => listWorkers(program).length === 4)
  expect(program.logged('SIGKILL')).toHaveLength(1)
  await until(async () => (await countWriters(sql)) < 3)
  await reach(3, program, program.firstKey!, sql)
  await sql.end()

  process.kill(second, 'SIGKILL')
  await until(() => listWorkers(program).length === 5)
  const restarted = listWorkers(program).at(-1)!
  process.kill(restarted, 'SIGSTOP')
  // A thread that still runs would take the next signal, and the process would end.
  await until(() => listThreadStates(restarted).every(state => state === 'T'))
  const exit = program.kill('SIGTERM')
  await until(() => program.logged('Stopping').length > 0)
  process.kill(restarted, 'SIGCONT')
  expect(await exit).toEqual({ code: 0, signal: null })
})

// Half a minute of waiting, beside the next test.
test.concurrent('a worker that freezes is killed and restarted; one that freezes in a stop makes it incomplete', async () => {
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

test.concurrent('one embedded Postgres serves all workers, and stops with the last one, even if their parent is killed', async () => {
  const dataDir = await makeDataDir()
  const start = () => startProgram({ env: { DATA_DIR: dataDir, WORKERS: '2' } })
  await using program = await start()
  const sql = openSql(toEmbeddedUrl(dataDir))
  await reach(2, program, program.firstKey!, sql)
  await sql.end()
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

test.concurrent('a failed start says why, exits with 1, and leaves no process; no other process shares the port', async () => {
  const env = { DATABASE_URL: await createEmptyDatabase(), WORKERS: '2' }
  await using good = await startProgram({ env })
  expect(good.firstKey).toMatch(/^tdg_/)
  const second = await runProgram({ env: { ...env, PORT: String(good.port) } })
  expect(second).toMatchObject({ code: 1, output: expect.stringContaining(`Port ${good.port}`) })

  const APP_SECRET = Buffer.alloc(32, 'wrong').toString('base64')
  const wrong = await runProgram({ env: { ...env, APP_SECRET } })
  expect(wrong.output).toContain('sealed with another APP_SECRET')
  expect(wrong.output).toContain('ended during its start (exit code 1)')
  expect(wrong.code).toBe(1)
})

/** Returns the state of each thread of a process, as in /proc: `T` is stopped. */
function listThreadStates(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map(thread => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
    return stat.charAt(stat.lastIndexOf(')') + 2)
  })
}
