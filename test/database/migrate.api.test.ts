import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  findOldestServer,
  findSchemaProblem,
  listMigrations,
  listRows,
  migrate,
  refuseNewerSchema,
} from '../../src/database/migrate.ts'
import { BASELINE, FUNCTIONS, MIGRATIONS, type Migration } from '../../src/database/sql-files.ts'
import { addRelease, listBrokenReleases, type ReleaseIndex } from '../../packaging/releases.ts'
import type { Sql } from '../../src/database/sql.ts'
import { cloneDatabase, createEmptyDatabase } from '../support/servers/postgres.ts'
import index from '../../releases.json' with { type: 'json' }
import { spawnProgram, startProgram } from '../support/servers/process.ts'
import { until } from '../support/until.ts'
import { openSql } from '../support/sql.ts'

const RELEASED: ReleaseIndex = index
const FOLDER = join(import.meta.dirname, '../../sql/tables')
const NAMES = MIGRATIONS.map(({ name }) => name)
/** Their rows in a database. The baseline has those of the migrations that it stands for. */
const ROWS = MIGRATIONS.flatMap(one => Object.keys(listRows(one)))
const MORE: Migration = { name: '9000_more', text: 'create table more (id int primary key);' }

test('the program contains every file of sql/tables as a migration, in order and unchanged', () => {
  const files = readdirSync(FOLDER).sort()
  expect(MIGRATIONS).toEqual([
    BASELINE,
    ...files.map(file => ({
      name: file.replace(/\.sql$/, ''),
      text: readFileSync(join(FOLDER, file), 'utf8'),
    })),
  ])
})

test('the files in sql/tables are numbered without gaps', () => {
  expect(ROWS.map(name => Number(name.slice(0, 4)))).toEqual(ROWS.map((_, n) => n + 1))
})

test('the migrations of released versions never change', () => {
  expect(listBrokenReleases(RELEASED, MIGRATIONS)).toEqual([])
})

test('a release has the checksums of its own migrations, which may not change or vanish', () => {
  const [first, second] = MIGRATIONS.slice(1) as [Migration, Migration]
  const release = { version: '0.9.0', date: '2026-11-22' }
  const index = addRelease({ releases: [] }, release, [first])
  const next = { version: '0.10.0', date: '2026-12-01' }
  const { releases } = addRelease(index, next, [first, second])
  expect(releases.map(one => Object.keys(one.migrations))).toEqual([[first.name], [second.name]])
  expect(listBrokenReleases({ releases }, MIGRATIONS)).toEqual([])

  const edited = [{ ...first, text: `${first.text}\n` }]
  expect(listBrokenReleases({ releases }, edited)).toEqual([
    '0038_channel_names of 0.9.0 was changed',
    '0039_bell_ranges of 0.10.0 is missing',
  ])
  expect(() => addRelease(index, next, edited)).toThrow('0038_channel_names of 0.9.0 was changed')
  expect(() => addRelease(index, release, [first])).toThrow('0.9.0 is not newer than 0.9.0')
})

