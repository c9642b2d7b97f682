import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { createBackupKeys } from '../../../src/server/backup/passphrase.ts'
import { MIGRATIONS } from '../../../src/database/sql-files.ts'
import { listRows } from '../../../src/database/migrate.ts'
import { CHEAP, makeBackupFolder, PASSPHRASE, restore } from '../../support/worlds/backup.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { startProgram, type Program } from '../../support/servers/process.ts'
import { sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import { makeFolder } from '../../support/scratch.ts'
import { until } from '../../support/until.ts'
import { openSql } from '../../support/sql.ts'

// Attacks by another user of the machine, a reader of the log, and the author of a backup.

const OWNER_PASSWORD = 'violet tractor seventeen'
const folder = makeFolder(0o711)
// Under root, Postgres runs as another user.
const dataDir = join(folder, 'data')
let program: Program
beforeAll(async () => {
  program = await startProgram({
    env: {
      DATA_DIR: dataDir,
      LOG_LEVEL: 'debug',
      OWNER_EMAIL: 'ada@example.com',
      OWNER_PASSWORD,
    },
  })
})
afterAll(async () => {
  await program.kill('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

/** The files that other users may see: the Postgres programs. */
const isOpen = (path: string) => /\/postgres\/\d[^/]*\/.*$/.test(path)

test('other users cannot read, write or lock files in DATA_DIR', () => {
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(path => !path.includes('/postgres/data/'))
  const names = files.map(path => path.slice(dataDir.length + 1))
  for (const name of ['app-secret', 'postgres/lock', 'postgres/users', 'postgres/password']) {
    expect(names).toContain(name)
  }
  const loose = files.filter(path => !isOpen(path) && (statSync(path).mode & 0o077) !== 0)
  expect(loose).toEqual([])
  expect(statSync(join(dataDir, 'postgres/data')).mode & 0o077).toBe(0)
  expect(statSync(dataDir).mode & 0o066).toBe(0)
})

test.if(process.platform === 'linux')(
  'no command line and no environment of Postgres contains a secret',
  () => {
    const secrets = [
      OWNER_PASSWORD,
      program.firstKey!,
      readFileSync(join(dataDir, 'postgres/password'), 'utf8').trim(),
      ...readFileSync(join(dataDir, 'app-secret'), 'utf8').split('\n').slice(2).filter(Boolean),
    ]
    expect(secrets.length).toBeGreaterThanOrEqual(4)
    const read = (pid: string, name: string) => {
      try {
        return readFileSync(`/proc/${pid}/${name}`, 'utf8')
      } catch {
        return '' // The process has ended meanwhile.
      }
    }
    const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
    const own = pids.filter(pid => read(pid, 'cmdline').includes(dataDir))
    expect(own.length).toBeGreaterThanOrEqual(1)
    const texts = [
      read(String(program.pid), 'cmdline'),
      ...own.flatMap(pid => [read(pid, 'cmdline'), read(pid, 'environ')]),
    ].join('\n')
    expect(secrets.filter(secret => texts.includes(secret))).toEqual([])
  },
)

test('the log says once that X-Forwarded-For is not believed, and what to set', async () => {
  for (const address of ['203.0.113.9', '203.0.113.10']) {
    const headers = { 'x-forwarded-for': address, origin: program.url }
    const body = JSON.stringify({ email: 'ada@example.com', password: 'wrong' })
    const sent = { ...headers, 'content-type': 'application/json' }
    await fetch(`${program.url}/api/session`, { method: 'POST', headers: sent, body })
  }
  await until(() => program.logged('TRUSTED_PROXIES').length > 0)
  const [line = '', ...others] = program.logged('TRUSTED_PROXIES')
  expect(others).toEqual([])
  const { message } = JSON.parse(line) as { message: string }
  expect(message).toContain('set TRUSTED_PROXIES to "127.0.0.1".')
})

test('no request can forge a line of the log, or control the terminal of its reader', async () => {
  const { post, request } = createRequests(program.url, program.firstKey!)
  const forged = '\n{"level":"ERROR","message":"forged"}\u001b[2J\r'
  await post('/v1/events', { channelName: 'c', title: forged, source: forged, userId: forged })
  await post('/v1/identify', { user_id: forged, properties: { forged }, aliases: [forged] })
  await request(`/v1/events?text=${encodeURIComponent(forged)}`)
  await request(`/v1/users/${encodeURIComponent(forged)}`)
  await request(`/v1/${encodeURIComponent(forged)}`)
  for (const line of ['User-Agent', 'Authorization', 'Cookie', 'X-Forwarded-For', 'Origin']) {
    const text = '\u001b[2J {"message":"forged"}'
    await sendRaw(
      program.url,
      toRequest('GET /api/me HTTP/1.1', ['Host: localhost', `${line}: ${text}`]),
    )
  }
  const { output } = program
  expect(program.logged('/v1/users/:userId').length).toBeGreaterThan(0)
  // The greeting is for people; every other line is JSON.
  const lines = output()
    .split('\n')
    .filter(line => line.startsWith('{'))
  expect(lines.map(line => (JSON.parse(line) as { message: string }).message)).not.toContain(
    'forged',
  )
  expect(output()).not.toContain('forged')
  expect(output()).not.toContain('\u001b')
  expect(readFileSync(join(dataDir, 'postgres/log'), 'utf8')).not.toContain('forged')
})

const DAMAGED = 'The backup is damaged or incomplete'

test('a malicious backup with a valid passphrase writes nothing but its tables', async () => {
  using place = makeBackupFolder()
  const { check, scrypt } = await createBackupKeys(PASSPHRASE, CHEAP)
  const head = {
    tidings: 'backup',
    format: 1,
    version: '0.1.0',
    createdAt: '2026-01-01T00:00:00Z',
    migrations: MIGRATIONS.flatMap(one => Object.keys(listRows(one))),
    scrypt,
    check,
  }
  const databaseUrl = await cloneDatabase()
  const refused = async (message: string, lines: object[], more = '') => {
    const text = lines.map(line => `${JSON.stringify(line)}\n`).join('') + more
    writeFileSync(place.file, gzipSync(text, { level: 1 }))
    await expect(restore(databaseUrl, place.file)).rejects.toThrow(message)
  }
  // Costs that need too much memory before anything is verified, and costs that are too low.
  for (const cost of [{ n: 2 ** 20 }, { n: 2 ** 17 + 1 }, { n: 2 }, { r: 16 }, { p: 16 }]) {
    await refused(DAMAGED, [{ ...head, scrypt: { ...scrypt, ...cost } }])
  }
  for (const table of [
    'pg_authid',
    'accounts"; drop table events; --',
    '__proto__',
    'sealed_canary',
  ]) {
    await refused(DAMAGED, [head, { table, columns: ['id'] }], '\\.\n')
  }
  await refused(DAMAGED, [head, { table: 'accounts', columns: ["id\") from program 'id' --"] }])
  // Rows without columns, and a line without end that decompresses to a hundred thousand times its
  // size.
  await refused(
    'rejected the rows of accounts',
    [head, { table: 'accounts', columns: [] }],
    '\\.\n',
  )
  await refused(DAMAGED, [head], 'x'.repeat(80 * 1024 * 1024))
  const sql = openSql(databaseUrl)
  const [row] = await sql<[{ n: number }]>`select count(*)::int as n from accounts`
  expect(row.n).toBe(0)
  await sql.end()
})
