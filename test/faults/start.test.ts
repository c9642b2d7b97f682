import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../support/scratch.ts'
import { connect as connectSocket, createServer, type AddressInfo } from 'node:net'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import { parseUrl } from '../../src/base/database-url.ts'
import { toSession } from '../../src/database/session.ts'
import { waitUntilReachable } from '../../src/database/reachable.ts'
import { startPooler } from '../support/servers/pooler.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { runProgram, spawnProgram, startProgram } from '../support/servers/process.ts'
import { startTcpProxy } from '../support/servers/tcp-proxy.ts'
import { hasIpv6, hasTool } from '../support/tools.ts'
import { until } from '../support/until.ts'
import { listPostgres } from './fleet.ts'
import { openSql } from '../support/sql.ts'

const WAITING = 'Waiting for the database'
const POOLER_IGNORES =
  'tcp_keepalives_idle, tcp_keepalives_interval, tcp_keepalives_count, tcp_user_timeout, ' +
  Object.keys(toSession(parseUrl('postgres://a/b'))).join(', ')

test.each(['1', '2'])(
  '§12 %s workers that start without Postgres, or wait for a lock of it, say so, and then serve',
  async WORKERS => {
    const databaseUrl = await cloneDatabase()
    const proxy = await startTcpProxy(databaseUrl)
    proxy.hangUp()
    // A file may name the folder.
    const DATA_DIR_FILE = join(makeFolder(), 'data-dir')
    writeFileSync(DATA_DIR_FILE, makeFolder())
    const env = { DATABASE_URL: proxy.url, WORKERS, DATA_DIR: '', DATA_DIR_FILE }
    await using program = spawnProgram({ env })
    await until(() => program.logged(WAITING).length > 0)
    expect(program.isRunning()).toBe(true)
    // The output must not contain the password.
    expect(program.output()).not.toContain(new URL(databaseUrl).password)
    // A busy machine starts slowly while a transaction holds the lock.
    const sql = openSql(databaseUrl, { settings: { idle_in_transaction_session_timeout: 0 } })
    await sql.begin(async tx => {
      await tx`lock table setup_links in access exclusive mode`
      const logged = program.logged(WAITING).length
      proxy.heal()
      await until(() => program.logged(WAITING).length > logged || !program.isRunning())
    })
    await sql.end()
    const url = await program.listening
    expect(program.logged('Another program holds a lock').length).toBeGreaterThan(0)
    // The key is shown only once: by the start that succeeds.
    expect(program.output()).toContain('tdg_')
    await until(async () => (await fetch(`${url}/readyz`)).ok)
    expect((await program.kill('SIGTERM')).code).toBe(0)
    await proxy.close()
  },
)

test('§13 after kills of servers, and of all of Postgres, during the first start, the next one serves', async () => {
  const dataDir = makeFolder()
  const home = join(dataDir, 'postgres')
  const isMaking = () =>
    existsSync(home) && readdirSync(home).some(name => name.startsWith('data.new-'))
  const isMade = () => listPostgres(dataDir).length > 0
  for (const [isReached, hasAll] of [
    [isMaking, false],
    [isMade, true],
  ] as const) {
    const victim = spawnProgram({ env: { DATA_DIR: dataDir } })
    await until(isReached)
    await victim.kill('SIGKILL')
    if (hasAll) for (const pid of listPostgres(dataDir)) sendSignal(pid, 'SIGKILL')
  }
  const program = await startProgram({ env: { DATA_DIR: dataDir } })
  await until(async () => (await fetch(`${program.url}/readyz`)).ok)
  expect((await program.kill('SIGTERM')).code).toBe(0)
  expect(listPostgres(dataDir)).toEqual([])
})

test('§12 a stop ends the wait for Postgres; a wrong address is reported at once', async () => {
  const databaseUrl = await cloneDatabase()
  const away = databaseUrl.replace(/host=[^&]+/, 'host=/nowhere')
  await using program = spawnProgram({ env: { DATABASE_URL: away } })
  await until(() => program.logged(WAITING).length > 0)
  expect(await program.kill('SIGTERM')).toEqual({ code: 0, signal: null })

  const wrong = new URL(databaseUrl)
  wrong.password = 'wrong'
  const refused = await runProgram({ args: ['serve'], env: { DATABASE_URL: wrong.href } })
  expect(refused.code).toBe(1)
  expect(refused.output).toContain('rejected the user name or password. Correct DATABASE_URL')
})

test.skipIf(!hasTool('pgbouncer')).each([
  ['rejects', '', 'unsupported startup parameter'],
  ['drops', POOLER_IGNORES, 'have statement_timeout = 0 and not 5000'],
])(
  '§12 a server does not start behind a pooler that %s the settings of its sessions',
  async (_, ignored, reason) => {
    await using pooler = await startPooler(await cloneDatabase(), ignored)
    const refused = await runProgram({ args: ['serve'], env: { DATABASE_URL: pooler.url } })
    expect(refused.code).toBe(1)
    expect(refused.output).toContain(reason)
    expect(refused.output).toContain('append pgbouncer=true to the parameters of DATABASE_URL')
  },
)

test('§12 DATABASE_URL can ask for a commit that waits for standbys, and for no weaker one', async () => {
  const databaseUrl = await cloneDatabase()
  const withCommit = (value: string) => `${databaseUrl}&synchronous_commit=${value}`
  await waitUntilReachable(withCommit('remote_apply'))
  await expect(waitUntilReachable(withCommit('off'))).rejects.toThrow(
    'synchronous_commit = off and not on',
  )
  for (const [settings, expected] of [
    [{}, 'remote_apply'],
    [{ synchronous_commit: 'off' }, 'off'],
  ] as const) {
    const sql = openSql(withCommit('remote_apply'), { settings })
    expect<unknown>((await sql`show synchronous_commit`)[0]).toEqual({
      synchronous_commit: expected,
    })
    await sql.end()
  }
})

test.skipIf(!hasIpv6())(
  'scale §1 DATABASE_URL can have IPv6 addresses, alone and in a list',
  async () => {
    const url = new URL(await cloneDatabase())
    const socket = `${url.searchParams.get('host')}/.s.PGSQL.5432`
    const relay = createServer(client => {
      const server = connectSocket(socket)
      client.on('error', () => {}).pipe(server)
      server.on('error', () => {}).pipe(client)
    })
    await once(relay.listen(0, '::1'), 'listening')
    const { port } = relay.address() as AddressInfo
    url.searchParams.delete('host')
    const one = url.href.replace('localhost', `[::1]:${port}`)
    const list = one.replace(`[::1]:${port}`, `[::1]:1,[::1]:${port}`)
    for (const databaseUrl of [one, list]) {
      await waitUntilReachable(databaseUrl)
      const sql = openSql(databaseUrl)
      expect<unknown>([...(await sql`select 1 as n`)]).toEqual([{ n: 1 }])
      await sql.end()
    }
    relay.close()
  },
)
