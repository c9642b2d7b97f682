// Records what a release leaves behind: `bun test/releases/record.ts`. Later versions are tested
// with it. See docs/releasing.md.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { format } from 'oxfmt'
import '../support/scratch.ts'
import { NIL_UUID } from '../../src/base/ids.ts'
import { VERSION } from '../../src/base/version.ts'
import type { Sql } from '../../src/database/sql.ts'
import { makeFolder } from '../support/scratch.ts'
import { cloneDatabase, closeCluster, toSuperuserUrl } from '../support/servers/postgres.ts'
import { boot } from '../support/servers/server.ts'
import { backUp } from '../support/worlds/backup.ts'
import { createBrowser, newAccount } from '../support/worlds/browser.ts'
import { newFullTenant } from '../support/worlds/full-tenant.ts'
import { insertWebhook } from '../support/worlds/webhooks.ts'
import { createRequests } from '../support/worlds/project.ts'
import { openSql } from '../support/sql.ts'
import { REPEATED } from './repeated.ts'

const FOLDER = join(import.meta.dirname, VERSION)
const PAST = '2026-11-01T10:00:00.000Z'
const TITLES = [
  'payment.failed for acme',
  'Café closed',
  'Event 3',
  'Event 4',
  'Event 5',
  'Event 6',
]
const WEBHOOKS = {
  paused: `failures = 10, failing_since = now(), pauses = 2, paused_until = now() + interval '30 days'`,
  disabled: `disabled_at = now(), disabled_reason = 'By an admin'`,
}

mkdirSync(FOLDER, { recursive: true })
await recordInstallation()
await recordStatements(process.argv[2] ?? runTests())
await closeCluster()
process.exit(0)

/** Writes an installation with one of everything, and what its server responds. */
async function recordInstallation(): Promise<void> {
  await using server = await boot()
  const { sql } = server
  const tenant = await newFullTenant(server)
  const { projectId, eventId, organizationId } = tenant.params
  const project = tenant.organization.project.uuid
  const account = await newAccount(server, { isCostly: true })
  await sql`
    insert into memberships (organization_id, account_id, role)
    values (${tenant.organization.uuid}, ${account.uuid}, 'admin')
  `
  const { post, get } = createRequests(server.url, tenant.key)
  for (const [n, title] of TITLES.entries())
    await post('/v1/events', {
      channelName: n % 2 === 0 ? 'payments' : 'sign-ups',
      title,
      ...(n % 3 === 0 && { userId: 'ada@example.com', tags: ['billing', `n${n}`] }),
      ...(n % 5 === 0 && { metadata: { n, plan: 'pro' }, icon: '💰', occurredAt: PAST }),
    })
  const properties = { name: 'Zoë Müller' }
  await post('/v1/identify', { user_id: 'ada', aliases: ['ada@example.com', 'other'], properties })
  await post('/v1/identify', { user_id: 'gone', properties })
  const repeated: Record<string, unknown> = {}
  for (const [path, body] of Object.entries(REPEATED))
    repeated[path] = (await post(path, body, { 'idempotency-key': `repeated ${path}` })).body
  for (const [mark, change] of Object.entries(WEBHOOKS)) {
    await insertWebhook(server, project, { eventId: eventId!, mark })
    await sql.unsafe(`update webhooks set ${change} where name = 'webhook ${mark}'`)
  }
  await sql`
    insert into view_bells (project_id, view_id, account_id)
    select project_id, id, account_id from views where account_id is not null
  `
  await sql`
    insert into views (project_id, id, name, search, created_seq)
    values (${project}, gen_random_uuid(), 'Shared', 'tag:billing', 2)
  `
  await sql`select from index_next_events(${project}, 1, 2000000)`
  await sql`select from index_users(${project}, ${NIL_UUID}, 1000)`
  const browser = createBrowser(server.url)
  await browser.signIn(account.email)
  const responses: Record<string, unknown> = {}
  for (const path of ['/v1/events?limit=100', '/v1/users/ada', '/v1/channels'])
    responses[path] = (await get(path)).body.data
  const ours = ['views', 'webhooks', 'users?search=zoe', 'events?q=payment.failed', 'events?q=cafe']
  const paths = ours.map(path => `/api/projects/${projectId}/${path}`)
  for (const path of [...paths, `/api/organizations/${organizationId}/members`])
    responses[path] = { items: (await browser.get(path)).body.data.items.map(pickNames) }
  const expected = { key: tenant.key, email: account.email, repeated, responses }
  const { code } = await format('expected.json', JSON.stringify(expected), { printWidth: 100 })
  writeFileSync(join(FOLDER, 'expected.json'), code)

  await server.server.stop()
  await insertDeliveries(sql, project)
  // It stays in progress.
  await sql`select begin_erasure(${project}, 'gone', null)`
  const file = join(FOLDER, 'installation.backup')
  rmSync(file, { force: true })
  await backUp(server.databaseUrl, file, { isCheap: false })
  const options = ['--inserts', '--rows-per-insert=1000', '--no-owner', '--no-privileges']
  const url = await toSuperuserUrl(server.databaseUrl)
  const dump = spawnSync('pg_dump', [...options, `--dbname=${url}`], { encoding: 'utf8' })
  if (dump.status !== 0) throw new Error(dump.stderr)
  writeFileSync(join(FOLDER, 'database.sql.gz'), gzipSync(shorten(dump.stdout), { level: 9 }))
}

