import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { toLock } from '../../src/database/locks.ts'
import type { Sql } from '../../src/database/sql.ts'
import { isRunning } from '../support/leftovers.ts'
import { captureLog } from '../support/log.ts'
import { cloneDatabase, createEmptyDatabase } from '../support/servers/postgres.ts'
import {
  findMain,
  listWorkers,
  runProgram,
  spawnProgram,
  startProgram,
} from '../support/servers/process.ts'
import { makeDataDir } from '../support/servers/embedded.ts'
import { newProject } from '../support/worlds/project.ts'
import { openRaw, toRequest } from '../support/clients/raw-http.ts'
import { makeFolder, SCRATCH } from '../support/scratch.ts'
import { boot } from '../support/servers/server.ts'
import { startTcpProxy } from '../support/servers/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { listPostgres } from './fleet.ts'
import { openSql } from '../support/sql.ts'

// On all of them, the server stops in order. SIGHUP comes when its terminal is closed.
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

let databaseUrl: string
let sql: Sql
beforeAll(async () => {
  databaseUrl = await cloneDatabase()
  // A transaction holds a lock while a server starts and stops.
  const settings = { idle_in_transaction_session_timeout: 0 }
  sql = openSql(databaseUrl, { max: 2, settings })
})
afterAll(() => sql.end({ timeout: 1 }))

type Spawned = ReturnType<typeof spawnProgram>

/** Starts a server, and sends it the signal once `reach` resolves. */
async function stopIn(
  signal: (typeof SIGNALS)[number],
  env: Record<string, string>,
  reach: (program: Spawned) => Promise<unknown>,
): Promise<void> {
  await using program = spawnProgram({ env })
  await reach(program)
  expect(program.isRunning()).toBe(true)
  const exit = await program.kill(signal)
  expect({ signal, exit, output: program.output() }).toEqual({
    signal,
    exit: { code: 0, signal: null },
    output: expect.stringContaining('Stopping'),
  })
  expect(listWorkers(program).filter(isRunning)).toEqual([])
}

describe('§12 a signal stops a server in order', () => {
  test('while its database refuses connections, does not respond, or lets a statement wait', async () => {
    const proxy = await startTcpProxy(databaseUrl)
    const env = { DATABASE_URL: proxy.url }
    proxy.hangUp()
    await stopIn('SIGTERM', env, program =>
      until(() => program.logged('Waiting for the database').length > 0),
    )
    proxy.heal()
    proxy.blackHole()
    const { opened } = proxy
    await stopIn('SIGINT', env, () => until(() => proxy.opened > opened))
    proxy.heal()
    const applications = ['tidings start', 'tidings migrate', 'tidings maintenance']
    for (const [nth, application] of applications.entries()) {
      const { held } = proxy.watch(
        passing => passing.application === application && passing.type === 'D',
      )
      await stopIn(SIGNALS[nth]!, env, () => held)
    }
    await proxy.close()
  })

  test('while another program holds the lock of migrations', async () => {
    await sql.begin(async tx => {
      await tx`select pg_advisory_xact_lock(${toLock(tx, 'migrations')})`
      await stopIn('SIGHUP', { DATABASE_URL: databaseUrl }, () =>
        until(async () => {
          const waiting = await sql`
            select from pg_stat_activity
            where datname = current_database() and application_name = 'tidings migrate'
              and wait_event_type = 'Lock'
          `
          return waiting.count > 0
        }),
      )
    })
  })

  test('while the embedded Postgres is created, and leaves no process of it', async () => {
    const dataDir = makeFolder()
    const home = join(dataDir, 'postgres')
    await stopIn('SIGTERM', { DATA_DIR: dataDir }, () =>
      until(() => existsSync(home) && readdirSync(home).some(name => name.startsWith('data.new-'))),
    )
    expect(listPostgres(dataDir)).toEqual([])
  })

  test('while its workers start', async () => {
    const env = { DATABASE_URL: databaseUrl, WORKERS: '2' }
    await stopIn('SIGINT', env, program => until(() => listWorkers(program).length === 2))
  })
})

test.each(['reindex', 'export'])(
  '§12 a signal ends %s, and the embedded Postgres that it has started',
  async command => {
    const dataDir = await makeDataDir()
    const args = command === 'export' ? [command, join(dataDir, 'exported')] : [command]
    const program = spawnProgram({ env: { DATA_DIR: dataDir }, args })
    await until(() => listPostgres(dataDir).length > 0 || !program.isRunning())
    await program.kill('SIGINT')
    expect(listPostgres(dataDir)).toEqual([])
  },
)

// util-linux makes a terminal the controlling one, and nohup is told from the state in /proc.
const onLinux = test.skipIf(process.platform !== 'linux')

onLinux('§12 a closed terminal stops the server, and leaves no Postgres', async () => {
  const dataDir = await makeDataDir()
  let shown = ''
  const terminal = new Bun.Terminal({ data: (_, bytes) => void (shown += bytes.toString()) })
  const { PATH = '', HOME = '' } = process.env
  const child = Bun.spawn(['setsid', '--ctty', process.execPath, findMain(), 'serve'], {
    cwd: dataDir,
    env: { PATH, HOME, TMPDIR: SCRATCH, TIDINGS_CONFIG: '/dev/null', PORT: '0', DATA_DIR: dataDir },
    terminal,
  })
  await until(() => shown.includes(' is running: '))
  terminal.close()
  expect([await child.exited, child.signalCode]).toEqual([0, null])
  expect(listPostgres(dataDir)).toEqual([])
})

onLinux('§12 a server under nohup runs on after its terminal is closed', async () => {
  await using program = spawnProgram({
    env: { DATABASE_URL: databaseUrl },
    container: { enter: ['nohup'] },
  })
  const url = await program.listening
  program.signal('SIGHUP')
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect(program.logged('Stopping')).toEqual([])
  expect(await program.kill('SIGTERM')).toEqual({ code: 0, signal: null })
})

test('§12 a taken port is found before the database is changed', async () => {
  await using other = await startProgram({ env: { DATABASE_URL: databaseUrl } })
  const DATABASE_URL = await createEmptyDatabase()
  const empty = openSql(DATABASE_URL)
  for (const env of [
    { PORT: String(other.port) },
    { PORT: String(other.port), WORKERS: '2' },
    { METRICS_PORT: String(other.port) },
  ] as Record<string, string>[]) {
    const { code, output } = await runProgram({ env: { DATABASE_URL, ...env }, args: ['serve'] })
    expect([code, output]).toEqual([1, expect.stringContaining(`Port ${other.port}`)])
    const [found] = await empty`select to_regclass('migrations') as name`
    expect(found!['name']).toBeNull()
  }
  await empty.end()
})

test('§12 an incomplete stop says what was not finished, and is reported as a failure', async () => {
  const server = await boot({ databaseUrl }, { stopMs: 500 })
  const { key } = await newProject(server)
  using inside = openRaw(server.url)
  const headers = [
    ...['Host: localhost', `Authorization: Bearer ${key}`, 'Content-Length: 9'],
    'Content-Type: application/json',
  ]
  inside.write(toRequest('POST /v1/events HTTP/1.1', headers))
  await until(async () => (await sql`select from rate_windows`).count > 0)
  using log = captureLog()
  expect(await server.server.stop()).toBe(false)
  expect(log.lines.join()).toContain('The stop is incomplete. Not finished: requests in flight')
  await server[Symbol.asyncDispose]()
})
