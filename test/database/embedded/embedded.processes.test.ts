import { afterEach, expect, spyOn, test } from 'bun:test'
import { once } from 'node:events'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
} from 'node:fs'
import { rmSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeUnusedCopies } from '../../../src/database/embedded/binaries.ts'
import { tryLockCluster } from '../../../src/database/embedded/cluster-lock.ts'
import { readCluster } from '../../../src/database/embedded/cluster.ts'
import { startEmbedded } from '../../../src/database/embedded/embedded.ts'
import { ensurePostmaster } from '../../../src/database/embedded/postmaster.ts'
import { SOCKET_FILE } from '../../../src/database/embedded/socket-folder.ts'
import { findWrapper } from '../../../src/database/embedded/initdb.ts'
import { tryLock } from '../../../src/database/embedded/file-lock.ts'
import { checkDisk, findInaccessibleFolder } from '../../../src/database/embedded/folders.ts'
import {
  isLinux,
  isRoot,
  dbTest,
  linuxTest,
  makeFolder,
  makeDataDir,
  makeCheckout,
  start,
  startServer,
  stopServer,
  connect,
  query,
  untilReady,
  findPid,
  getPid,
  clearEmbedded,
} from '../../support/servers/embedded.ts'
import { isRunning } from '../../support/leftovers.ts'
import { captureLog } from '../../support/log.ts'
import { canGiveFiles } from '../../support/tools.ts'
import { until } from '../../support/until.ts'

afterEach(clearEmbedded)

const toSocketFolder = ({ url }: { url: string }) => new URL(url).searchParams.get('host') ?? ''

dbTest('a first start makes a database, a later start finds it as it was left', async () => {
  const dataDir = makeFolder()
  const first = await start(dataDir)
  expect(first.how).toBe('started')
  await query(first, `create table note as select lower('ÄÖÉ') as body`)
  await first.stop()
  expect(findPid(dataDir)).toBeUndefined()

  const second = await start(dataDir)
  expect(second).toMatchObject({ how: 'started', url: first.url })
  expect(await query(second, 'select body from note')).toEqual([{ body: 'äöé' }])
})

dbTest('a start waits for a Postgres that is not ready for hours', async () => {
  const dataDir = await makeDataDir()
  const now = performance.now.bind(performance)
  let laterMs = 0
  using log = captureLog()
  const clock = spyOn(performance, 'now').mockImplementation(() => now() + (laterMs += 60_000))
  const server = await start(dataDir).finally(() => clock.mockRestore())
  expect(log.lines.join('')).toContain('Postgres is not ready after')
  await server.stop()
})

dbTest('Postgres has a secret password, and a socket that no other user may reach', async () => {
  const dataDir = await makeDataDir()
  const embedded = await start(dataDir)
  expect(statSync(join(dataDir, 'postgres', 'password')).mode & 0o777).toBe(0o600)
  const wrong = { ...embedded, url: embedded.url.replace(new URL(embedded.url).password, 'wrong') }
  await expect(query(wrong, 'select 1')).rejects.toThrow('password authentication failed')
  expect(await query(embedded, 'show listen_addresses')).toEqual([{ listen_addresses: '' }])
  const folder = toSocketFolder(embedded)
  expect(folder).toBe(join(dataDir, 'postgres', 'data'))
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(statSync(join(folder, SOCKET_FILE)).mode & 0o777).toBe(0o700)
  if (isLinux) {
    const names = readFileSync(`/proc/${getPid(dataDir)}/environ`, 'utf8').split('\0')
    // Postgres gets nothing of our environment. It sets PGDATA and PG_ variables itself.
    const foreign = names.filter(name => name && !/^(LC_ALL|TZ|PATH|PG\w+)=/.test(name))
    expect(foreign).toEqual([])
  }
  if (!canGiveFiles()) return

  // A runtime in the home folder of root cannot be started by another user. Debian's stat can.
  const stranger = {
    uid: 4242,
    gid: 4242,
    cwd: '/',
    env: { LC_ALL: 'C' },
    encoding: 'utf8',
  } as const
  const look = (path: string) => spawnSync('/usr/bin/stat', ['-c', '%a', path], stranger)
  expect(look(folder).stdout).toBe('700\n')
  expect(look(join(folder, SOCKET_FILE)).stderr).toContain('Permission denied')
})

