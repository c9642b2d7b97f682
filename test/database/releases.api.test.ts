import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findOldestServer, migrate } from '../../src/database/migrate.ts'
import { MIGRATIONS, type Migration } from '../../src/database/sql-files.ts'
import type { ReleaseIndex } from '../../src/database/releases.ts'
import type { Sql } from '../../src/database/sql.ts'
import { listTables, type Table } from '../../src/database/tables.ts'
import { listEventsJson } from '../../src/log/events/read.ts'
import { reindexProject } from '../../src/log/events/search-index.ts'
import { parseSearch } from '../../src/log/events/search-query.ts'
import { listUsersJson } from '../../src/log/identities/users.ts'
import { newId, NIL_UUID } from '../../src/base/ids.ts'
import { compareVersions } from '../../src/base/version.ts'
import index from '../../releases.json' with { type: 'json' }
import { OTHER_SECRET, restore } from '../support/worlds/backup.ts'
import { createBrowser } from '../support/worlds/browser.ts'
import { cloneDatabase, createEmptyDatabase } from '../support/servers/postgres.ts'
import { readCatalog } from '../support/catalog.ts'
import { createRequests } from '../support/worlds/project.ts'
import { appendTitles } from '../support/search-index.ts'
import { boot } from '../support/servers/server.ts'
import { openSql } from '../support/sql.ts'

const { releases }: ReleaseIndex = index

/** An installation of a release as its own server showed it. */
interface Recorded {
  key: string
  email: string
  project: string
  /** The data of responses, by path. */
  responses: Record<string, unknown>
}

for (const { version } of releases) {
  const file = (name: string) => join(import.meta.dirname, '../releases', version, name)
  const migrations = listMigrationsOf(version)
  const later = MIGRATIONS.filter(one => !migrations.includes(one))
  const isBreaking = later.some(
    one => compareVersions(findOldestServer(one) ?? version, version) > 0,
  )

  // All tests use one database: a restore takes longer than all else here.
  const upgraded = once(async () => {
    const url = await createEmptyDatabase()
    // The rows are those of the release, because the restore knows no later migration.
    await restore(url, file('installation.backup'), { migrations })
    const sql = openSql(url)
    const searched = await storeForSearch(sql)
    const tables = await listTables(sql)
    const before = await readRows(sql, tables)
    const applied = await migrate(url)
    const catalog = await readCatalog(sql)
    return { url, sql, searched, applied, before, after: await readRows(sql, tables), catalog }
  })
  afterAll(async () => (await upgraded()).sql.end({ timeout: 1 }))

  test(`searches find what ${version} has indexed, before and after it is indexed anew`, async () => {
    const { sql, searched: id } = await upgraded()
    const check = async () => {
      const found: Record<string, unknown> = {}
      for (const text of ['failed', 'payment.failed', 'cafe', 'nobody']) {
        const { filters } = parseSearch(text)
        const page = await listEventsJson(sql, id, filters, {}, { candidatesBeforeIndex: 0 })
        found[text] = (JSON.parse(page).items as { seq: number }[]).map(({ seq }) => seq)
      }
      for (const search of ['zoe', 'mull', 'JOSÉ', 'bare', 'nobody']) {
        const page = JSON.parse(await listUsersJson(sql, id, { search }))
        found[`user ${search}`] = (page.items as { userId: string }[]).map(one => one.userId)
      }
      const [state] = await sql<[{ rules: number[]; to: string | null; unindexed: number }]>`
        select
          to_json(array(select distinct p.rules from search_parts p where p.project_id = ${id})) as rules,
          (select users_indexed_to from projects where id = ${id}) as to,
          (select count(*)::int from unindexed_users where project_id = ${id}) as unindexed
      `
      return { found, state }
    }
    const found = {
      ...{ failed: [1], 'payment.failed': [1], cafe: [2], nobody: [] },
      ...{ 'user zoe': ['u1'], 'user mull': ['u1'], 'user JOSÉ': ['u2'] },
      ...{ 'user bare': ['bare'], 'user nobody': [] },
    }
    expect(await check()).toEqual({ found, state: { rules: [1], to: NIL_UUID, unindexed: 0 } })
    await reindexProject(sql, id, () => {})
    await indexUsers(sql, id)
    expect(await check()).toEqual({ found, state: { rules: [3], to: null, unindexed: 0 } })
  })

  test(`an installation of ${version} is upgraded, and everything in it works`, async () => {
    const { url, sql, applied, before, after } = await upgraded()
    expect(applied).toEqual([...later.map(({ name }) => name), 'functions'])
    expect(before.length).toBeGreaterThan(50)
    // Parts of the search index with former words are listed to be indexed anew.
    const kept = after.filter(row => !row.startsWith('stale_segments: '))
    if (!isBreaking) expect(kept).toEqual(before)
    const recorded = JSON.parse(readFileSync(file('expected.json'), 'utf8')) as Recorded
    await using server = await boot({ databaseUrl: url, appSecret: OTHER_SECRET })
    const { get, post } = createRequests(server.url, recorded.key)
    for (const [path, data] of Object.entries(recorded.responses))
      expect((await get(path)).body.data).toMatchObject(data as object)
    const [{ last_seq }] = await sql<[{ last_seq: number }]>`
      select max(last_seq)::int as last_seq from event_logs
    `
    const sent = await post('/v1/events', { channelName: 'payments', title: 'After the upgrade' })
    expect(sent.body.data.seq).toBe(last_seq + 1)
    const browser = createBrowser(server.url)
    expect((await browser.signIn(recorded.email)).status).toBe(200)
    const { body } = await browser.get(`/api/projects/${recorded.project}/webhooks`)
    expect(body.data.items[0].url).toStartWith('http')
  })

  test(`the schema that ${version} leaves becomes that of a new installation`, async () => {
    const { catalog } = await upgraded()
    const sql = openSql(await cloneDatabase())
    expect(catalog).toEqual(await readCatalog(sql))
    await sql.end({ timeout: 1 })
  })

  test.skipIf(isBreaking)(`the schema still serves every statement of ${version}`, async () => {
    const { sql } = await upgraded()
    const statements = readFileSync(file('statements.sql'), 'utf8').split('\n;\n').slice(0, -1)
    expect(statements.length).toBeGreaterThan(400)
    const refused: string[] = []
    for (const text of statements)
      await sql
        .unsafe(`prepare recorded as ${text}`)
        .then(() => sql`deallocate recorded`)
        .catch((error: Error) => refused.push(`${error.message}: ${text}`))
    expect(refused).toEqual([])

    const find = (name: string) => statements.find(text => text.includes(`\nfrom ${name}(`)) ?? ''
    if (version === '0.2.0') await appendLike020(sql, find)
  })
}

