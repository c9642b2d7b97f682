// Records what a release leaves behind: `bun test/releases/record.ts`. Later versions are tested
// with it. See docs/releasing.md.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { format } from 'oxfmt'
import '../support/scratch.ts'
import { VERSION } from '../../src/base/version.ts'
import { makeFolder } from '../support/scratch.ts'
import { cloneDatabase, closeCluster } from '../support/servers/postgres.ts'
import { boot } from '../support/servers/server.ts'
import { backUp } from '../support/worlds/backup.ts'
import { newAccount } from '../support/worlds/browser.ts'
import { newFullTenant } from '../support/worlds/full-tenant.ts'
import { createRequests } from '../support/worlds/project.ts'
import { openSql } from '../support/sql.ts'

const FOLDER = join(import.meta.dirname, VERSION)
const EVENTS = 12
const PAST = '2026-11-01T10:00:00.000Z'

mkdirSync(FOLDER, { recursive: true })
await recordInstallation()
await recordStatements(process.argv[2] ?? runTests())
await closeCluster()
process.exit(0)

/** Writes a backup of an installation with one of everything, and what its server responds. */
async function recordInstallation(): Promise<void> {
  await using server = await boot()
  const tenant = await newFullTenant(server)
  const account = await newAccount(server, { isCostly: true })
  await server.sql`
    insert into memberships (organization_id, account_id, role)
    values (${tenant.organization.uuid}, ${account.uuid}, 'admin')
  `
  const { post, get } = createRequests(server.url, tenant.key)
  for (let n = 1; n <= EVENTS; n++)
    await post('/v1/events', {
      channelName: n % 2 === 0 ? 'payments' : 'sign-ups',
      title: `Event ${n}`,
      ...(n % 3 === 0 && { userId: 'ada@example.com', tags: ['billing', `n${n}`] }),
      ...(n % 5 === 0 && { metadata: { n, plan: 'pro' }, icon: '💰', occurredAt: PAST }),
    })
  await post('/v1/identify', { user_id: 'ada', aliases: ['ada@example.com'] })
  const { projectId } = tenant.params
  const expected = {
    key: tenant.key,
    email: account.email,
    project: projectId,
    responses: Object.fromEntries(
      await Promise.all(
        ['/v1/events?limit=100', '/v1/events?userId=ada', '/v1/users/ada', '/v1/channels'].map(
          async path => [path, (await get(path)).body.data],
        ),
      ),
    ),
  }
  const file = join(FOLDER, 'installation.backup')
  rmSync(file, { force: true })
  await backUp(server.databaseUrl, file, { isCheap: false })
  const { code } = await format('expected.json', JSON.stringify(expected), { printWidth: 100 })
  writeFileSync(join(FOLDER, 'expected.json'), code)
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
  writeFileSync(join(FOLDER, 'statements.sql'), kept.map(text => `${text}\n;\n`).join(''))
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
