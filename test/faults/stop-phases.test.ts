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
  // A transaction holds a lock while several servers start and stop.
  const settings = { idle_in_transaction_session_timeout: 0 }
  sql = openSql(databaseUrl, { max: 2, settings })
})
afterAll(() => sql.end({ timeout: 1 }))

type Spawned = ReturnType<typeof spawnProgram>

function spawnServer(env: Record<string, string>): Spawned {
  const program = spawnProgram({ env })
  // Some are stopped before they listen.
  return program
}

/** Sends each signal to a server in a phase. `reach` starts it, and resolves in the phase. */
async function stopIn(reach: () => Promise<Spawned>): Promise<void> {
  for (const signal of SIGNALS) {
    await using program = await reach()
    expect(program.isRunning()).toBe(true)
    const exit = await program.kill(signal)
    expect({ signal, exit, output: program.output() }).toEqual({
      signal,
      exit: { code: 0, signal: null },
      output: expect.stringContaining('Stopping'),
    })
    expect(listWorkers(program).filter(isRunning)).toEqual([])
  }
}

describe('§12 a signal stops a server in order', () => {
  test('while its database refuses connections', async () => {
    const proxy = await startTcpProxy(databaseUrl)
    proxy.hangUp()
    await stopIn(async () => {
      const program = spawnServer({ DATABASE_URL: proxy.url })
      await until(() => program.logged('Waiting for the database at').length > 0)
      return program
    })
    await proxy.close()
  })

  test('while its database does not respond', async () => {
    const proxy = await startTcpProxy(databaseUrl)
    proxy.blackHole()
    await stopIn(async () => {
      const { opened } = proxy
      const program = spawnServer({ DATABASE_URL: proxy.url })
      await until(() => proxy.opened > opened)
      return program
    })
    await proxy.close()
  })

  test.each(['tidings start', 'tidings migrate', 'tidings maintenance'])(
    'while a statement of "%s" gets no response',
    async application => {
      const proxy = await startTcpProxy(databaseUrl)
      await stopIn(async () => {
        const { held } = proxy.watch(
          passing => passing.application === application && passing.type === 'D',
        )
        const program = spawnServer({ DATABASE_URL: proxy.url })
        await held
        return program
      })
      await proxy.close()
    },
  )

  test('while another program holds the lock of migrations', async () => {
    await sql.begin(async tx => {
      await tx`select pg_advisory_xact_lock(${toLock(tx, 'migrations')})`
      const countWaiting = async () => {
        const rows = await sql`
          select from pg_stat_activity
          where datname = current_database() and application_name = 'tidings migrate'
            and wait_event_type = 'Lock'
        `
        return rows.count
      }
      await stopIn(async () => {
        // Postgres notices that a client is gone once the lock is free.
        const before = await countWaiting()
        const program = spawnServer({ DATABASE_URL: databaseUrl })
        await until(async () => (await countWaiting()) > before)
        return program
      })
    })
  })

  test('while the embedded Postgres is created, and leaves no process of it', async () => {
    let dataDir = ''
    await stopIn(async () => {
      dataDir = makeFolder()
      const home = join(dataDir, 'postgres')
      const program = spawnServer({ DATA_DIR: dataDir })
      await until(
        () => existsSync(home) && readdirSync(home).some(name => name.startsWith('data.new-')),
      )
      return program
    }).finally(() => expect(listPostgres(dataDir)).toEqual([]))
  })

  test('while its workers start, and while they run', async () => {
    const env = { DATABASE_URL: databaseUrl, WORKERS: '2' }
    await stopIn(async () => {
      const program = spawnServer(env)
      await until(() => listWorkers(program).length === 2)
      return program
    })
    await stopIn(async () => {
      const program = spawnServer(env)
      await program.listening
      return program
    })
  })

  test('while it serves, with an embedded Postgres that ends with it', async () => {
    const dataDir = makeFolder()
    await stopIn(async () => {
      const program = spawnServer({ DATA_DIR: dataDir })
      await program.listening
      return program
    }).finally(() => expect(listPostgres(dataDir)).toEqual([]))
  })
})

test('§12 a signal ends a command, and the embedded Postgres that it has started', async () => {
  const dataDir = makeFolder()
  await using server = await startProgram({ env: { DATA_DIR: dataDir } })
  expect((await server.kill('SIGTERM')).code).toBe(0)
  for (const signal of SIGNALS) {
    const program = spawnProgram({ env: { DATA_DIR: dataDir }, args: ['reindex'] })
    await until(() => listPostgres(dataDir).length > 0 || !program.isRunning())
    await program.kill(signal)
    expect(listPostgres(dataDir)).toEqual([])
  }
})

// util-linux makes a terminal the controlling one, and nohup is told from the state in /proc.
const onLinux = test.skipIf(process.platform !== 'linux')

onLinux('§12 a closed terminal stops the server, and leaves no Postgres', async () => {
  const dataDir = makeFolder()
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