dbTest('a path that is too long for a socket gets a private folder in /tmp', async () => {
  const dataDir = await makeDataDir(join(makeFolder(), 'long-'.repeat(20)))
  const first = await start(dataDir)
  const folder = toSocketFolder(first)
  expect(folder).toMatch(/^\/tmp\/tidings-[0-9a-f]{12}$/)
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  const other = await startServer(dataDir)
  expect(other).toMatchObject({ how: 'attached', url: first.url })
  const pid = getPid(dataDir)
  process.kill(pid, 'SIGKILL')
  await untilReady(first, pid, dataDir)
  await stopServer(other)
  await first.stop()
  expect(existsSync(folder)).toBe(false)
  // Another user can have made it.
  symlinkSync(makeFolder(), folder)
  await expect(start(dataDir)).rejects.toThrow('Choose a shorter DATA_DIR.')
  unlinkSync(folder)
})

dbTest("the server's role reads no files, runs no programs and makes no roles", async () => {
  const embedded = await start(await makeDataDir())
  for (const forbidden of [
    `copy (select 1) to program 'true'`,
    `copy (select 1) to '/tmp/tidings-copy'`,
    `select pg_read_file('PG_VERSION')`,
    `select lo_import('PG_VERSION')`,
    'select * from pg_authid',
    'create role other superuser',
    'create database other',
    `set session_replication_role = 'replica'`,
    `alter system set fsync = off`,
    'alter role tidings_server superuser',
    'set role tidings',
  ]) {
    await expect(query(embedded, forbidden)).rejects.toThrow(/denied|must be/)
  }
  await query(embedded, 'create table note (id int); listen note; notify note; drop table note')
})

dbTest('the role of the server gets what the superuser owns', async () => {
  const dataDir = await makeDataDir()
  const embedded = await start(dataDir)
  const superuser = { url: embedded.superuserUrl }
  await query(superuser, 'alter database postgres owner to tidings; drop role tidings_server')
  await query(
    superuser,
    `create type mood as enum ('calm'); create type pair as (a int, b int);
    create table note (id int generated always as identity primary key, mood mood not null);
    create sequence steps; create view notes as select * from note;
    create function count_notes() returns bigint language sql as 'select count(*) from note';
    insert into note (mood) values ('calm')`,
  )
  await embedded.stop()

  const next = await start(dataDir)
  expect(await query(next, 'select count_notes()::int as notes')).toEqual([{ notes: 1 }])
  await query(
    next,
    `alter table note add body text; alter type mood add value 'busy'; drop view notes; drop type pair;
    drop sequence steps; drop function count_notes(); drop table note`,
  )
})

dbTest.each([
  ['that is killed', 'SIGKILL'],
  // At a terminal, it reaches all processes of the group.
  ['that Ctrl-C has ended', 'SIGINT'],
] as const)('Postgres outlives a server %s, and the next one attaches', async (_, signal) => {
  const dataDir = await makeDataDir()
  const owner = await startServer(dataDir, { detached: true })
  const pid = getPid(dataDir)
  process.kill(-owner.child.pid!, signal)
  await once(owner.child, 'exit')
  const next = await start(dataDir)
  expect(next).toMatchObject({ how: 'attached', url: owner.url })
  expect(getPid(dataDir)).toBe(pid)
  expect(await query(next, 'select 1 as one')).toEqual([{ one: 1 }])
})

dbTest('Postgres is started again on its socket when its postmaster is killed', async () => {
  const dataDir = await makeDataDir()
  const embedded = await start(dataDir)
  await query(embedded, 'create table note as select 1 as id')
  using log = captureLog()
  for (let times = 0; times < 2; times++) {
    const pid = getPid(dataDir)
    process.kill(pid, 'SIGKILL')
    await untilReady(embedded, pid, dataDir)
    expect(await query(embedded, 'select id from note')).toEqual([{ id: 1 }])
  }
  await until(() => log.lines.length >= 2)
  // Its own processes, which are ending, are not another program.
  expect(log.lines.filter(line => !line.includes('and was restarted'))).toEqual([])
})

dbTest('a lock whose process is ending is waited for', async () => {
  const dataDir = await makeDataDir()
  await (await start(dataDir)).stop()
  const cluster = readCluster(join(dataDir, 'postgres'))
  // The kernel closes the files of an ending process after its folder.
  const lock = tryLockCluster(cluster.data)
  setTimeout(() => lock?.release(), 100)
  const { child } = await ensurePostmaster(cluster)
  expect([lock, child]).not.toContain(undefined)
})

linuxTest('a backend that outlives Postgres is ended before the restart', async () => {
  const dataDir = await makeDataDir()
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
  expect(servers[0].url).toBe(servers[1].url)
  const log = readFileSync(join(dataDir, 'postgres', 'log'), 'utf8')
  expect(log.match(/ready to accept connections/g)).toHaveLength(1)
})