/** Appends and counts with the statements of 0.2.0. */
async function appendLike020(sql: Sql, find: (name: string) => string): Promise<void> {
  const [log] = await sql<[{ project_id: string; last_seq: number; hash: string }]>`
    select l.project_id, l.last_seq::int as last_seq, encode(k.hash, 'hex') as hash
    from event_logs l
      join api_keys k using (project_id)
    order by last_seq desc
    limit 1
  `
  const [channel] = await sql<[{ id: string }]>`
    select id from channels where project_id = ${log.project_id} limit 1
  `
  const one = [log.project_id, log.hash, newId('evt').uuid, null, channel.id, 'One', null, null]
  const more = ['{a}', '{"n": 1}', 'ada', 'api', true]
  const [appended] = await sql.unsafe(find('append_event'), [...one, ...more])
  expect(appended?.['seqs']).toEqual([log.last_seq + 1])
  const array = (value: string | number) => `{${value}}`
  const batch = [
    array(log.project_id),
    array(`"\\\\x${log.hash}"`),
    array(1),
    array(1),
    array(1),
    array(newId('evt').uuid),
    null,
    array(channel.id),
    ...[null, null, null],
    array('Two'),
    ...Array.from({ length: 11 }, () => null),
  ]
  const [both] = await sql.unsafe(find('append_events'), batch)
  expect(both?.['seqs']).toEqual([log.last_seq + 2])
  const [counted] = await sql.unsafe(find('count_requests'), [
    array(`"\\\\x${log.hash}"`),
    array(1),
  ])
  expect(counted).toMatchObject({ project_id: log.project_id, ord: 1 })
}

/** Stores events and users in a new project, and indexes them, as a server of 0.2.0 does. */
async function storeForSearch(sql: Sql): Promise<string> {
  const id = newId('prj').uuid
  await sql`insert into organizations (id, name) values (${id}, 'o')`
  await sql`insert into projects (id, organization_id, name) values (${id}, ${id}, 'p')`
  await sql`insert into event_logs (project_id) values (${id})`
  const title = `(array['payment.failed for acme', 'Café closed', 'other'])[n]`
  await appendTitles(sql, id, { first: 1, last: 3, title })
  await sql`select from index_next_events(${id}, 1, 2000000)`
  const users = [
    { userId: 'u1', properties: { name: 'Zoë Müller' }, aliases: [] },
    { userId: 'u2', properties: {}, aliases: ['jose\u0301@example.com'] },
    { userId: 'bare', properties: {}, aliases: [] },
  ]
  for (const { userId, properties, aliases } of users) {
    const { uuid, id: publicId } = newId('idn')
    await sql`
      select from identify_users(
        array[${id}]::uuid[], array[${userId}], array[${uuid}]::uuid[], array[${publicId}],
        array[${JSON.stringify(properties)}::text::json], array[${JSON.stringify(aliases)}::text::json],
        array[null], array[null]::bytea[], array['}']
      )
    `
  }
  await indexUsers(sql, id)
  return id
}

/** Indexes the users of a project as servers do, from the first one on until none is left. */
async function indexUsers(sql: Sql, projectId: string): Promise<void> {
  for (let after = NIL_UUID, isMore = true; isMore;) {
    const [row] = await sql<[{ last: string | null }]>`
      select index_users(${projectId}, ${after}, 1000) as last
    `
    isMore = row.last !== null || after !== NIL_UUID
    after = row.last ?? NIL_UUID
  }
}

/** Returns the migrations of a release and of those before it. */
function listMigrationsOf(version: string): Migration[] {
  const names = releases
    .filter(one => compareVersions(one.version, version) <= 0)
    .flatMap(one => Object.keys(one.migrations))
  return MIGRATIONS.filter(({ name }) => names.includes(name))
}

/** Returns a function that runs `make` at its first call alone. */
function once<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | undefined
  return () => (made ??= make())
}

/** Reads the rows of tables with these columns. */
async function readRows(sql: Sql, tables: readonly Table[]): Promise<string[]> {
  const rows: string[] = []
  for (const { name, columns } of tables) {
    const found = await sql<{ text: string }[]>`
      select to_jsonb(one)::text as text from (select ${sql(columns)} from ${sql(name)}) one order by 1
    `
    rows.push(...found.map(({ text }) => `${name}: ${text}`))
  }
  return rows
}
