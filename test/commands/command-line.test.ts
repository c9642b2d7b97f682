import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { cloneDatabase, createEmptyDatabase } from '../support/servers/postgres.ts'
import { runProgram } from '../support/servers/process.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'
import { toLock } from '../../src/database/locks.ts'
import { migrate } from '../../src/database/migrate.ts'
import { indexNextEvents } from '../../src/log/events/search-index.ts'
import { toId } from '../../src/base/ids.ts'
import { appendTitles, compareIndex } from '../support/search-index.ts'
import { makeFolder } from '../support/scratch.ts'
import { withServer } from '../support/servers/server.ts'
import { openSql } from '../support/sql.ts'
import { until } from '../support/until.ts'

const server = withServer()

const createCliKey = async () => String((await run(['keys', 'create', '--json'])).json()['key'])

/** Runs one command line, or its words, to its end. */
async function run(line: string | string[], env: Record<string, string> = {}) {
  const { code, output } = await runProgram({
    args: typeof line === 'string' ? line.split(' ') : line,
    env: { DATABASE_URL: server.databaseUrl, ...env },
  })
  return { code, output, json: () => JSON.parse(output) as Record<string, unknown> }
}

test('keys create during a first start waits for its migrations', async () => {
  const databaseUrl = await createEmptyDatabase()
  await using sql = openSql(databaseUrl)
  // Its only connection holds the lock.
  await sql`select pg_advisory_lock(${toLock(sql, 'migrations')})`
  const migrated = migrate(databaseUrl)
  const created = run(['keys', 'create', '--json'], { DATABASE_URL: databaseUrl })
  await until(async () => {
    const sessions = await sql`
      select from pg_stat_activity
      where datname = current_database() and application_name like '%cli%' and query like '%pg_locks%'
    `
    return sessions.count > 0
  })
  await sql`select pg_advisory_unlock(${toLock(sql, 'migrations')})`
  await migrated
  const { code, json } = await created
  expect([code, json()]).toMatchObject([0, { key: expect.stringMatching(/^tdg_/) }])
})

test('reindex builds the search index of one project, or of all, anew', async () => {
  const databaseUrl = await cloneDatabase()
  await using sql = openSql(databaseUrl)
  const { id } = await newProject({ sql, url: '' })
  await appendTitles(sql, id, { first: 1, last: 5_000, title: `'title ' || n` })
  await indexNextEvents(sql, id)
  await sql`delete from event_tokens where project_id = ${id}`
  const env = { DATABASE_URL: databaseUrl }
  const one = await run(['reindex', '--project', toId('prj', id), '--json'], env)
  expect(one.json()).toEqual({
    ...{ projects: 1, segments: 1 },
    corrected: [{ project: toId('prj', id), counts: expect.any(Number) }],
  })
  expect((await compareIndex(sql, id)).missing).toEqual([])
  expect((await run(['reindex'], env)).output).toContain('Indexed 1 segments of 1 projects anew')
  const unknown = await run(['reindex', '--project', 'nonsense'], env)
  expect(unknown.code).toBe(2)
  expect(unknown.output).toContain('No project has this name or id')
})

test.each([
  [[], 2, 'COMMANDS'],
  [['nonsense'], 2, 'nonsense'],
  [['send', 'Hi', '--chanel', 'x', '--channel', 'y'], 2, 'Unknown option --chanel'],
  [['send', 'Hi', 'there', '--channel', 'x'], 2, 'Put text in quotes'],
  [['send', 'Hi', '--channel', 'x'], 2, 'TIDINGS_API_KEY'],
  [
    ['keys', 'revoke', 'key_unknown', '--json'],
    1,
    '{"error":"No key of this project has this id"}',
  ],
  [['backup', '/nonexistent/x'], 2, 'Set BACKUP_PASSPHRASE or BACKUP_PASSPHRASE_FILE'],
  [['keys', 'create', '--scopes', ''], 2, '--scopes must list'],
  [['keys', 'create', '--scopes', 'events:read,all'], 2, 'Unknown scope "all"'],
  [['keys', 'create', '--name', 'a\u001b[2Jb'], 2, '--name'],
  [['keys', 'create', '--limit', '0'], 2, '--limit must be a whole number'],
  [['keys', 'create', '--expires', '2020-01-01'], 2, 'a date in the future'],
] as [string[], number, string][])('%p exits with %d and says why', async (args, code, text) => {
  const ended = await run(args)
  expect(ended.output).toContain(text)
  expect(ended.code).toBe(code)
})

