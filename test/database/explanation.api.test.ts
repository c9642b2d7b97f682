import { afterAll, beforeAll, expect, test } from 'bun:test'
import postgres from 'postgres'
import { explainDatabaseError } from '../../src/database/explanation.ts'
import { connect, type Sql } from '../../src/database/sql.ts'
import { cloneDatabase, createEmptyDatabase, toSuperuserUrl } from '../support/servers/postgres.ts'
import { runProgram } from '../support/servers/process.ts'
import { openSql } from '../support/sql.ts'

let url: string
let admin: Sql
beforeAll(async () => {
  url = await cloneDatabase()
  admin = connect(await toSuperuserUrl(url), { name: 'admin', max: 1 })
})
afterAll(() => admin.end({ timeout: 1 }))

function change(change: (url: URL) => void): string {
  const changed = new URL(url)
  change(changed)
  return changed.href
}

/** Returns the explanation of the error of a statement. */
async function explain(url: string, statement = 'select 1', settings = {}) {
  const sql = openSql(url, { settings })
  try {
    await sql.unsafe(statement)
    return 'no error'
  } catch (error) {
    return explainDatabaseError(error)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

test.each([
  ['a wrong password', (to: URL) => void (to.password = 'wrong'), 'rejected the user name or pass'],
  ['an absent user', (to: URL) => void (to.username = 'nobody'), 'rejected the user name or pass'],
  ['an absent database', (to: URL) => void (to.pathname = '/absent'), 'has no database with this'],
  [
    'an absent socket',
    (to: URL) => to.searchParams.set('host', '/nowhere'),
    'There is no socket of Postgres at /nowhere/.s.PGSQL.5432. Start Postgres, or',
  ],
])('%s is explained', async (_, wrong, text) => {
  expect(await explain(change(wrong))).toContain(text)
})

test('a host that is unknown, refuses or needs TLS is explained', async () => {
  expect(await explain('postgres://a:b@tidings.invalid/d')).toContain(
    'The host of the database was not found: tidings.invalid. Correct DATABASE_URL.',
  )
  expect(await explain('postgres://a:b@127.0.0.1:1/d')).toBe(
    'No database listens at 127.0.0.1:1. Start Postgres, or correct DATABASE_URL.',
  )
  const refused = Object.assign(Object.create(postgres.PostgresError.prototype) as Error, {
    code: '28000',
    message: 'no pg_hba.conf entry for host "10.0.0.1", user "a", database "d", no encryption',
  })
  expect(explainDatabaseError(refused)).toContain('requires TLS. Append sslmode=require')
})

test('a missing schema, foreign tables, missing rights and a read-only database are explained', async () => {
  const schema = 'The schema of the database is not that of this program. Run `tidings migrate`'
  expect(await explain(await createEmptyDatabase(), 'select from events')).toContain(schema)
  expect(await explain(url, 'select nothing from events')).toContain(schema)
  await admin.unsafe(`create table foreign_table ()`)
  expect(await explain(url, 'select from foreign_table')).toContain('lacks a permission')
  expect(await explain(url, 'alter table foreign_table add a int')).toContain(
    'Another user owns the tables',
  )
  expect(
    await explain(url, 'create table some_table ()', { default_transaction_read_only: 'on' }),
  ).toContain('The database is read-only')
  expect(await explain(url, 'select 1', { unknown_setting: 1 })).toContain('PostgreSQL 15 or newer')
  expect(await explain(url, "select 'x'::int")).toContain('With LOG_LEVEL=debug, the log has its')
  expect(explainDatabaseError(new Error('other'))).toBeUndefined()
})

test('a command prints the explanation, and its log has the code', async () => {
  const env = { DATABASE_URL: change(to => void (to.password = 'wrong')), LOG_LEVEL: 'debug' }
  const { code, output } = await runProgram({ args: ['keys', 'list'], env })
  expect(code).toBe(1)
  const lines = output.split('\n').filter(line => !line.startsWith('{'))
  expect(lines).toEqual([
    expect.stringContaining('Using the database'),
    'Postgres rejected the user name or password. Correct DATABASE_URL.',
    '',
  ])
  expect(output).toContain('28P01')
})
