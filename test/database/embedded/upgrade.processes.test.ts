import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { COPY_SETTINGS } from '../../../src/database/copy.ts'
import type { Sql } from '../../../src/database/sql.ts'
import { countRows } from '../../support/worlds/backup.ts'
import { hasContainers, openContainer } from '../../support/containers.ts'
import { listChildren } from '../../support/leftovers.ts'
import {
  isLinux,
  isNamed,
  makeCheckout,
  makeFolder,
  start,
  startServer,
  stopServer,
  clearEmbedded,
} from '../../support/servers/embedded.ts'
import { newFullTenant, type FullTenant } from '../../support/worlds/full-tenant.ts'
import {
  runProgram,
  spawnProgram,
  startProgram,
  toEmbeddedUrl,
} from '../../support/servers/process.ts'
import { createRequests, type Answered } from '../../support/worlds/project.ts'
import { APP_SECRET, testSecrets } from '../../support/secret.ts'
import { boot } from '../../support/servers/server.ts'
import { makeFolder as makeScratchFolder } from '../../support/scratch.ts'
import { scaled } from '../../support/until.ts'
import { openSql } from '../../support/sql.ts'

afterEach(clearEmbedded)

// Data made by the package of Postgres 17, while ours has 18.
const OLD = 'postgres-17'
const EVENTS = 2_000
const EVENT = { channelName: 'payments', title: 'New payment' }
const KEY = { 'idempotency-key': 'before' }
// The package exists for this platform alone; here it must be installed.
const hasOld = isNamed && isLinux && process.arch === 'x64'
const majorTest = test.if(hasOld)

setDefaultTimeout(scaled(240_000))

let made: string
let tenant: FullTenant
let sent: Answered
let sums: Record<string, string>

beforeAll(async () => {
  if (!hasOld) return
  made = makeScratchFolder()
  const program = join(made, 'program')
  const dataDir = join(made, 'data')
  makeCheckout(program, OLD)
  const old = await startServer(dataDir, { root: program })
  const databaseUrl = toEmbeddedUrl(dataDir)
  const server = await boot({ databaseUrl })
  tenant = await newFullTenant(server)
  sent = await createRequests(server.url, tenant.key).post('/v1/events', EVENT, KEY)
  await server[Symbol.asyncDispose]()
  const sql = openSql(databaseUrl, { settings: COPY_SETTINGS })
  await fillLog(sql)
  sums = await sumTables(sql)
  await sql.end()
  await stopServer(old)
  expect(existsSync(join(dataDir, 'postgres', 'data', 'postmaster.pid'))).toBe(false)
  rmSync(program, { recursive: true })
})
afterAll(() => made && rmSync(made, { recursive: true }))

/** Appends events to the log of the tenant. */
async function fillLog(sql: Sql): Promise<void> {
  await sql`
    insert into events (
      project_id, id, channel_id, seq, occurred_at, created_at, title, description, icon, tags, metadata, user_ref,
      source, notify
    )
    select
      e.project_id, gen_random_uuid(), e.channel_id, l.last_seq + n, e.occurred_at, e.created_at, 'Event ' || n,
      E'a\tb\\\n' || n, e.icon, e.tags, e.metadata, e.user_ref, e.source, e.notify
    from event_logs l
      join events e on e.project_id = l.project_id and e.seq = 1
      cross join generate_series(1, ${EVENTS}) as n
    where l.last_seq > 0
  `
  await sql`update event_logs set last_seq = last_seq + ${EVENTS} where last_seq > 0`
}

/** Returns a checksum over all rows of each table, and the positions of the sequences. */
async function sumTables(sql: Sql): Promise<Record<string, string>> {
  const result: Record<string, string> = {}
  for (const name of Object.keys(await countRows(sql))) {
    const rows = await sql.unsafe<{ row: string }[]>(
      `select t::text as row from ${name} t order by t::text collate "C"`,
    )
    const sum = createHash('sha256')
    for (const { row } of rows) sum.update(`${row}\n`)
    result[name] = `${rows.length} ${sum.digest('hex')}`
  }
  const sequences = await sql<{ name: string; last: string }[]>`
    select sequencename::text as name, last_value::text as last from pg_sequences
  `
  for (const { name, last } of sequences) result[name] = last
  return result
}

