import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import {
  findOldestServer,
  findSchemaProblem,
  hasOtherFunctions,
  migrate,
} from '../../src/database/migrate.ts'
import type { Sql } from '../../src/database/sql.ts'
import {
  BASELINE_VERSION,
  FUNCTIONS,
  MIGRATIONS,
  type FunctionSet,
} from '../../src/database/sql-files.ts'
import { fixSearchPath, keepSearchPath } from '../../src/database/tables.ts'
import { compareVersions } from '../../src/base/version.ts'
import index from '../../releases.json' with { type: 'json' }
import { readCatalog } from '../support/catalog.ts'
import { cloneDatabase, createEmptyDatabase } from '../support/servers/postgres.ts'
import { newProject } from '../support/worlds/project.ts'
import { boot } from '../support/servers/server.ts'
import { until } from '../support/until.ts'
import { openSql } from '../support/sql.ts'

const ROOT = join(import.meta.dirname, '../..')
const CREATED = /^create or replace (function|aggregate|trigger|view) (\w+)/gm
/** Of a database alone: migrations make it with a secret. */
const OWN = 'lock_secret'

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)

/** A set of functions with another one, in which a user may have `aliases` aliases. */
function change(version: string, aliases: number, more = ''): FunctionSet {
  const text = `
    create or replace function max_aliases() returns int
    language sql immutable parallel safe
    return ${aliases};
    ${more}
  `
  return { ...FUNCTIONS, version, files: [...FUNCTIONS.files, { name: 'changed', text }] }
}

test('the program contains every file of sql/functions, unchanged', () => {
  const folder = join(ROOT, 'sql/functions')
  const files = readdirSync(folder).map(file => ({
    name: file.replace(/\.sql$/, ''),
    text: readFileSync(join(folder, file), 'utf8'),
  }))
  const { dropped } = FUNCTIONS
  expect([...FUNCTIONS.files, { name: 'dropped', text: dropped }].sort(byName)).toEqual(
    files.sort(byName),
  )
})

test('no function, trigger or view is in a migration, except for a default', () => {
  const made = /^create (?:or replace )?(?:function|aggregate|trigger|view) \w+/gm
  const found = MIGRATIONS.flatMap(({ text }) => text.match(made) ?? [])
  expect(found).toEqual(['create function new_delivery_id'])
})

test('every function, trigger and view of a database is in sql/functions, and once', async () => {
  await using database = await open()
  const rows = await database.sql<{ name: string }[]>`
    select p.proname as name from pg_proc p where p.pronamespace = 'public'::regnamespace
    union all
    select t.tgname from pg_trigger t where not t.tgisinternal
    union all
    select v.viewname from pg_views v where v.schemaname = 'public'
  `
  const created = FUNCTIONS.files.flatMap(({ text }) =>
    [...text.matchAll(CREATED)].map(([, , name = '']) => name),
  )
  expect(created.toSorted()).toEqual(
    rows
      .map(({ name }) => name)
      .filter(name => name !== OWN)
      .toSorted(),
  )
  expect(created.length).toBeGreaterThan(100)
})

