import { expect, setDefaultTimeout, test } from 'bun:test'
import { once } from 'node:events'
import { lstatSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from '../src/embedded/embedded.ts'
import { findInaccessibleFolder } from '../src/embedded/folders.ts'
import {
  isRoot,
  dbTest,
  linuxTest,
  makeFolder,
  makeCheckout,
  start,
  startServer,
  stopServer,
  connect,
  query,
  untilReady,
  findPid,
  getPid,
} from './support/embedded.ts'
import { isRunning } from './support/leftovers.ts'
import { until } from './support/until.ts'

setDefaultTimeout(90_000)

dbTest('a first start makes a database, a later start finds it as it was left', async () => {
  const dataDir = makeFolder()
  const first = await start(dataDir)
  expect(first.how).toBe('started')
  await query(first, `create table note as select lower('ÄÖÉ') as body`)
  await first.stop()
  expect(findPid(dataDir)).toBeUndefined()

  const second = await start(dataDir)
  expect(second).toMatchObject({ how: 'started', url: first.url, port: first.port })
  expect(await query(second, 'select body from note')).toEqual([{ body: 'äöé' }])
})

dbTest('the password is secret, and asked for', async () => {
  const dataDir = makeFolder()
  const embedded = await start(dataDir)
  expect(statSync(join(dataDir, 'postgres', 'password')).mode & 0o777).toBe(0o600)
  const wrong = { ...embedded, url: embedded.url.replace(embedded.password, 'wrong') }
  await expect(query(wrong, 'select 1')).rejects.toThrow('password authentication failed')
})

linuxTest('Postgres gets nothing of our environment', async () => {
  const dataDir = makeFolder()
  await start(dataDir)
  const names = readFileSync(`/proc/${getPid(dataDir)}/environ`, 'utf8').split('\0')
  // Postgres itself sets PGDATA and PG_ variables.
  const foreign = names.filter(name => name && !/^(LC_ALL|TZ|PATH|PG\w+)=/.test(name))
  expect(foreign).toEqual([])
})

dbTest('Postgres outlives a server that is killed, and the next one attaches', async () => {
  const dataDir = makeFolder()
  const owner = await startServer(dataDir)
  const pid = getPid(dataDir)
  owner.child.kill('SIGKILL')
  await once(owner.child, 'exit')

  const next = await start(dataDir)
  expect(next).toMatchObject({ how: 'attached', port: owner.port })
  expect(getPid(dataDir)).toBe(pid)
  expect(await query(next, 'select 1 as one')).toEqual([{ one: 1 }])
})

dbTest('a Ctrl-C at the terminal reaches the server only', async () => {
  const dataDir = makeFolder()
  const server = await startServer(dataDir, { detached: true })
  const pid = getPid(dataDir)
  process.kill(-server.child.pid!, 'SIGINT')
  await once(server.child, 'exit')
  const next = await start(dataDir)
  expect(next.how).toBe('attached')
  expect(getPid(dataDir)).toBe(pid)
})

dbTest('a server ends by itself once it has stopped, and leaves no Postgres', async () => {
  const dataDir = makeFolder()
  const server = await startServer(dataDir)
  const pid = getPid(dataDir)
  expect(await stopServer(server)).toEqual([0, null])
  await until(() => !isRunning(pid))
})

dbTest('Postgres is started again on its port when its postmaster is killed', async () => {
  const dataDir = makeFolder()
  const embedded = await start(dataDir)
  await query(embedded, 'create table note as select 1 as id')
  for (let times = 0; times < 2; times++) {
    const pid = getPid(dataDir)
    process.kill(pid, 'SIGKILL')
    await untilReady(embedded, pid, dataDir)
    expect(await query(embedded, 'select id from note')).toEqual([{ id: 1 }])
  }
})

dbTest('Postgres is started again when all of its processes are killed', async () => {
  const dataDir = makeFolder()
  const embedded = await start(dataDir)
  const sql = connect(embedded)
  const rows = await sql<{ pid: number }[]>`select pid from pg_stat_activity`
  expect(rows.length).toBeGreaterThan(4)
  const pid = getPid(dataDir)
  for (const each of [pid, ...rows.map(row => row.pid)]) process.kill(each, 'SIGKILL')
  await untilReady(embedded, pid, dataDir)
  await sql.end({ timeout: 0 })
})

linuxTest('a backend that outlives Postgres is ended before the restart', async () => {
  const dataDir = makeFolder()
  const embedded = await start(dataDir)
  const sql = connect(embedded)
  const [row] = await sql<{ backend: number }[]>`select pg_backend_pid() as backend`
  const { backend } = row!
  process.kill(backend, 'SIGSTOP')
  const pid = getPid(dataDir)
  process.kill(pid, 'SIGKILL')
  await untilReady(embedded, pid, dataDir)
  expect(isRunning(backend)).toBe(false)
  await sql.end({ timeout: 0 })
})

dbTest('two that start at once share one database', async () => {
  const dataDir = makeFolder()
  const servers = await Promise.all([startServer(dataDir), startServer(dataDir)])
  expect(servers.map(server => server.how).sort()).toEqual(['attached', 'started'])
  expect(servers[0].port).toBe(servers[1].port)
  const log = readFileSync(join(dataDir, 'postgres', 'log'), 'utf8')
  expect(log.match(/ready to accept connections/g)).toHaveLength(1)
})

dbTest('who stops leaves Postgres to the other, who keeps it running alone', async () => {
  const dataDir = makeFolder()
  const parent = await startServer(dataDir)
  const other = await start(dataDir)
  expect(other.how).toBe('attached')
  await stopServer(parent)
  expect(await query(other, 'select 1 as one')).toEqual([{ one: 1 }])

  const pid = getPid(dataDir)
  process.kill(pid, 'SIGKILL')
  await untilReady(other, pid, dataDir)
  const last = getPid(dataDir)
  await other.stop()
  await until(() => !isRunning(last))
})

dbTest('within one process, too, only the last stop is the end', async () => {
  const dataDir = makeFolder()
  const [one, two] = await Promise.all([start(dataDir), start(dataDir)])
  const pid = getPid(dataDir)
  await Promise.all([one.stop(), one.stop()])
  expect(await query(two, 'select 1 as one')).toEqual([{ one: 1 }])
  await two.stop()
  await until(() => !isRunning(pid))
})

dbTest('a pid file that names a dead process or a stranger is stale', async () => {
  const dataDir = makeFolder()
  const pidFile = join(dataDir, 'postgres', 'data', 'postmaster.pid')
  const first = await start(dataDir)
  const left = readFileSync(pidFile, 'utf8')
  await first.stop()
  for (const pid of [left.split('\n')[0], process.pid]) {
    writeFileSync(pidFile, left.replace(/^\d+/, String(pid)))
    const next = await start(dataDir)
    expect(next.how).toBe('started')
    expect(await query(next, 'select 1 as one')).toEqual([{ one: 1 }])
    await next.stop()
  }
})

dbTest('a failed start says why, in the words of Postgres', async () => {
  const dataDir = makeFolder()
  await (await start(dataDir)).stop()
  rmSync(join(dataDir, 'postgres', 'data', 'global', 'pg_control'))
  await expect(start(dataDir)).rejects.toThrow('could not find the database system')
})

dbTest('data of a newer major version of Postgres is left alone, with the ways back', async () => {
  const dataDir = makeFolder()
  await (await start(dataDir)).stop()
  const file = join(dataDir, 'postgres', 'data', 'PG_VERSION')
  const own = readFileSync(file, 'utf8')
  writeFileSync(file, '99\n')
  const message = await start(dataDir).catch((error: Error) => error.message)
  expect(message).toContain('was created by PostgreSQL 99. This Tidings contains PostgreSQL 18')
  expect(message).toContain('tidings restore tidings.backup')
  writeFileSync(file, own)
  expect((await start(dataDir)).how).toBe('started')
})

test('a folder that Postgres cannot enter is refused by name, with the remedies', async () => {
  const closed = makeFolder(0o700)
  const dataDir = join(closed, 'data')
  if (!isRoot) return expect(findInaccessibleFolder(dataDir)).toBeUndefined()

  expect(findInaccessibleFolder(dataDir)).toBe(closed)
  const message = await startEmbedded({ dataDir }).catch((error: Error) => error.message)
  expect(message).toContain(`${closed} (mode 0700)`)
  expect(message).toContain('DATA_DIR=/var/lib/tidings')
  expect(message).toContain('DATABASE_URL=')
  expect(readdirSync(closed)).toEqual([])
  expect(statSync(closed).mode & 0o777).toBe(0o700)
})

dbTest(
  'binaries are kept beside the data, once, so that the package can go; its links are made there',
  async () => {
    const checkout = makeCheckout(makeFolder(0o700))
    const dataDir = makeFolder()
    await stopServer(await startServer(dataDir, { root: checkout.root }))

    const copies = readdirSync(join(dataDir, 'postgres')).filter(name => /^\d/.test(name))
    expect(copies).toHaveLength(1)
    const copy = join(dataDir, 'postgres', copies[0]!)
    expect(lstatSync(join(copy, 'lib', 'libpq.so')).isSymbolicLink()).toBe(true)
    // The link is the file itself under another name.
    const binary = statSync(join(copy, 'bin', 'postgres'))
    expect(binary.ino).toBe(statSync(join(checkout.native, 'bin', 'postgres')).ino)

    rmSync(join(checkout.native, 'lib'), { recursive: true })
    const again = await startServer(dataDir, { root: checkout.root })
    expect(again.how).toBe('started')
    expect(statSync(join(copy, 'bin', 'postgres')).ino).toBe(binary.ino)
  },
)

test('without binaries the error says what to do', async () => {
  const checkout = makeCheckout(makeFolder())
  rmSync(checkout.native, { recursive: true })
  const dataDir = makeFolder()
  await expect(startServer(dataDir, { root: checkout.root })).rejects.toThrow('Set DATABASE_URL')
})