/** Copies the installation that Postgres 17 made into a new folder. */
function copyMade(): { dataDir: string; home: string } {
  const dataDir = join(makeFolder(), 'data')
  execFileSync('cp', ['-a', join(made, 'data'), dataDir])
  return { dataDir, home: join(dataDir, 'postgres') }
}

/**
 * Returns the serving major version, the checksums of the tables, and whether indexes are complete.
 */
async function look(
  dataDir: string,
): Promise<{ major: number; sums: Record<string, string>; indexes: number }> {
  const embedded = await start(dataDir)
  const sql = openSql(embedded.url, { settings: COPY_SETTINGS })
  const [row] = await sql<[{ version: number; indexes: number }]>`
    select
      current_setting('server_version_num')::int as version,
      (select count(*)::int from pg_indexes where schemaname = 'public') as indexes
  `
  const found = {
    major: Math.floor(row.version / 10_000),
    sums: await sumTables(sql),
    indexes: row.indexes,
  }
  await sql.end()
  await embedded.stop()
  return found
}

const migrateProgram = (dataDir: string) =>
  runProgram({
    env: { DATA_DIR: dataDir, APP_SECRET: APP_SECRET.toString('base64') },
    args: ['migrate'],
  })
const readMade = (home: string, name = 'data') =>
  readFileSync(join(home, name, 'PG_VERSION'), 'utf8').trim()
const listClusters = (home: string) =>
  readdirSync(home)
    .filter(name => name.startsWith('data'))
    .sort()

/** Counts processes in clusters other than the one in use. */
function countStrays(home: string): number {
  return readdirSync('/proc').filter(pid => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(join(home, 'data.'))
    } catch {
      return false
    }
  }).length
}

majorTest(
  'data of an older major version is upgraded, wherever the first tries were killed, and works',
  async () => {
    const { dataDir, home } = copyMade()
    const program = join(import.meta.dir, '../../support/upgrade-program.ts')
    const killAt = async (KILL_AT: string, KILL_NTH = 1) => {
      const env = { DATA_DIR: dataDir, KILL_AT, KILL_NTH: String(KILL_NTH) }
      const child = spawnProgram({ env, program, args: [] })
      const { signal } = await child.exited
      if (signal !== 'SIGKILL') throw new Error(child.output())
    }
    // A command line leaves the upgrade to the server, and works on the old cluster.
    const before = await look(dataDir)
    expect(before).toMatchObject({ major: 17, sums })
    // Two Postgres servers survive the kill, and half a cluster.
    await killAt('Applied migration', 3)
    expect(listClusters(home)).toEqual(['data', expect.stringMatching(/^data\.new-/)])
    // All rows are copied, and nothing is committed.
    await killAt('Building the indexes')
    expect(listClusters(home)).toEqual(['data', expect.stringMatching(/^data\.new-/)])
    expect(readMade(home)).toBe('17')
    // The cluster is complete, but the older program may have changed the data meanwhile.
    await killAt('Moved', 1)
    expect(listClusters(home)).toEqual(['data', 'data.upgraded'])
    expect(readMade(home)).toBe('17')
    await killAt('Moved', 2)
    expect(listClusters(home)).toEqual(['data.old-17', 'data.upgraded'])

    expect((await migrateProgram(dataDir)).output).toContain('ok   baseline')
    expect(await look(dataDir)).toEqual({ ...before, major: 18 })
    expect(listClusters(home)).toEqual(['data', 'data.old-17'])
    expect(readMade(home, 'data.old-17')).toBe('17')
    expect(countStrays(home)).toBe(0)

    const env = { DATA_DIR: dataDir, APP_SECRET: APP_SECRET.toString('base64') }
    await using server = await startProgram({ env })
    expect(server.logged('Upgrading your data')).toEqual([])
    const { post, get } = createRequests(server.url, tenant.key)
    expect((await post('/v1/events', EVENT, KEY)).text).toBe(sent.text)
    expect((await post('/v1/events', EVENT)).body.data.seq).toBe(sent.body.data.seq + EVENTS + 1)
    expect((await get(`/v1/events?userId=${tenant.names['alias']}`)).body.data.items).not.toEqual(
      [],
    )
    const me = await fetch(`${server.url}/api/me`, {
      headers: { cookie: tenant.members.owner.cookie },
    })
    expect(me.status).toBe(200)
    await post('/v1/identify', { user_id: 'new', aliases: ['brand-new'] })

    const sql = openSql(toEmbeddedUrl(dataDir))
    const others = await sql`
      select from pg_class where relnamespace = 'public'::regnamespace and pg_get_userbyid(relowner) <> current_user
      union all
      select from pg_proc where pronamespace = 'public'::regnamespace and pg_get_userbyid(proowner) <> current_user
    `
    expect(others).toHaveLength(0)
    const [webhook] = await sql<{ id: string; secret: string }[]>`select id, secret from webhooks`
    const place = { table: 'webhooks', column: 'secret', rowId: webhook!.id }
    expect(testSecrets().open(webhook!.secret, place)).toStartWith('whsec_')
    const [changes] = await sql<[{ rows: number; ids: number }]>`
    select count(*)::int as rows, count(distinct id)::int as ids from alias_changes
  `
    expect(changes).toEqual({ rows: 2, ids: 2 })
    await sql.end()

    const doctor = await runProgram({ env, args: ['doctor'] })
    expect(doctor.output).toMatch(/warning +old data: .*data\.old-17 .*Delete it/)
  },
)

