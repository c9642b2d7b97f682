import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { findOldestServer, findSchemaProblem, isIn, migrate } from '../../src/database/migrate.ts'
import { BASELINE_VERSION, MIGRATIONS } from '../../src/database/sql-files.ts'
import type { ReleaseIndex } from '../../packaging/releases.ts'
import type { Sql } from '../../src/database/sql.ts'
import { listTables } from '../../src/database/tables.ts'
import { compareVersions } from '../../src/base/version.ts'
import index from '../../releases.json' with { type: 'json' }
import { makeBackupFolder, OTHER_SECRET, restore, rewrite } from '../support/worlds/backup.ts'
import { createBrowser } from '../support/worlds/browser.ts'
import { cloneDatabase, createEmptyDatabase } from '../support/servers/postgres.ts'
import { runProgram } from '../support/servers/process.ts'
import { readCatalog } from '../support/catalog.ts'
import { createRequests } from '../support/worlds/project.ts'
import { boot } from '../support/servers/server.ts'
import { openSql } from '../support/sql.ts'
import { REPEATED } from '../releases/repeated.ts'

const { releases }: ReleaseIndex = index
const toFile = (version: string, name: string) =>
  join(import.meta.dirname, '../releases', version, name)

/** An installation of a release as its own server showed it. */
interface Recorded {
  key: string
  email: string
  /** The responses to REPEATED, by path. */
  repeated: Record<string, object>
  /** The data of responses, by path. */
  responses: Record<string, object>
}

/** The tables with rows that later migrations change or remove. */
const CHANGED: Record<string, string[]> = {
  '0.3.0': ['archive_files', 'archive_runs', 'known_devices', 'outbox', 'webhooks'],
}

for (const { version } of releases.filter(
  one => compareVersions(one.version, BASELINE_VERSION) >= 0,
)) {
  const recorded = JSON.parse(readFileSync(toFile(version, 'expected.json'), 'utf8')) as Recorded
  const backup = toFile(version, 'installation.backup')

  /** Makes the database of the release, as its own server left it. */
  const load = async () => {
    const url = await createEmptyDatabase()
    const sql = openSql(url)
    await sql.unsafe(gunzipSync(readFileSync(toFile(version, 'database.sql.gz'))).toString())
    await sql`update idempotency_keys set expires_at = now() + interval '1 day'`
    await sql`update push_subscriptions set quiet_from = 1350, quiet_to = 420, quiet_zone = 'Europe/Berlin'`
    await sql`update known_devices set push_settings = '{"quiet": [0, 61, "UTC"]}'`
    return { url, sql }
  }
  const upgraded = once(async () => {
    const { url, sql } = await load()
    const [names, secret, before] = [
      await readNames(sql),
      await readSecret(sql),
      await readRows(sql),
    ]
    await sql`insert into resumed_targets (kind, target_id) select distinct kind, target_id from outbox`
    const later = MIGRATIONS.filter(one => !isIn(one, names))
    const isBreaking = later.some(
      one => compareVersions(findOldestServer(one) ?? version, version) > 0,
    )
    const applied = await migrate(url)
    return { url, sql, later, isBreaking, secret, before, applied, catalog: await readCatalog(sql) }
  })
  afterAll(async () => (await upgraded()).sql.end({ timeout: 1 }))

  /** Throws unless a server on the database responds as that of the release. */
  const check = async (databaseUrl: string, appSecret?: Buffer) => {
    await using server = await boot({ databaseUrl, ...(appSecret && { appSecret }) })
    const { get, post } = createRequests(server.url, recorded.key)
    const browser = createBrowser(server.url)
    expect((await browser.signIn(recorded.email)).status).toBe(200)
    for (const [path, data] of Object.entries(recorded.responses)) {
      const { body } = path.startsWith('/api') ? await browser.get(path) : await get(path)
      expect(body.data).toMatchObject(data as object)
    }
    const last = await get('/v1/events?limit=1')
    const sent = await post('/v1/events', { channelName: 'payments', title: 'After the upgrade' })
    expect(sent.body.data.seq).toBe(last.body.data.items[0].seq + 1)
    for (const [path, response] of Object.entries(recorded.repeated)) {
      const headers = { 'idempotency-key': `repeated ${path}` }
      expect((await post(path, REPEATED[path]!, headers)).body).toEqual(response)
    }
  }

  test(`a database of ${version} is upgraded, and all its rows stay`, async () => {
    const { url, sql, later, applied, before, secret } = await upgraded()
    expect(applied).toEqual([...later.map(({ name }) => name), 'functions'])
    expect(await readSecret(sql)).toBe(secret)
    expect(await migrate(url)).toEqual([])
    // Targets that the release was about to resume are resumed.
    const waiting = await sql`
      select from outbox o left join delivery_targets t on t.kind = o.kind and t.id = o.target_id
      where o.claimed_at < t.resumed_at is not true
    `
    expect(waiting.count).toBe(0)
    // The daily windows of devices, and of browsers that were signed out, are quiet hours.
    const night = { days: [1, 2, 3, 4, 5, 6, 7], from: '22:30', to: '07:00' }
    const devices = await sql`select quiet_hours as hours from push_subscriptions`
    expect<unknown[]>(devices).toEqual([{ hours: [{ ...night, timeZone: 'Europe/Berlin' }] }])
    const browsers = await sql`
      select push_settings -> 'quietHours' as hours from known_devices where push_settings is not null limit 1
    `
    const early = { ...night, from: '00:00', to: '01:01', timeZone: 'UTC' }
    expect<unknown[]>(browsers).toEqual([{ hours: [early] }])
    const after = await readRows(sql)
    expect(Object.keys(before).length).toBeGreaterThan(50)
    const changed = Object.entries(before)
      .filter(([table, rows]) => !Bun.deepEquals(rows, keepColumns(after[table] ?? [], rows)))
      .map(([table]) => table)
    expect(changed.toSorted()).toEqual(CHANGED[version] ?? [])
  })

  test(`the schema that ${version} leaves becomes that of a new installation`, async () => {
    const { catalog } = await upgraded()
    await using sql = openSql(await cloneDatabase())
    expect(catalog).toEqual(await readCatalog(sql))
  })

  test(`everything of ${version} works after the upgrade, also a repeated request`, async () => {
    await check((await upgraded()).url)
  })

  test(`a backup of ${version} is restored, with its settings and its search index`, async () => {
    const url = await createEmptyDatabase()
    const { createdAt } = await restore(url, backup)
    await using sql = openSql(url)
    // The next check finds the time since then, and nothing is deleted for its age meanwhile.
    const [clock] = await sql`
      select checked_at, untrusted_until > now() + interval '23 hours' as is_held from clock
    `
    expect<unknown>(clock).toEqual({ checked_at: new Date(createdAt), is_held: true })
    await sql`update idempotency_keys set expires_at = now() + interval '1 day'`
    await check(url, OTHER_SECRET)
    expect(await findSchemaProblem(sql)).toBeUndefined()
    expect(await readCatalog(sql)).toEqual((await upgraded()).catalog)
  })

  test(`the schema still serves every statement of ${version}`, async () => {
    const { sql, isBreaking } = await upgraded()
    if (isBreaking) return
    const texts = gunzipSync(readFileSync(toFile(version, 'statements.sql.gz'))).toString()
    const statements = texts.split('\n;\n').slice(0, -1)
    expect(statements.length).toBeGreaterThan(400)
    const refused: string[] = []
    for (const text of statements)
      await sql
        .unsafe(`prepare recorded as ${text}`)
        .then(() => sql`deallocate recorded`)
        .catch((error: Error) => refused.push(`${error.message}: ${text}`))
    expect(refused).toEqual([])
  })
}