dbTest('who stops leaves Postgres to the other, who keeps it running alone', async () => {
  const dataDir = await makeDataDir()
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

dbTest('a pid file that names a dead process or a stranger is stale', async () => {
  const dataDir = await makeDataDir()
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

dbTest(
  'a folder that is not complete or of another version is refused, with what to do',
  async () => {
    const dataDir = await makeDataDir()
    const home = join(dataDir, 'postgres')
    for (const name of ['password', 'data/PG_VERSION']) {
      const file = join(home, name)
      renameSync(file, `${file}.kept`)
      await expect(start(dataDir)).rejects.toThrow(`${file} is missing. Restore the whole folder`)
      renameSync(`${file}.kept`, file)
    }
    if (isRoot) {
      const data = join(home, 'data')
      const { uid, gid } = statSync(data)
      // A copy by root without `-a`.
      chownSync(data, 0, 0)
      await expect(start(dataDir)).rejects.toThrow(`chown -R ${uid}:${gid} ${data}`)
      chownSync(data, uid, gid)
    }
    const version = join(home, 'data', 'PG_VERSION')
    const major = readFileSync(version, 'utf8')
    writeFileSync(version, '99\n')
    const message = await start(dataDir).catch((error: Error) => error.message)
    expect(message).toContain('was created by PostgreSQL 99. This Tidings contains PostgreSQL 18')
    expect(message).toContain('tidings restore tidings.backup')
    writeFileSync(version, major)
    const password = join(home, 'password')
    const own = readFileSync(password, 'utf8')
    writeFileSync(password, 'that of another folder')
    await expect(start(dataDir)).rejects.toThrow('is that of another folder')
    writeFileSync(password, own)
    const next = await start(dataDir)
    expect(await query(next, 'select 1 as one')).toEqual([{ one: 1 }])
    await next.stop()
    rmSync(join(home, 'data', 'global', 'pg_control'))
    await expect(start(dataDir)).rejects.toThrow('could not find the database system')
  },
)

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

test.skipIf(!canGiveFiles())(
  'a copy that only root can remove does not stop a start of another user',
  () => {
    const home = makeFolder()
    const copy = join(home, '16.1.0', 'bin')
    mkdirSync(copy, { recursive: true })
    writeFileSync(join(copy, 'postgres'), '')
    chownSync(home, 65_534, 65_534)
    process.seteuid?.(65_534)
    try {
      removeUnusedCopies(home)
    } finally {
      process.seteuid?.(0)
    }
    expect(existsSync(copy)).toBe(true)
  },
)

dbTest(
  'binaries are kept beside the data, once, so that the package can go; its links are made there',
  async () => {
    const checkout = makeCheckout(makeFolder(0o700))
    const dataDir = await makeDataDir()
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

linuxTest(
  'a uid without a name gets one from libnss_wrapper, or is told to install it',
  async () => {
    const dataDir = makeFolder()
    const enter = ['unshare', '--user', '--map-user=4242', '--']
    if (!hasNamespace(enter)) return
    const starting = startServer(dataDir, { container: { enter } })
    if (findWrapper() === undefined) {
      await expect(starting).rejects.toThrow('apt install libnss-wrapper')
      return
    }
    const server = await starting
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await stopServer(server)).toEqual([0, null])
    // Only initdb needs the name.
    expect(readdirSync(join(dataDir, 'postgres'))).not.toContain('passwd')
  },
)

test('a lock that is a link or no file is refused, and its target is left alone', () => {
  const folder = makeFolder()
  const target = join(folder, 'target')
  writeFileSync(target, '')
  chmodSync(target, 0o644)
  symlinkSync(target, join(folder, 'link'))
  symlinkSync(join(folder, 'created'), join(folder, 'dangling'))
  for (const name of ['link', 'dangling', '.']) {
    expect(() => tryLock(join(folder, name), 'exclusive')).toThrow('is a link or no file')
  }
  expect(statSync(target).mode & 0o777).toBe(0o644)
  expect(existsSync(join(folder, 'created'))).toBe(false)
})

test('a new folder on a network file system is refused, and an existing one is used', () => {
  const home = makeFolder()
  const [NFS, FUSE] = [0x6969, 0x65735546]
  expect(() => checkDisk(home, true, NFS)).toThrow('is on NFS. Servers of two machines')
  // Some runtimes return a signed number.
  expect(() => checkDisk(home, true, 0xff534d42 | 0)).toThrow('is on CIFS')
  checkDisk(home, false, NFS)
  checkDisk(home, true, FUSE)
})

test('without binaries the error says what to do', async () => {
  const checkout = makeCheckout(makeFolder())
  rmSync(checkout.native, { recursive: true })
  const dataDir = makeFolder()
  await expect(startServer(dataDir, { root: checkout.root })).rejects.toThrow('Set DATABASE_URL')
})

function hasNamespace([command = '', ...words]: string[]): boolean {
  if (spawnSync(command, [...words, 'true']).status === 0) return true
  console.warn('Left out: a test that needs user namespaces')
  return false
}