test.if(hasOld && hasContainers)(
  'an older Postgres that a killed server has left in another container is not upgraded',
  async () => {
    const { dataDir, home } = copyMade()
    const program = makeCheckout(makeFolder(), OLD)
    await using first = await openContainer(['pid', 'mount', 'ipc'])
    const server = await startServer(dataDir, { root: program.root, container: first })
    for (const pid of listChildren(server.child.pid!)) process.kill(pid, 'SIGKILL')
    await once(server.child, 'exit')
    await using second = await openContainer(['pid', 'mount', 'ipc'])
    const env = { DATA_DIR: dataDir, APP_SECRET: APP_SECRET.toString('base64') }
    const { code, output } = await runProgram({ env, args: ['migrate'], container: second })
    expect(code).toBe(1)
    expect(output).toContain('Nothing was changed.')
    expect(output).toContain('Postgres 17 runs in another container')
    expect(listClusters(home)).toEqual(['data'])
    await first.kill()
    // A crash empties the tables without a write-ahead log.
    const found = await look(dataDir)
    expect([found.major, found.sums['events']]).toEqual([17, sums['events']])
  },
)

majorTest('without free space, or with a newer schema, the upgrade changes nothing', async () => {
  const { dataDir, home } = copyMade()
  const ballast = join(home, 'data', 'ballast')
  writeFileSync(ballast, '')
  truncateSync(ballast, 8e12)
  const full = await migrateProgram(dataDir)
  expect(full.code).toBe(1)
  expect(full.output).toMatch(
    /Nothing was changed.* could not be upgraded .* needs \d+ MB, and .* has \d+ MB free/,
  )
  rmSync(ballast)

  const embedded = await start(dataDir)
  const sql = openSql(embedded.url)
  await sql`insert into migrations (name, checksum) values ('9999_future', '')`
  await embedded.stop()
  const newer = await migrateProgram(dataDir)
  expect(newer.output).toContain('has migrations of a newer Tidings: 9999_future')
  expect(listClusters(home)).toEqual(['data'])
  expect(countStrays(home)).toBe(0)
  await sql.end()
  const { migrations: _, ...others } = sums
  expect(await look(dataDir)).toMatchObject({ major: 17, sums: others })
})

majorTest(
  'when the older Postgres is missing, the error lists the remedies, and an installed one is used',
  async () => {
    const { dataDir, home } = copyMade()
    const [kept] = readdirSync(home).filter(name => name.startsWith('17.'))
    rmSync(join(home, kept!), { recursive: true })
    const { code, output } = await migrateProgram(dataDir)
    expect(code).toBe(1)
    expect(output).toContain('The upgrade needs PostgreSQL 17')
    expect(output).toContain(`ln -s /usr/lib/postgresql/17 ${home}/17.0`)
    expect(listClusters(home)).toEqual(['data'])

    symlinkSync(makeCheckout(makeFolder(), OLD).native, join(home, '17.0'))
    expect(await look(dataDir)).toMatchObject({ major: 17, sums })
  },
)