test('a database of 0.2.0 is refused with the way to upgrade it', async () => {
  const url = await createEmptyDatabase()
  await using sql = openSql(url)
  await sql`
    create table migrations (
      name text primary key, checksum text not null, oldest_server text, applied_at timestamptz default now()
    )
  `
  await sql`insert into migrations ${sql(
    Object.entries(releases[0]!.migrations).map(([name, checksum]) => ({ name, checksum })),
  )}`
  const message =
    'The database is of a Tidings before 0.3.0. Nothing was changed. ' +
    'Upgrade it to 0.3.0 first: start that version on it once. Then start this one.'
  await expect(migrate(url)).rejects.toThrow(message)
  expect(await findSchemaProblem(sql)).toBe('The schema of the database is older than this program')
  const { code, output } = await runProgram({ env: { DATABASE_URL: url } })
  expect(code).toBe(1)
  expect(output).toContain(message)
})

test('a backup of 0.2.0 is refused with the version that restores it', async () => {
  using folder = makeBackupFolder()
  const names = Object.keys(releases[0]!.migrations)
  const file = rewrite(toFile('0.3.0', 'installation.backup'), folder.file, text =>
    text
      .replace('"version":"0.3.0"', '"version":"0.2.0"')
      .replace(/"migrations":\[.*?\]/, `"migrations":${JSON.stringify(names)}`),
  )
  const url = await createEmptyDatabase()
  await expect(restore(url, file)).rejects.toThrow(
    'The backup was made by Tidings 0.2.0. This version restores backups of 0.3.0 and later. ' +
      'Nothing was restored. Restore it with 0.3.0, and make a backup there.',
  )
  await using sql = openSql(url)
  expect(await sql`select from pg_tables where schemaname = 'public'`).toHaveLength(0)
})

/** Returns a function that runs `make` at its first call alone. */
function once<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | undefined
  return () => (made ??= make())
}

async function readNames(sql: Sql): Promise<Set<string>> {
  const rows = await sql<{ name: string }[]>`select name from migrations`
  return new Set(rows.map(({ name }) => name))
}

async function readSecret(sql: Sql): Promise<string> {
  const [row] = await sql<[{ secret: string }]>`select encode(lock_secret(), 'hex') as secret`
  return row.secret
}

type Row = Record<string, unknown>

/** Reads the rows of all tables that have some, by table. */
async function readRows(sql: Sql): Promise<Record<string, Row[]>> {
  const rows: Record<string, Row[]> = {}
  for (const { name } of await listTables(sql)) {
    const found = await sql<{ row: Row }[]>`
      select to_jsonb(one) as row from ${sql(name)} one order by to_jsonb(one)::text
    `
    if (found.length > 0) rows[name] = found.map(({ row }) => row)
  }
  return rows
}

/** Returns the rows without columns that the first one of `before` lacks. */
function keepColumns(rows: readonly Row[], before: readonly Row[]): Row[] {
  const names = Object.keys(before[0] ?? {})
  return rows.map(row =>
    Object.fromEntries(names.filter(name => name in row).map(name => [name, row[name]])),
  )
}
