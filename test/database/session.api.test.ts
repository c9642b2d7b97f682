import { expect, test } from 'bun:test'
import { checkDatabase } from '../../src/cli/doctor/database.ts'
import { migrate } from '../../src/database/migrate.ts'
import { parseUrl } from '../../src/base/database-url.ts'
import { SERVER_ROLE } from '../../src/database/embedded/cluster.ts'
import { findCollationProblem } from '../../src/database/requirements.ts'
import { toDriverOptions, toSession } from '../../src/database/session.ts'
import { waitUntilReachable } from '../../src/database/reachable.ts'
import { connect } from '../../src/database/sql.ts'
import { HOSTILE, HOSTILE_BUT_LEFT, LEFT } from '../support/hostile-settings.ts'
import { captureLog } from '../support/log.ts'
import {
  cloneDatabase,
  createEmptyDatabase,
  toSuperuserUrl,
  withDatabase,
  withSchema,
} from '../support/servers/postgres.ts'
import { newProject } from '../support/worlds/project.ts'
import { boot } from '../support/servers/server.ts'

/** Makes settings the defaults of a database. */
async function setAll(databaseUrl: string, settings: Record<string, string>): Promise<void> {
  const admin = connect(await toSuperuserUrl(databaseUrl), { name: 'test', max: 1 })
  const { database } = parseUrl(databaseUrl)
  for (const [name, value] of Object.entries(settings)) {
    await admin.unsafe(`alter database ${database} set ${name} = '${value}'`)
  }
  await admin.end()
}

test('settings of the database change nothing that the API returns', async () => {
  const databaseUrl = await createEmptyDatabase()
  await setAll(databaseUrl, { ...HOSTILE, ...HOSTILE_BUT_LEFT })
  await waitUntilReachable(databaseUrl)
  await migrate(databaseUrl)
  await using server = await boot({ databaseUrl })
  // A day that is also a month shows an exchange of both.
  const expiresAt = new Date('2099-02-05T12:00:00.000Z')
  const { post, get } = await newProject(server, { expiresAt })
  const metadata = { float: 0.1, path: 'C:\\new', none: null, text: "it's {NULL}" }
  const event = { channelName: 'zwölf 🚀', title: 'C:\\new Größe', userId: 'a\\b', metadata }
  const made = await post('/v1/events', { ...event, timestamp: '2026-02-05T01:02:03.004Z' })
  expect(made.status).toBe(201)
  const read = await get(`/v1/events/${made.body.data.id}`)
  expect(read.body.data).toEqual(made.body.data)
  expect(read.body.data).toMatchObject({ ...event, timestamp: '2026-02-05T01:02:03.004Z' })
  // Before 1920 the offset of Kathmandu had seconds, which JavaScript cannot parse.
  const old = await post('/v1/events', { ...event, timestamp: '1800-01-01T00:00:00.000Z' })
  const { timestamp } = (await get(`/v1/events/${old.body.data.id}`)).body.data
  expect(timestamp).toBe('1800-01-01T00:00:00.000Z')
  const found = await get('/v1/events?text=gr%C3%B6%C3%9Fe&from=2026-02-01T00:00:00Z')
  expect(found.body.data.items).toHaveLength(1)
  const identified = await post('/v1/identify', { user_id: 'a\\b', aliases: ['NULL', 'c"d'] })
  expect(identified.body.data).toMatchObject({ aliases: { created: ['NULL', 'c"d'] } })
  expect((await get('/v1/users/NULL')).body.data.userId).toBe('a\\b')
})

test.each(['', '\r', '\r\n'])('PGPASSWORD ends before the line end %j', end => {
  const former = process.env['PGPASSWORD']
  process.env['PGPASSWORD'] = `50%/@# ${end}`
  try {
    const toOptions = (url: string) => toDriverOptions(parseUrl(url), 'test')
    expect(toOptions('postgres://ada@db/tidings')).toMatchObject({ password: '50%/@# ' })
    expect(toOptions('postgres://ada:@db/tidings')).toMatchObject({ password: '50%/@# ' })
    expect(toOptions('postgres://ada:other@db/tidings')).toMatchObject({ password: 'other' })
  } finally {
    if (former === undefined) delete process.env['PGPASSWORD']
    else process.env['PGPASSWORD'] = former
  }
})