test('an invalid command line prints the mistake, examples, and how to get the full help', async () => {
  const { output } = await run(['keys', 'create', '--bad', '1'])
  expect(output).toStartWith('Unknown option --bad.\n\nEXAMPLES')
  expect(output).toEndWith('Help: tidings keys create --help\n')
  const unknown = await run(['nonsense'])
  expect(unknown.output).toStartWith('Unknown command nonsense\n')
  const absent = await run(['restore', 'a.backup', '--erased', '/nowhere/erased-users'])
  expect(absent.code).toBe(2)
  expect(absent.output).toContain('An installation that erased no user has no list')
})

test('an invalid configuration is reported completely, with exit code 2', async () => {
  const { code, output } = await run(['serve'], {
    PORT: 'web',
    BASE_URL: 'tidings',
    LOG_LEVEL: 'loud',
  })
  expect(code).toBe(2)
  for (const name of ['PORT', 'BASE_URL', 'LOG_LEVEL']) expect(output).toContain(`${name} must be`)
})

test('keys are made, listed, rotated and revoked while the server runs', async () => {
  const create = await run('keys create --name ci --limit 7 --scopes events:read --json')
  const made = create.json()
  expect(made).toMatchObject({ name: 'ci', limit: 7, scopes: ['events:read'] })
  const me = await createRequests(server.url, String(made['key'])).get('/v1/me')
  expect(me.body.data.key).toMatchObject({ name: 'ci', limit: 7, scopes: ['events:read'] })
  expect((await run(['keys', 'list'])).output).not.toContain(String(made['key']))

  const rotated = (await run(`keys rotate ${made['id']} --overlap 0 --json`)).json()
  expect((await createRequests(server.url, String(made['key'])).get('/v1/me')).status).toBe(401)
  const { get } = createRequests(server.url, String(rotated['key']))
  expect((await get('/v1/me')).status).toBe(200)

  const revoked = await run(`keys revoke ${rotated['id']} --json`)
  expect(revoked.json()).toEqual({ id: rotated['id'], revoked: true })
  expect((await get('/v1/me')).status).toBe(401)
})

test("send and identify use HTTP, and print the server's refusals", async () => {
  const key = await createCliKey()
  const env = { TIDINGS_URL: server.url, TIDINGS_API_KEY: key }
  const metadata = '{"n": 1, "id": 1152921506151679042, "price": 1.10}'
  const words = ['send', 'Backup failed', '--channel', 'ops', '--icon', '💾', '--tags', 'a, b']
  const rest = ['--no-notify', '--level', 'high', '--url', 'https://example.com', '--json']
  const sent = await run([...words, '--metadata', metadata, ...rest], env)
  expect(sent.json()).toMatchObject({
    ...{ title: 'Backup failed', channelName: 'ops', icon: '💾', tags: ['a', 'b'], notify: false },
    ...{ source: 'cli', level: 'high', url: 'https://example.com' },
  })
  expect(sent.output).toContain('"metadata":{"n":1,"id":1152921506151679042,"price":1.10}')
  const identified = await run(['identify', 'ada', '--aliases', 'ada@example.com,ada'], env)
  expect(identified.code).toBe(0)
  expect(identified.output).toContain('+ ada@example.com')
  expect(identified.output).toContain("- ada: Equals this user's own user_id")

  const refused = await run(['send', 'Hi', '--channel', 'ops', '--icon', 'x'], env)
  expect(refused.code).toBe(1)
  expect(refused.output).toContain('icon')
  expect(refused.output).not.toContain(key)
})