/** Statements that can break a running server of the version before. */
const BREAKING =
  /\b(drop|rename|truncate|revoke)\b|\balter column (?!\w+ set \(n_distinct)|\badd (constraint|check|unique|foreign)\b|\badd column (?!.*\bdefault\b).*\bnot null\b/i

test('a migration of a later release that is not additive names the oldest server', () => {
  const isWrong = (one: Migration) =>
    BREAKING.test(one.text.replace(/--.*/g, '')) && findOldestServer(one) === undefined
  expect(
    MIGRATIONS.filter(one => one !== BASELINE && isWrong(one)).map(({ name }) => name),
  ).toEqual([])
  for (const text of [
    'alter table events drop column icon;',
    'alter table events add column a int not null;',
    'alter table events alter column title type varchar;',
  ]) {
    expect(isWrong({ name: '9000', text })).toBe(true)
    expect(isWrong({ name: '9000', text: `-- Oldest server: 0.3.0\n${text}` })).toBe(false)
  }
  for (const text of [
    'create table more (id int not null); -- Do not drop it.',
    'alter table events add column a int not null default 0;',
    'alter table events alter column project_id set (n_distinct = 100);',
  ])
    expect(isWrong({ name: '9000', text })).toBe(false)
})

test('a migration locks the tables of the log in the order in which appends lock them', () => {
  const order = ['event_logs', 'channels', 'events']
  for (const { name, text } of MIGRATIONS.slice(1)) {
    const locked = [...text.matchAll(/^alter table (\w+)/gm)].map(([, table = '']) => table)
    const ranks = locked.map(table => order.indexOf(table)).filter(rank => rank >= 0)
    expect([name, ...ranks]).toEqual([name, ...ranks.toSorted()])
  }
})

test('every table, index and function has a comment in its own form', () => {
  const made = /((?:^--.*\n)*)^create (?:unlogged |or replace )?(table|view|index|function) (\w+)/gm
  const found = [...MIGRATIONS, ...FUNCTIONS.files].flatMap(({ text }) => [...text.matchAll(made)])
  expect(found.length).toBeGreaterThan(150)
  const begins = {
    table: /^-- (One row|The only row) /,
    view: /^-- One row /,
    index: /^-- Serves /,
  }
  const wrong = found.filter(([, comment = '', what]) => {
    const begin = begins[what as keyof typeof begins] ?? /^-- /
    return !begin.test(comment)
  })
  expect(wrong.map(([, , what, name]) => `${what} ${name}`)).toEqual([])
})

test('two processes that start at once both serve, and one of them creates the first key', async () => {
  await using database = await open()
  const env = { DATABASE_URL: database.url, LOG_LEVEL: 'debug' }
  const programs = await Promise.all([startProgram({ env }), startProgram({ env })])
  await using _first = programs[0]
  await using _second = programs[1]
  for (const { url } of programs) await until(async () => (await fetch(`${url}/readyz`)).ok)
  expect(programs.map(({ firstKey }) => firstKey !== undefined).sort()).toEqual([false, true])
  const applied = programs.flatMap(({ logged }) => logged('Applied migration'))
  expect(applied).toHaveLength(NAMES.length)
  expect(programs.flatMap(({ logged }) => logged('Replaced the functions'))).toHaveLength(1)
  expect(await database.stored()).toEqual(ROWS)
  for (const program of programs) expect((await program.kill('SIGTERM')).code).toBe(0)
})

test('a migration that was edited after it was applied is refused', async () => {
  await using database = await open()
  await migrate(database.url, [MORE])
  const changed = [{ ...MORE, text: `${MORE.text} -- really` }]
  const message = 'Migration 9000_more was edited after it was applied'
  await expect(migrate(database.url, changed)).rejects.toThrow(message)
  await expect(listMigrations(database.sql, changed)).rejects.toThrow(message)
})

test('a schema that breaks the program is refused by name, with instructions', async () => {
  await using database = await open(await cloneDatabase())
  const breaking = { name: '9000_more', text: `-- Oldest server: 900.0.0\n${MORE.text}` }
  await migrate(database.url, [...MIGRATIONS, breaking])
  const message =
    'The database has migrations of a newer Tidings: 9000_more. ' +
    'Run that newer version, or restore a backup from before the upgrade.'
  await expect(migrate(database.url)).rejects.toThrow(message)
  expect(await findSchemaProblem(database.sql)).toBe(
    'The schema of the database requires Tidings 900.0.0 or newer',
  )

  await using program = spawnProgram({ env: { DATABASE_URL: database.url } })
  await expect(program.listening).rejects.toThrow('before it listened')
  expect(await program.exited).toEqual({ code: 1, signal: null })
  expect(program.output()).toContain(message)
  expect(await database.stored()).toEqual([...ROWS, '9000_more'])
})

test('a schema with additive migrations of a newer program is accepted, one without our own is not', async () => {
  await using database = await open(await cloneDatabase())
  await migrate(database.url, [...MIGRATIONS, MORE])
  expect(await migrate(database.url)).toEqual([])
  expect(await findSchemaProblem(database.sql)).toBeUndefined()
  await expect(refuseNewerSchema(database.sql)).rejects.toThrow('a newer Tidings: 9000_more.')
  await database.sql`delete from migrations where name = ${ROWS.at(-1)!}`
  expect(await findSchemaProblem(database.sql)).toBe(
    'The schema of the database is older than this program',
  )
})

test('a migration that waits for a long transaction does not hold up statements', async () => {
  await using database = await open()
  await migrate(database.url, [MORE])
  await using reader = openSql(database.url)
  const alter = { name: '9001_alter', text: 'alter table more add column a int;' }
  const { migrated } = await reader.begin(async tx => {
    await tx`select from more`
    const migrated = migrate(database.url, [MORE, alter])
    await until(async () => {
      const waiting = await database.sql`
        select from pg_locks where not granted and relation = 'more'::regclass
      `
      return waiting.length > 0
    })
    // Queues behind the migration, and would time out after 2 s.
    await database.sql`select from more`
    return { migrated }
  })
  expect(await migrated).toEqual(['9001_alter'])
})

test('a migration that waits for a vacuum also waits until Postgres would cancel it', async () => {
  await using database = await open()
  await migrate(database.url, [MORE])
  await using vacuum = openSql(database.url)
  const alter = { name: '9001_alter', text: 'alter table more alter id set statistics 0;' }
  const { migrated } = await vacuum.begin(async tx => {
    // The lock of a vacuum.
    await tx`lock table more in share update exclusive mode`
    const migrated = migrate(database.url, [MORE, alter])
    await until(async () => {
      const waiting = await database.sql`
        select from pg_locks
        where not granted and relation = 'more'::regclass
          and clock_timestamp() - waitstart > current_setting('deadlock_timeout')::interval
      `
      return waiting.length > 0
    })
    return { migrated }
  })
  expect(await migrated).toEqual(['9001_alter'])
})

test('a failed migration leaves nothing behind, and the earlier ones stay', async () => {
  await using database = await open()
  const broken = { name: '9001_broken', text: 'create table half (id int); select 1 / 0;' }
  await expect(migrate(database.url, [MORE, broken])).rejects.toThrow('division by zero')
  expect(await database.stored()).toEqual(['9000_more'])
  expect(await database.tables()).toEqual(['migrations', 'more'])
  // Once the migration is corrected, the run continues where it stopped.
  const mended = { ...broken, text: 'create table whole (id int);' }
  expect(await migrate(database.url, [MORE, mended])).toEqual(['9001_broken'])
  expect(await database.tables()).toEqual(['migrations', 'more', 'whole'])
})

test('a migration has no timeout', async () => {
  await using database = await open()
  const text = `do $$ begin assert current_setting('statement_timeout') = '0'; end $$;`
  expect(await migrate(database.url, [{ name: '9002_slow', text }])).toEqual(['9002_slow'])
})

/** Connects to a database, by default an empty one. */
async function open(given?: string) {
  const url = given ?? (await createEmptyDatabase())
  const sql: Sql = openSql(url)
  const read = async (rows: Promise<{ name: string }[]>) => (await rows).map(({ name }) => name)
  return {
    url,
    sql,
    /** Returns the names of the applied migrations. */
    stored: () => read(sql<{ name: string }[]>`select name from migrations order by name`),
    tables: () =>
      read(sql<{ name: string }[]>`
        select table_name as name
        from information_schema.tables
        where table_schema = 'public'
        order by 1
      `),
    [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }),
  }
}

test('each installation has a secret of its own for the locks of names', async () => {
  const other = await createEmptyDatabase()
  await migrate(other)
  const secrets = await Promise.all(
    [await cloneDatabase(), other].map(async url => {
      await using sql = openSql(url)
      const [row] = await sql<[{ secret: string }]>`select encode(lock_secret(), 'hex') as secret`
      return row.secret
    }),
  )
  expect(secrets[0]).toMatch(/^[0-9a-f]{64}$/)
  expect(secrets[1]).not.toBe(secrets[0])
})