test('each setting that changes what a statement means or ends it is pinned, or left for a reason', async () => {
  const databaseUrl = await cloneDatabase()
  const pinned = toSession(parseUrl(databaseUrl))
  expect(Object.keys(HOSTILE).toSorted()).toEqual(Object.keys(pinned).toSorted())
  await setAll(databaseUrl, HOSTILE)
  const sql = connect(databaseUrl, { name: 'test', max: 1 })
  const rows = await sql<{ name: string; setting: string }[]>`
    select name, setting from pg_settings where context in ('user', 'superuser')
  `
  await sql.end()
  const unjudged = rows.filter(
    ({ name }) => !(name in pinned) && !LEFT.some(([pattern]) => pattern.test(name)),
  )
  expect(unjudged.map(({ name }) => name)).toEqual([])
  for (const { name, setting } of rows) {
    if (name in pinned) expect(`${name} ${setting}`).toBe(`${name} ${pinned[name]}`)
  }
})

test('a database that cannot work is refused with what to do', async () => {
  const admin = connect(await toSuperuserUrl(await cloneDatabase()), { name: 'test', max: 1 })
  const name = `test_${crypto.randomUUID().replaceAll('-', '')}`
  await admin.unsafe(`create database ${name} encoding 'LATIN1' locale 'C' template template0`)
  const url = (await toSuperuserUrl(await cloneDatabase())).replace(/\/test_\w+/, `/${name}`)
  const error = await migrate(url).catch((reason: unknown) => String(reason))
  expect(error).toContain('has the encoding LATIN1. Tidings requires UTF8. Run as a superuser: ')
  const [command = ''] = /create database .*;/.exec(String(error)) ?? []
  await admin.unsafe(command)
  await migrate(url.replace(name, `${name}_utf8`))
  for (const one of [name, `${name}_utf8`]) await admin.unsafe(`drop database ${one} with (force)`)
  await admin.end()
})

test('indexes that were made with another version of the locale are named with the commands that rebuild them', async () => {
  const admin = connect(await toSuperuserUrl(await cloneDatabase()), {
    name: 'test',
    max: 1,
    settings: { statement_timeout: 0 },
  })
  const name = `test_${crypto.randomUUID().replaceAll('-', '')}`
  await admin.unsafe(
    `create database ${name} owner ${SERVER_ROLE} template template0 locale_provider icu icu_locale 'en' locale 'C'`,
  )
  const url = withDatabase(await cloneDatabase(), name)
  const sql = connect(url, { name: 'test', max: 1, settings: { statement_timeout: 0 } })
  await migrate(url)
  expect(await findCollationProblem(sql)).toBeUndefined()
  // As after an upgrade of the system.
  await admin`update pg_database set datcollversion = '1.2' where datname = ${name}`
  const problem = (await findCollationProblem(sql)) ?? ''
  expect(problem).toContain('version 1.2 of its locale')
  const { findings } = await checkDatabase(sql, { kind: 'External', port: 0 })
  expect(findings).toContainEqual({ check: 'collation', state: 'warning', message: problem })
  {
    using log = captureLog()
    await migrate(url)
    expect(log.lines.join('')).toContain('version 1.2 of its locale')
  }
  const [, commands = ''] = /owner: (.*;)/.exec(problem) ?? []
  for (const one of commands.split('; ')) await sql.unsafe(one)
  expect(await findCollationProblem(sql)).toBeUndefined()
  await sql.end()
  await admin.unsafe(`drop database ${name} with (force)`)
  await admin.end()
})

test.each([
  ['session_replication_role', 'replica', 'which turns constraints off'],
  ['transaction_timeout', '900', 'end after 900 ms'],
])('%s of the database is refused with the command that resets it', async (name, value, text) => {
  const url = await cloneDatabase()
  await setAll(url, { [name]: value })
  const error = String(await migrate(url).catch((reason: unknown) => reason))
  expect(error).toContain(text)
  const [, commands = ''] = /superuser: (.*;)/.exec(error) ?? []
  const admin = connect(await toSuperuserUrl(url), { name: 'test', max: 1 })
  for (const one of commands.split('; ')) await admin.unsafe(one)
  await admin.end()
  expect(await migrate(url)).toEqual([])
})

test('tables are made in the schema of the URL, and found where an earlier setting made them', async () => {
  const url = await createEmptyDatabase()
  const inSchema = withSchema(url, 'my app')
  const sql = connect(url, { name: 'test', max: 1 })
  await expect(migrate(inSchema)).rejects.toThrow('no schema has been selected')
  await sql.unsafe('create schema "my app"')
  await migrate(inSchema)
  const [row] = await sql<[{ name: string }]>`
    select relnamespace::regnamespace::text as name from pg_class where relname = 'outbox'
  `
  expect(row.name).toBe('"my app"')
  await setAll(url, { search_path: '"my app"' })
  await expect(migrate(url)).rejects.toThrow('Append schema=my%20app to')
  await sql.end()
})