test('send takes text that begins with a dash, standard input, and the start of long text', async () => {
  const key = await createCliKey()
  const env = { TIDINGS_URL: server.url, TIDINGS_API_KEY: key }
  const send = async (args: string[], input?: string) => {
    const { code, output } = await runProgram({
      args: ['send', '--channel', 'text', ...args],
      env,
      ...(input !== undefined && { input }),
    })
    const json = output.split('\n').find(line => line.startsWith('{'))
    return { code, output, event: JSON.parse(json ?? '{}') as Record<string, unknown> }
  }
  const dashed = await send(['--- FAIL: x', '--description', '- one\n- two', '--json'])
  expect(dashed.event).toMatchObject({ title: '--- FAIL: x', description: '- one\n- two' })
  expect((await send(['--json', '--', '--fail'])).event).toMatchObject({ title: '--fail' })
  const refused = await send(['--fail'])
  expect([refused.code, refused.output]).toEqual([2, expect.stringContaining('after --')])

  const text = '🚀 Deployed\r\n\u001b[31mred\u001b[0m and \u0000\n\n- done\n'
  const expected = { title: 'Deployed', icon: '🚀', description: 'red and \ufffd\n\n- done' }
  expect((await send(['--json'], text)).event).toMatchObject(expected)
  expect(
    (await send(['--json', '--icon', '💰', '--description', 'By hand'], 'A\nb')).event,
  ).toMatchObject({
    ...{ title: 'A', icon: '💰', description: 'By hand\n\nb' },
  })
  expect((await send(['Failed', '--description', '-', '--json'], ' a\nb\n')).event).toMatchObject({
    ...{ title: 'Failed', description: ' a\nb' },
  })
  expect((await send(['-', '--description', '-'], ' ')).code).toBe(2)

  const long = await send(['Log', '--description', '-'], '😀'.repeat(6_000))
  expect(long.output).toContain('The description was cut to 5,000 characters.')
  const [{ title, description } = {}] = await server.sql<{ title: string; description: string }[]>`
    select title, description from events where title = 'Log'
  `
  expect(title).toBe('Log')
  expect(description).toMatch(/^(😀){4900,4999}…\n\(cut to 5,000 characters\)$/u)
  const wide = await send(['x'.repeat(501), '--json'])
  expect(wide.event['title']).toBe(`${'x'.repeat(499)}…`)
})

test('login stores an address and a key for its owner alone, and send uses both', async () => {
  const key = await createCliKey()
  const home = makeFolder()
  const env = { XDG_CONFIG_HOME: home }
  const login = (input: string) =>
    runProgram({ args: ['login', '--url', server.url], env, input: `${input}\n` })
  const send = (more: Record<string, string> = {}) =>
    run(['send', 'Hi', '--channel', 'login', '--json'], { ...env, ...more })
  expect((await send()).output).toContain('tidings login')

  const wrong = await login(key.slice(1))
  expect(wrong.code).toBe(1)
  expect(readdirSync(home)).toEqual([])

  mkdirSync(join(home, 'tidings'))
  const file = join(home, 'tidings/login.json')
  writeFileSync(file, 'readable by others', { mode: 0o644 })
  expect((await send()).output).toContain('is damaged')
  const stored = await login(key)
  expect(stored.code).toBe(0)
  expect(stored.output).toContain(file)
  expect(stored.output).not.toContain(key)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(join(home, 'tidings'))).toEqual(['login.json'])

  expect((await send()).json()).toMatchObject({ channelName: 'login' })
  expect((await send({ TIDINGS_URL: server.url })).code).toBe(0)
  expect((await send({ TIDINGS_API_KEY: 'tdg_wrong', TIDINGS_URL: server.url })).code).toBe(1)
  // The key of one server is not sent to another one.
  const other = await send({ TIDINGS_URL: 'http://127.0.0.1:1' })
  expect(other.code).toBe(2)
  expect(other.output).toContain(`The stored key is for ${server.url}`)
})

test('migrate creates the schema in an empty database, and doctor accepts it', async () => {
  const DATABASE_URL = await createEmptyDatabase()
  const distributed = await run(['migrate', '--distributed'], { DATABASE_URL })
  expect([distributed.code, distributed.output]).toEqual([
    1,
    expect.stringContaining('The database has no Citus.'),
  ])
  const before = await run(['doctor', '--json'], { DATABASE_URL })
  expect(before.output).toContain('will be applied at the next start')
  const { code, output } = await run(['migrate'], { DATABASE_URL })
  expect(code).toBe(0)
  expect(output).toContain('new  baseline')
  const after = await run(['doctor'], { DATABASE_URL })
  expect(after.code).toBe(0)
  expect(after.output).toContain('migrations: Up to date')
  const away = await run(['doctor'], {
    DATABASE_URL: DATABASE_URL.replace('?host=', '?host=/nowhere'),
  })
  expect([away.code, away.output]).toEqual([1, expect.stringContaining('failed   database')])
})

test('version prints the version and the runtime', async () => {
  expect((await run(['version', '--json'])).json()).toMatchObject({ version: manifest.version })
  expect((await run(['--version'])).output).toContain(`tidings ${manifest.version}`)
})
