import { expect, test } from 'bun:test'
import { parseUrl } from '../../src/base/database-url.ts'
import { findSchemaProblem, hasOtherFunctions, migrate } from '../../src/database/migrate.ts'
import { MIGRATIONS } from '../../src/database/sql-files.ts'
import { cloneDatabase, createEmptyDatabase, withSchema } from '../support/servers/postgres.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'
import { boot } from '../support/servers/server.ts'
import { until } from '../support/until.ts'
import { openSql } from '../support/sql.ts'

interface StoredFunction {
  name: string
  language: string
  volatility: string
  /** The search_path that it has by itself. */
  path: string | null
  /** Postgres found the names of its body when it was made. */
  is_bound: boolean
  /** A trigger, a view, a default, an index or a constraint calls it. */
  is_called_by_postgres: boolean
}

async function listFunctions(url: string): Promise<StoredFunction[]> {
  await using sql = openSql(url)
  const rows = await sql<StoredFunction[]>`
    select
      p.proname as name, l.lanname as language, p.provolatile as volatility,
      (
        select split_part(s.setting, '=', 2) from unnest(p.proconfig) as s (setting)
        where starts_with(s.setting, 'search_path=')
      ) as path,
      p.prosqlbody is not null as is_bound,
      exists (
        select
        from pg_depend d
        where d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid and d.classid <> 'pg_proc'::regclass
      ) as is_called_by_postgres
    from pg_proc p
      join pg_language l on l.oid = p.prolang
    where p.pronamespace = (select c.relnamespace from pg_class c where c.oid = to_regclass('events'))
    order by 1
  `
  return [...rows].filter(({ language }) => language !== 'internal')
}

/** Returns whether a function finds its names by the search_path of its caller. */
const dependsOnCaller = ({ path, is_bound }: StoredFunction) => path === null && !is_bound

test('a function has its own search_path, unless Postgres inlines it or calls it for each row', async () => {
  const functions = await listFunctions(await cloneDatabase())
  expect(functions.length).toBeGreaterThan(100)
  const without = functions.filter(dependsOnCaller)
  // Postgres inlines SQL functions that only read. A setting would prevent it.
  const isInlined = ({ language, volatility }: StoredFunction) =>
    language === 'sql' && volatility !== 'v'
  // Functions of texts are called for each row, and a setting costs more than their work.
  const isPure = ({ language, volatility }: StoredFunction) =>
    language === 'plpgsql' && volatility === 'i'
  expect(without.filter(one => !isInlined(one) && !isPure(one)).map(({ name }) => name)).toEqual([])
  // These would lose by it.
  expect(functions.filter(one => one.path !== null && isPure(one)).map(({ name }) => name)).toEqual(
    [],
  )
})

test('Postgres itself calls only functions that find their names under every search_path', async () => {
  const functions = await listFunctions(await cloneDatabase())
  const called = functions.filter(one => one.is_called_by_postgres)
  expect(called.map(({ name }) => name)).toContain('cancel_deliveries')
  expect(called.filter(dependsOnCaller).map(({ name }) => name)).toEqual([])
})

test('functions have the schema of the tables first, and not the name of the role', async () => {
  const url = await createEmptyDatabase()
  await using sql = openSql(url)
  const { user = '' } = parseUrl(url)
  // The default search_path begins with a schema that has the name of the role.
  await sql.unsafe(`create schema ${user}`)
  await migrate(url)
  const paths = new Set((await listFunctions(url)).map(({ path }) => path))
  expect(paths).toEqual(new Set([null, `${user}, public`]))

  // A schema that comes first later gets no second installation.
  const other = await createEmptyDatabase()
  await migrate(other)
  await using otherSql = openSql(other)
  await otherSql.unsafe(`create schema ${user}`)
  const more = { name: '9000_more', text: 'create table more (id int);' }
  expect(await migrate(other, [...MIGRATIONS, more])).toEqual(['9000_more'])
  const schemas = await otherSql<{ name: string }[]>`
    select distinct relnamespace::regnamespace::text as name
    from pg_class
    where relname in ('migrations', 'more', 'function_sets')
  `
  expect(schemas.map(({ name }) => name)).toEqual(['public'])
})

test('a schema that was renamed, or restored under another name, works from the next start', async () => {
  const url = await createEmptyDatabase()
  const inFirst = withSchema(url, 'first')
  const inSecond = withSchema(url, 'second one')
  await using sql = openSql(url)
  await sql.unsafe('create schema first')
  const title = 'Größe'
  const write = async (project: ReturnType<typeof createRequests>) => {
    const made = await project.post('/v1/events', { channelName: 'c', title, userId: 'ada' })
    expect(made.status).toBe(201)
    const identified = await project.post('/v1/identify', { user_id: 'ada', aliases: ['a'] })
    expect(identified.status).toBe(200)
  }
  let key: string
  {
    await using server = await boot({ databaseUrl: inFirst })
    const project = await newProject(server)
    key = project.key
    await write(project)
  }
  await sql.unsafe('alter schema first rename to "second one"')
  await using present = openSql(inSecond)
  expect(await hasOtherFunctions(present)).toBe(true)
  expect(await findSchemaProblem(present)).toContain('made for a schema of another name')
  {
    await using server = await boot({ databaseUrl: inSecond })
    await until(async () => (await fetch(`${server.url}/readyz`)).status === 200)
    const project = createRequests(server.url, key)
    await write(project)
    const found = await project.get('/v1/events?text=gr%C3%B6%C3%9Fe')
    expect(found.body.data.items).toHaveLength(2)
    expect((await project.request('/v1/users/ada', { method: 'DELETE' })).status).toBe(200)
  }
  const paths = new Set((await listFunctions(inSecond)).map(({ path }) => path))
  expect(paths).toEqual(new Set([null, '"second one"']))
  expect(await migrate(inSecond)).toEqual([])

  // A program that may not replace the functions of a newer one says why it is not ready.
  await present`update function_sets set version = '900.0.0'`
  await sql.unsafe('alter schema "second one" rename to first')
  await using renamed = openSql(inFirst)
  expect(await migrate(inFirst)).toEqual([])
  expect(await findSchemaProblem(renamed)).toContain('made for a schema of another name')
})

test.each([
  ['create table migrations (id int, migration text, batch int)', 'migrations'],
  ['create table migrations (id int, name text)', 'migrations'],
  ['create table sessions (id text, payload text)', 'sessions'],
])('the tables of another program are refused with a remedy: %s', async (statement, name) => {
  const url = await createEmptyDatabase()
  await using sql = openSql(url)
  await sql.unsafe(statement)
  const error = String(await migrate(url).catch((reason: unknown) => reason))
  expect(error).toContain(`The schema public has a table ${name} of another program.`)
  const [, command = '', schema = ''] = /`(.*)`.* append schema=(\w+) to/.exec(error) ?? []
  await sql.unsafe(command)
  expect(await migrate(withSchema(url, schema))).toContain('functions')
  const tables = await sql`
    select from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
  `
  expect(tables).toHaveLength(1)
})
