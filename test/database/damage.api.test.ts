import { afterAll, beforeAll, expect, onTestFinished, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { DAMAGED, toReason } from '../../src/base/errors.ts'
import { checkTables } from '../../src/cli/doctor/tables.ts'
import { explainDatabaseError } from '../../src/database/explanation.ts'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { findCopyName } from '../../src/server/backup/copies.ts'
import { readLastBackup } from '../../src/server/scheduled-backups.ts'
import { makeFolder } from '../support/scratch.ts'
import {
  copyDamaged,
  copyDatabase,
  isolateCluster,
  toSuperuserUrl,
} from '../support/servers/postgres.ts'
import { runProgram } from '../support/servers/process.ts'
import { boot } from '../support/servers/server.ts'
import { openSql } from '../support/sql.ts'
import { backUp, makeBackupFolder, PASSPHRASE } from '../support/worlds/backup.ts'
import { newFullTenant } from '../support/worlds/full-tenant.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'
import { until } from '../support/until.ts'
import { basename, join } from 'node:path'

const PAGE = 8_192
const cut = (toSize: (bytes: number) => number) => (file: string) =>
  truncateSync(file, toSize(statSync(file).size))
const toNothing = cut(() => 0)
const byHalf = cut(bytes => PAGE * Math.floor(bytes / PAGE / 2))
const byPage = cut(bytes => bytes - PAGE)
function scramble(file: string): void {
  const bytes = readFileSync(file)
  randomBytes(PAGE).copy(bytes)
  writeFileSync(file, bytes)
}
let databaseUrl: string
let token: string
/** Tables that the tenant has filled. */
const TABLES = ['accounts', 'event_counts', 'installation', 'migrations']
let own: AsyncDisposable
afterAll(() => own[Symbol.asyncDispose]())
beforeAll(async () => {
  own = isolateCluster()
  const server = await boot()
  await newFullTenant(server)
  const project = await newProject(server)
  token = project.key
  for (let n = 0; n < 100; n++) {
    await project.post('/v1/events', {
      channelName: 'a',
      title: `Event ${n}`,
      metadata: { text: randomBytes(n % 10 === 0 ? 9_000 : 300).toString('hex') },
    })
  }
  databaseUrl = server.databaseUrl
  await server[Symbol.asyncDispose]()
})

/** Tries a backup. Returns why it failed; an empty text if it did not. */
async function findProblem(url: string): Promise<string> {
  using place = makeBackupFolder()
  const problem = await backUp(url, place.file).then(
    () => '',
    (error: unknown) => explainDatabaseError(error) ?? toReason(error),
  )
  expect(readdirSync(place.folder)).toHaveLength(problem === '' ? 1 : 0)
  return problem
}

async function findToast(table: string): Promise<string> {
  await using sql = openSql(databaseUrl)
  const [row] = await sql<[{ name: string }]>`
    select reltoastrelid::regclass::text as name from pg_class where oid = to_regclass(${table})
  `
  return row.name
}

async function nameFormerCopy(url: string): Promise<string> {
  await using sql = openSql(url)
  const name = await findCopyName(sql, new Date(0))
  return name
}

async function check(url: string) {
  return checkTables({
    ...{ url, sessionUrl: url, superuserUrl: await toSuperuserUrl(url), dataDir: '/nonexistent' },
    ...{ kind: 'embedded', close: async () => {} },
  })
}

test('an undamaged database passes the check, which leaves nothing in it', async () => {
  const url = await copyDatabase(databaseUrl)
  expect(await check(url)).toEqual([
    { check: 'tables', state: 'ok', message: expect.stringContaining('indexes are sound') },
  ])
  await using sql = openSql(url)
  expect([...(await sql`select from pg_extension where extname = 'amcheck'`)]).toEqual([])
})

test('a damaged table, index or long value refuses the backup, in words', async () => {
  const damages: [relation: string, damage: (file: string) => void][] = [
    ...TABLES.map((name): (typeof damages)[0] => [name, toNothing]),
    ...[byHalf, byPage, scramble, rmSync].map((damage): (typeof damages)[0] => ['events', damage]),
    ['events_pkey', byPage],
    [await findToast('events'), byPage],
  ]
  for (const [relation, damage] of damages) {
    const url = await copyDamaged(databaseUrl, relation, damage)
    expect([relation, await findProblem(url)]).toEqual([relation, expect.stringContaining(DAMAGED)])
    expect([relation, (await check(url))[0]?.message]).toEqual([
      relation,
      expect.stringContaining(DAMAGED),
    ])
  }
})

test('the deep check finds an index that no backup reads', async () => {
  const url = await copyDamaged(databaseUrl, 'events_of_user', byPage)
  expect(await findProblem(url)).toBe('')
  expect(await check(url)).toEqual([
    { check: 'tables', state: 'failed', message: `events_of_user: ${DAMAGED}` },
  ])
})

test('a server on a table that was cut off says so, and keeps older backups', async () => {
  const url = await copyDamaged(databaseUrl, 'events', byHalf)
  using place = makeBackupFolder()
  const former = join(place.folder, await nameFormerCopy(url))
  writeFileSync(former, '')
  const at = { hour: 0, minute: 0, keep: 1, passphrase: PASSPHRASE }
  {
    await using server = await boot({
      databaseUrl: url,
      backupSchedule: { folder: place.folder, ...at },
    })
    const { get } = createRequests(server.url, token)
    const answer = await get('/v1/events?limit=100')
    expect([answer.status, answer.body.error]).toEqual([503, DAMAGED])
    const ready = await fetch(`${server.url}/readyz`)
    expect([ready.status, (await ready.json()).reasons]).toEqual([503, [DAMAGED]])
    await until(async () => (await readLastBackup(server.sql))?.problem === DAMAGED)
    expect(readdirSync(place.folder)).toEqual([basename(former)])
  }
})

test('wrong counts of events are named, hold old backups, and are corrected by reindex', async () => {
  const lost = await copyDamaged(databaseUrl, 'events', byHalf)
  const drifted = await copyDatabase(databaseUrl)
  const sql = openSql(lost)
  const other = openSql(drifted)
  onTestFinished(async () => {
    await Promise.all([sql.end({ timeout: 1 }), other.end({ timeout: 1 })])
  })
  await sql`reindex table events`
  await other`update event_counts set n = n + 7`
  // Counts without events, more than one transaction corrects.
  await other`
    insert into event_counts
    select project_id, hour - hours * interval '1 h', channel_id, 5
    from (select * from event_counts limit 1) c
      cross join generate_series(1, 12000) as g (hours)
  `
  for (const url of [lost, drifted]) {
    using place = makeBackupFolder()
    expect((await check(url))[0]?.message).toContain('by its counts')
    const { wrongCounts } = await backUp(url, place.file)
    expect(wrongCounts.some(({ found, counted }) => found < counted)).toBe(true)
    expect((await backUp(url, place.file, { isForced: true })).wrongCounts).toEqual(wrongCounts)
    const { output } = await runProgram({ env: { DATABASE_URL: url }, args: ['reindex'] })
    expect(output).toMatch(url === lost ? /Corrected \d+ counts of/ : /Corrected 12\d{3} counts of/)
    expect((await backUp(url, place.file, { isForced: true })).wrongCounts).toEqual([])
    expect((await check(url))[0]?.state).toBe('ok')
  }
})

test('Postgres with damaged files of its own does not start, and says what to do', async () => {
  const dataDir = makeFolder()
  const folder = join(dataDir, 'postgres', 'data')
  await (await startEmbedded({ dataDir })).stop()
  const [wal = ''] = readdirSync(join(folder, 'pg_wal')).filter(name => /^[0-9A-F]{24}$/.test(name))
  const files = ['global/pg_control', 'PG_VERSION', `pg_wal/${wal}`, 'pg_xact/0000', 'pg_hba.conf']
  for (const file of files.map(name => join(folder, name))) {
    const bytes = readFileSync(file)
    toNothing(file)
    const { message } = await startEmbedded({ dataDir }).then(
      () => new Error('It started'),
      (error: Error) => error,
    )
    expect([file, message]).toEqual([file, expect.stringContaining(DAMAGED)])
    expect(message).not.toContain('initdb')
    // In place, so that the owner stays.
    writeFileSync(file, bytes)
  }
  await (await startEmbedded({ dataDir })).stop()
}, 120_000)