test('functions of earlier versions are not called by this one, and dropped ones by nobody', () => {
  const files = FUNCTIONS.files.map(({ name, text }) => ({ name, code: text.replace(/--.*/g, '') }))
  const isEarlier = (name: string) => /^of_\d+_\d+_\d+$/.test(name)
  const namesIn = (code: string, pattern: RegExp) => [...code.matchAll(pattern)].map(one => one[1]!)
  const earlier = files
    .filter(({ name }) => isEarlier(name))
    .flatMap(({ code }) => namesIn(code, /^create or replace function (\w+)/gm))
  const dropped = namesIn(FUNCTIONS.dropped, /^drop function if exists (\w+)\(/gm)
  expect(earlier.length + dropped.length).toBeGreaterThan(0)

  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter(name => /\.(ts|sql)$/.test(name) && !name.endsWith('built.ts'))
    .map(name => ({ name, code: readFileSync(join(ROOT, 'src', name), 'utf8') }))
  const oldest = [BASELINE_VERSION, ...MIGRATIONS.flatMap(one => findOldestServer(one) ?? [])]
    .toSorted(compareVersions)
    .at(-1)!
  const released = index.releases
    .filter(({ version }) => compareVersions(version, oldest) >= 0)
    .map(({ version }) => ({
      name: version,
      code: gunzipSync(
        readFileSync(join(ROOT, 'test/releases', version, 'statements.sql.gz')),
      ).toString(),
    }))
  const findCalls = (names: string[], texts: { name: string; code: string }[]) =>
    texts.flatMap(({ name, code }) =>
      names.filter(one => new RegExp(`\\b${one}\\s*\\(`).test(code)).map(one => `${name}: ${one}`),
    )
  const rest = files.filter(({ name }) => !isEarlier(name))
  expect(findCalls(earlier, [...sources, ...rest])).toEqual([])
  expect(findCalls(dropped, released)).toEqual([])
  // Others have new parameters, and keep their name.
  const created = files.flatMap(({ code }) => namesIn(code, /^create or replace function (\w+)/gm))
  const gone = dropped.filter(name => !created.includes(name))
  expect(findCalls(gone, [...sources, ...files])).toEqual([])
})

test('calls of functions with four or more arguments name them', () => {
  const parameters = new Map(
    FUNCTIONS.files.flatMap(({ text }) =>
      [...text.matchAll(/^create or replace function (\w+)\(([^)]*)\)/gm)].map(
        ([, name = '', list = '']) =>
          [name, list.split(',').filter(one => !/^\s*out /.test(one)).length] as const,
      ),
    ),
  )
  // The columns of an event are in one order wherever text_of_event is called.
  parameters.delete('text_of_event')
  const calls = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && !name.endsWith('built.ts'))
    .flatMap(name => {
      const code = readFileSync(join(ROOT, 'src', name), 'utf8')
      return [...code.matchAll(/\b([a-z]+(?:_[a-z]+)+)\((?!')\s*(\w+ =>)?/g)].map(
        ([, called = '', first]) => ({ name, called, isNamed: first !== undefined }),
      )
    })
    .filter(({ called }) => (parameters.get(called) ?? 0) >= 4)
  expect(calls.length).toBeGreaterThan(15)
  expect(calls.filter(({ isNamed }) => !isNamed)).toEqual([])
})

test('a second application changes nothing, and Postgres accepts the body of each function', async () => {
  await using database = await open()
  const before = await readCatalog(database.sql)
  // Postgres checks bodies unless it is told not to.
  await database.sql.begin(async tx => {
    await fixSearchPath(tx)
    for (const { text } of FUNCTIONS.files) await tx.unsafe(text)
    await keepSearchPath(tx)
  })
  expect(await readCatalog(database.sql)).toEqual(before)
})

test('no index, constraint or generated column rests on a function that can be replaced', async () => {
  await using database = await open()
  // Only rows that are written later use a default.
  const found = await database.sql`
    select pg_describe_object(d.classid, d.objid, d.objsubid) as object, p.proname as function
    from pg_depend d
      join pg_proc p on p.oid = d.refobjid and p.pronamespace = 'public'::regnamespace
      left join pg_attrdef a on a.oid = d.objid and d.classid = 'pg_attrdef'::regclass
      left join pg_attribute c on c.attrelid = a.adrelid and c.attnum = a.adnum
    where d.refclassid = 'pg_proc'::regclass
      and d.classid not in ('pg_proc'::regclass, 'pg_trigger'::regclass, 'pg_rewrite'::regclass)
      and coalesce(c.attgenerated, 'x') <> ''
  `
  expect([...found]).toEqual([])
})

test('a program never puts its functions back over those of a newer version', async () => {
  await using database = await open()
  const later = change('900.0.0', 2000)
  expect(await migrate(database.url, MIGRATIONS, later)).toEqual(['functions'])
  const readSet = async () => [
    ...(await database.sql`select xmin::text, version from function_sets`),
  ]
  const before = await readSet()
  // Another start writes nothing.
  expect(await migrate(database.url, MIGRATIONS, later)).toEqual([])
  expect(await migrate(database.url)).toEqual([])
  expect(await readSet()).toEqual(before)
  expect(await database.maxAliases()).toBe(2000)
  expect(await findSchemaProblem(database.sql)).toBeUndefined()
  expect(await hasOtherFunctions(database.sql)).toBe(false)

  // The version counts, whatever the functions are.
  await migrate(database.url, MIGRATIONS, change('900.1.0', 2000))
  expect(await migrate(database.url, MIGRATIONS, change('900.0.1', 3000))).toEqual([])
  expect(await database.maxAliases()).toBe(2000)
})

test('a server is not ready on the functions of an older version, until a start replaces them', async () => {
  await using database = await open()
  await database.sql`update function_sets set version = '0.2.9'`
  const problem = 'The schema of the database is older than this program'
  expect(await findSchemaProblem(database.sql)).toBe(problem)
  expect(await hasOtherFunctions(database.sql)).toBe(true)
  expect(await migrate(database.url)).toEqual(['functions'])
  expect(await findSchemaProblem(database.sql)).toBeUndefined()
})

test('two builds of one version replace the functions of each other, and both stay ready', async () => {
  await using database = await open()
  const other = change(FUNCTIONS.version, 2000)
  expect(await migrate(database.url, MIGRATIONS, other)).toEqual(['functions'])
  expect(await database.maxAliases()).toBe(2000)
  expect(await findSchemaProblem(database.sql)).toBeUndefined()
  expect(await migrate(database.url)).toEqual(['functions'])
  expect(await database.maxAliases()).toBe(1000)
})

test('the last migration and the functions are one transaction, and a failure undoes both', async () => {
  await using database = await open()
  const before = await readCatalog(database.sql)
  const migrations = [...MIGRATIONS, { name: '9000_more', text: 'create table more (id int);' }]
  const broken = change('900.0.0', 2000, 'select 1 / 0;')
  await expect(migrate(database.url, migrations, broken)).rejects.toThrow('division by zero')
  expect(await readCatalog(database.sql)).toEqual(before)
  const later = change('900.0.0', 2000)
  expect(await migrate(database.url, migrations, later)).toEqual(['9000_more', 'functions'])
})

test('a part of the migrations gets no functions, which need the tables of all', async () => {
  const url = await createEmptyDatabase()
  const part = MIGRATIONS.slice(0, 3)
  expect(await migrate(url, part)).toEqual(part.map(({ name }) => name))
})

test('functions are replaced while a transaction writes to every table with a trigger', async () => {
  await using database = await open()
  await using writer = openSql(database.url)
  await writer.begin(async tx => {
    await tx`lock table events, audit_log in row exclusive mode`
    expect(await migrate(database.url, MIGRATIONS, change('900.0.0', 2000))).toEqual(['functions'])
  })
})

test('a missing trigger is created again, and a changed one is replaced', async () => {
  await using database = await open()
  const before = await readCatalog(database.sql)
  await database.sql.unsafe(`
    drop trigger events_cancel_deliveries on events;
    create or replace trigger audit_log_is_append_only before update on audit_log
      for each row execute function reject_audit_log_change();
  `)
  await migrate(database.url, MIGRATIONS, { ...FUNCTIONS, version: '900.0.0' })
  expect(await readCatalog(database.sql)).toEqual(before)
})

test('requests succeed while the functions are replaced, and every accepted event is stored', async () => {
  await using server = await boot()
  const project = await newProject(server, { limit: 1_000_000_000 })
  let accepted = 0
  let isStopping = false
  const others: number[] = []
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let n = 0; !isStopping; n++) {
      const key = { 'idempotency-key': `${writer} ${n}` }
      const event = { channelName: `c${n % 3}`, title: 't', userId: 'ada' }
      const { status } = await project.post('/v1/events', event, n % 2 ? key : {})
      if (status === 201) accepted++
      else others.push(status)
    }
  })
  for (let version = 1; version <= 5; version++) {
    const goal = accepted + 20
    await migrate(server.databaseUrl, MIGRATIONS, change(`900.${version}.0`, 2000 + version))
    await until(() => accepted >= goal || others.length > 0)
  }
  isStopping = true
  await Promise.all(writers)
  expect(others).toEqual([])
  const [{ n }] = await server.sql<[{ n: number }]>`
    select count(*)::int as n from events where project_id = ${project.id}
  `
  expect(n).toBe(accepted)
})

async function open() {
  const url = await cloneDatabase()
  const sql: Sql = openSql(url)
  return {
    url,
    sql,
    async maxAliases(): Promise<number> {
      const [{ n }] = await sql<[{ n: number }]>`select max_aliases() as n`
      return n
    },
    [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }),
  }
}