/** Inserts deliveries in each state to the webhook of the tenant. Nothing is due. */
async function insertDeliveries(sql: Sql, project: string): Promise<void> {
  await sql`truncate outbox, deliveries`
  const pending = [`3, 'The receiver answered 500', null::uuid`, `0, null, gen_random_uuid()`]
  for (const [n, values] of pending.entries())
    await sql.unsafe(`
      insert into outbox (project_id, event_id, kind, target_id, available_at, attempts, reason, token)
      select e.project_id, e.id, 'webhook', w.id, '2099-01-01', ${values}
      from events e join webhooks w on w.project_id = e.project_id and w.host = '127.0.0.1'
      where e.project_id = '${project}' and e.seq = ${n + 1}
    `)
  await sql`
    insert into deliveries (project_id, event_id, kind, target_id, state, attempts, latency_ms, reason)
    select e.project_id, e.id, 'webhook', w.id, s.state, 1, 12, 'why'
    from unnest(array['delivered', 'failed', 'dead', 'cancelled', 'withheld']) with ordinality as s (state, n)
      join events e on e.project_id = ${project} and e.seq = s.n
      join webhooks w on w.project_id = e.project_id and w.disabled_at is not null
  `
}

/** Returns the part of an item that later versions show, too. */
function pickNames(item: Record<string, unknown>): object {
  const names = ['id', 'name', 'title', 'userId', 'role']
  return Object.fromEntries(names.filter(name => name in item).map(name => [name, item[name]]))
}

/** Returns a dump without comments and settings, and without bodies of functions. */
function shorten(dump: string): string {
  const text = dump
    .replace(
      /^(CREATE FUNCTION (?!public\.lock_secret).*)\n(?: {4}.*\n)*?(?: {4}AS (\$\w*\$)[\s\S]*?\2;| {4}.*;)\n/gm,
      "$1 LANGUAGE plpgsql AS 'begin end';\n",
    )
    .replace(/^(?:--.*|\\.*|SET .*|SELECT pg_catalog\.set_config.*)?\n/gm, '')
    .replaceAll('public.', '')
  return `set check_function_bodies = off;\n${text.replace(/\n[ \t]+/g, ' ')}`
}

/** Runs the tests of the API. Returns the folder with the statements that their servers sent. */
function runTests(): string {
  const folder = makeFolder()
  const command = [
    'test',
    '--timeout',
    '200000',
    '--preload',
    join(import.meta.dirname, 'recorder.ts'),
  ]
  spawnSync(process.execPath, [...command, '--no-isolate', '--parallel=4', '.api.test.ts'], {
    env: { ...process.env, RECORD_TO: folder },
    stdio: 'inherit',
  })
  return folder
}

/** Writes the different statements of a folder, as far as Postgres can prepare them. */
async function recordStatements(folder: string): Promise<void> {
  const statements = new Map<string, string>()
  for (const file of readdirSync(folder).filter(name => name.endsWith('.jsonl')))
    for (const line of readFileSync(join(folder, file), 'utf8').trimEnd().split('\n')) {
      const text = toText(JSON.parse(line) as string)
      // Lists differ in their length alone.
      if (isData(text))
        statements.set(text.replace(/\$\d+(,\$\d+)*/g, '$').replace(/\s+/g, ' '), text)
    }
  const sql = openSql(await cloneDatabase())
  const kept: string[] = []
  for (const [, text] of [...statements].sort())
    await sql
      .unsafe(`prepare recorded as ${text}`)
      .then(() => kept.push(text))
      .then(() => sql`deallocate recorded`)
      .catch(error => console.error(`Left out: ${error.message}\n${text}\n`))
  await sql.end()
  writeFileSync(
    join(FOLDER, 'statements.sql.gz'),
    gzipSync(kept.map(text => `${text}\n;\n`).join(''), { level: 9 }),
  )
  console.log(`${kept.length} of ${statements.size} statements`)
}

/** Returns a statement without comments and without the indentation of its source. */
function toText(statement: string): string {
  const lines = statement.replace(/^ *--.*\n/gm, '').split('\n')
  return lines
    .map(line => line.trim())
    .filter(line => line !== '')
    .join('\n')
}

/** Returns false for statements of a session, such as `begin`, and for those of tests. */
function isData(text: string): boolean {
  return /^(select|insert|update|delete|with|\()/i.test(text) && !/pg_temp|test_/.test(text)
}
