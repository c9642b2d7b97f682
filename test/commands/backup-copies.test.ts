import { afterAll, beforeAll, expect, onTestFinished, setSystemTime, test } from 'bun:test'
import {
  existsSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import type { BackupSchedule } from '../../src/base/config.ts'
import { registry } from '../../src/base/metrics.ts'
import { checkBackups } from '../../src/cli/doctor/copies.ts'
import { isLockHeld, toLock } from '../../src/database/locks.ts'
import { createPool, type Pool } from '../../src/database/pool.ts'
import { connect } from '../../src/database/sql.ts'
import { findCopyName, toPartPath } from '../../src/server/backup/copies.ts'
import { BACKUP_NOT_ENDED, makeDueBackup } from '../../src/server/scheduled-backups.ts'
import { makeFolder } from '../support/scratch.ts'
import { APP_SECRET } from '../support/secret.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { runProgram } from '../support/servers/process.ts'
import { boot, type Booted } from '../support/servers/server.ts'
import { canGiveFiles } from '../support/tools.ts'
import { until } from '../support/until.ts'
import { backUp, CHEAP, makeBackupFolder, PASSPHRASE, restore } from '../support/worlds/backup.ts'
import { newProject, type Answered } from '../support/worlds/project.ts'

const COPY = /^tidings-\d{4}-\d\d-\d\dT\d{6}Z-[0-9a-f]{8}\.backup$/

let server: Booted
let pool: Pool
/** The end of the first backup, by the metric and by the table, and the answer of its server. */
let first: { metric: number | undefined; stored: number; answer: Answered }
const folder = makeFolder()
/** Half a day from now, so that the time does not come during the tests. */
const at = new Date(Date.now() + 12 * 3_600_000)
const toSchedule = (more: Partial<BackupSchedule> = {}): BackupSchedule => ({
  ...{ folder, hour: at.getHours(), minute: at.getMinutes(), keep: 2, passphrase: PASSPHRASE },
  ...more,
})
beforeAll(async () => {
  server = await boot()
  pool = createPool(server.databaseUrl, { name: 'test', max: 2 })
  const { databaseUrl } = server
  // Only for its first backup: half a minute later it would make one of its own, because tests
  // record backups of another day.
  await using scheduled = await boot({ databaseUrl, backupSchedule: toSchedule() })
  await until(async () => ((await readMetric()) ?? 0) > 0)
  const { post } = await newProject(scheduled)
  first = {
    metric: await readMetric(),
    stored: (await read()).succeeded_at.getTime() / 1000,
    answer: await post('/v1/events', { channelName: 'a', title: 'b' }),
  }
})
afterAll(async () => {
  await pool.end()
  await server[Symbol.asyncDispose]()
})

const options = (schedule: BackupSchedule) => ({
  url: server.databaseUrl,
  pool,
  source: { appSecret: APP_SECRET, oldAppSecrets: [], dataDir: '/nonexistent' },
  schedule,
  cost: CHEAP,
})
const listCopies = () => readdirSync(folder).filter(name => COPY.test(name))
/** Waits until a new copy has another name. It has the second in which it was made. */
const untilNewName = (place: string) =>
  until(async () => !existsSync(join(place, await findCopyName(server.sql, new Date()))))
const read = async () => (await server.sql`select * from scheduled_backups`)[0] as any
const readMetric = async () => {
  const metric = registry.getSingleMetric('tidings_backup_last_success_timestamp_seconds')
  return (await metric?.get())?.values[0]?.value
}

/** A finding of doctor whose message has a part. */
const toFinding = (state: string, part: string) => ({
  state,
  message: expect.stringContaining(part),
})

test('a server makes the first scheduled backup at its start, and then one a day', async () => {
  expect(first.metric).toBe(first.stored)
  expect(readdirSync(folder)).toEqual(listCopies())
  expect(listCopies()).toHaveLength(1)
  // Serving continues, and nothing is due.
  expect(first.answer.status).toBe(201)
  await makeDueBackup(options(toSchedule()))
  expect(listCopies()).toHaveLength(1)

  // Of two servers at the next time, one makes it. Files of others stay.
  const foreign = [
    ...['notes.txt', 'tidings-2020-01-01.backup', 'tidings-2020-01-01T000000Z.backup.gz'],
    // Of an earlier version, and of another installation.
    ...['tidings-2020-01-01T000000Z.backup', 'tidings-2020-01-01T000000Z-0badc0de.backup'],
    'tidings-2020-01-01T000000Z-0badc0de.backup.0123456789ab.part',
  ]
  const old = await findCopyName(server.sql, new Date('2020-01-01'))
  const abandoned = toPartPath(join(folder, old))
  for (const name of [...foreign, old]) writeFileSync(join(folder, name), '')
  writeFileSync(abandoned, '')
  utimesSync(join(folder, foreign.at(-1)!), 0, 0)
  utimesSync(abandoned, 0, 0)
  const [yesterday, tomorrow] = [-1, 1].map(days => new Date(Date.now() + days * 86_400_000))
  // An older backup can have what a damaged table has lost.
  await server.sql`update event_counts set n = n + 1`
  await server.sql`update scheduled_backups set attempted_at = ${yesterday!}`
  await untilNewName(folder)
  await makeDueBackup(options(toSchedule()))
  expect(listCopies()).toHaveLength(3 + foreign.filter(name => COPY.test(name)).length)
  await server.sql`update event_counts set n = n - 1`
  await Promise.all([1, 2].map(() => makeDueBackup(options(toSchedule()), { now: tomorrow! })))
  const own = listCopies().filter(name => !foreign.includes(name))
  expect(own).toHaveLength(2)
  expect(own).not.toContain(old)
  expect(readdirSync(folder).toSorted()).toEqual([...foreign, ...own].toSorted())
  const { rows } = await restore(await cloneDatabase(), (await read()).file)
  expect(rows['events']).toBe(1)
  expect(await checkBackups(server.sql, { backupSchedule: toSchedule() }, tomorrow!)).toMatchObject(
    [toFinding('ok', `The last one is ${folder}/tidings-`)],
  )
})

test('a failed backup is reported, leaves no file, and is tried again after an hour', async () => {
  const schedule = toSchedule({ folder: join(folder, 'absent') })
  const due = new Date(Date.now() + 3 * 86_400_000)
  const copies = listCopies()
  await makeDueBackup(options(schedule), { now: due })
  expect((await read()).problem).toContain('does not exist, or its folder does not')
  const [finding] = await checkBackups(server.sql, { backupSchedule: schedule })
  expect(finding).toMatchObject({ check: 'backups', state: 'failed' })
  expect(finding?.message).toContain('does not exist, or its folder does not')
  const later = (minutes: number) => new Date(due.getTime() + minutes * 60_000)
  await makeDueBackup(options(toSchedule()), { now: later(30) })
  expect(listCopies()).toEqual(copies)
  const last = await makeDueBackup(options(toSchedule()), { now: later(61) })
  expect(last).toMatchObject({ problem: null, succeeded_at: later(61) })
})

test('backup replaces no file without --force, and keeps rotated copies of its own', async () => {
  using place = makeBackupFolder()
  writeFileSync(place.file, 'precious')
  const env = { DATABASE_URL: server.databaseUrl, BACKUP_PASSPHRASE: PASSPHRASE }
  const run = (...args: string[]) => runProgram({ args: ['backup', ...args], env })
  const refused = await run(place.file)
  expect([refused.code, refused.output]).toEqual([
    1,
    expect.stringContaining('exists. Choose another name, or replace it with --force.'),
  ])
  expect(readFileSync(place.file, 'utf8')).toBe('precious')
  expect((await run(place.file, '--force')).code).toBe(0)
  expect(readFileSync(place.file)[0]).toBe(0x1f)
  expect((await run(place.file, '--keep', '3')).output).toContain('--keep requires a folder.')

  const name = (at: string) => findCopyName(server.sql, new Date(at))
  const old = [await name('2020-01-01'), await name('2020-01-02')]
  const later = await name('2100-01-01')
  const foreign = 'tidings-2020-01-01T000000Z-0badc0de.backup'
  for (const one of [...old, later, foreign]) writeFileSync(join(place.folder, one), '')
  const directory = await name('2019-01-01')
  mkdirSync(join(place.folder, directory))
  const made = await run(place.folder, '--keep', '2', '--json')
  const { file, ...rotation } = JSON.parse(made.output) as { file: string; deleted: string[] }
  expect(rotation).toMatchObject({
    deleted: [join(place.folder, old[0]!)],
    future: [join(place.folder, later)],
    foreign: 1,
  })
  const names = ['tidings.backup', directory, old[1]!, later, foreign, basename(file)]
  expect(readdirSync(place.folder).toSorted()).toEqual(names.toSorted())
  await untilNewName(place.folder)
  const told = await run(place.folder, '--keep', '1')
  expect(told.output).toContain(`Kept ${join(place.folder, later)}: its time is in the future.`)
  expect(told.output).toContain('Kept 1 backups of other installations.')
  expect(readdirSync(place.folder)).toHaveLength(5)
})

test('the metric is 0 until a backup has succeeded, so that an alert can fire', async () => {
  const schedule = toSchedule({ folder: join(folder, 'absent') })
  await using other = await boot({ backupSchedule: schedule })
  await until(async () => {
    const [row] = await other.sql`select problem from scheduled_backups`
    return row?.['problem']?.includes('does not exist') ?? false
  })
  expect(await readMetric()).toBe(0)
})

test('a file that a killed backup has left does not block the next one, and is removed a day later', async () => {
  using place = makeBackupFolder()
  const { file } = place
  // In a container, every run has the same pid.
  const left = [`${file}.${process.pid}.part`, toPartPath(file)]
  for (const path of left) writeFileSync(path, '')
  await backUp(server.databaseUrl, file)
  expect(readdirSync(place.folder)).toHaveLength(3)
  for (const path of left) utimesSync(path, 0, 0)
  await backUp(server.databaseUrl, `${file}.more`)
  expect(readdirSync(place.folder)).toHaveLength(4)
  await backUp(server.databaseUrl, file, { isForced: true })
  expect(readdirSync(place.folder).toSorted()).toEqual(
    [file, `${file}.more`, left[0]!].map(path => basename(path)).toSorted(),
  )
})

test('a backup keeps its own file where the clock is two days ahead of that of the file system', async () => {
  using place = makeBackupFolder()
  setSystemTime(Date.now() + 2 * 86_400_000)
  onTestFinished(() => void setSystemTime())
  await backUp(server.databaseUrl, place.file)
  expect(readdirSync(place.folder)).toEqual([basename(place.file)])
})

test('a backup has mode 0600, and belongs to the owner of DATA_DIR or of the file that it replaces', async () => {
  using place = makeBackupFolder()
  const dataDir = makeFolder(0o700)
  const { file } = place
  const read = () => {
    const { uid, mode } = statSync(file)
    return [uid, (mode & 0o777).toString(8)]
  }
  // Only root can give files to others.
  const isRoot = canGiveFiles()
  const toUid = (uid: number) => (isRoot ? uid : statSync(dataDir).uid)
  if (isRoot) chownSync(dataDir, 4242, 4242)
  await backUp(server.databaseUrl, file, { dataDir })
  expect(read()).toEqual([toUid(4242), '600'])
  if (isRoot) chownSync(file, 4343, 4343)
  await backUp(server.databaseUrl, file, { dataDir, isForced: true })
  expect(read()).toEqual([toUid(4343), '600'])
})

test('a schedule whose last time lies in the future makes a backup, and doctor says what is wrong', async () => {
  const future = new Date(Date.now() + 3 * 365 * 86_400_000)
  await makeDueBackup(options(toSchedule()), { now: future })
  const check = async () => (await checkBackups(server.sql, { backupSchedule: toSchedule() }))[0]
  expect(await check()).toMatchObject(toFinding('failed', 'lies in the future: a clock was wrong'))
  const now = new Date()
  const last = await makeDueBackup(options(toSchedule()), { now })
  expect(last).toMatchObject({ attempted_at: now, succeeded_at: now, problem: null })
  expect(listCopies()).toContain(basename(last?.file ?? ''))
  expect(await check()).toMatchObject({ state: 'ok' })

  // A failed attempt that was made after the clock was corrected is tried again as any other.
  await server.sql`
    update scheduled_backups set succeeded_at = ${future}, problem = 'the disk was full'
  `
  const later = new Date(now.getTime() + 61 * 60_000)
  expect(await makeDueBackup(options(toSchedule()), { now: later })).toMatchObject({
    attempted_at: later,
    problem: null,
  })
  // Another server's clock may be a little fast.
  const slower = new Date(later.getTime() - 5 * 60_000)
  expect(await makeDueBackup(options(toSchedule()), { now: slower })).toMatchObject({
    attempted_at: later,
  })
})

test('doctor says that a backup runs, and that the last one is missing', async () => {
  const check = async () => (await checkBackups(server.sql, { backupSchedule: toSchedule() }))[0]
  const [last] = await server.sql`
    update scheduled_backups set succeeded_at = now(), problem = ${BACKUP_NOT_ENDED}
    returning file
  `
  await server.sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(${toLock(tx, 'backups')})`
    expect(await check()).toMatchObject(toFinding('ok', 'One has been running since'))
  })
  expect(await check()).toMatchObject({ state: 'failed' })
  await server.sql`update scheduled_backups set problem = null, file = ${`${last!['file']}.gone`}`
  expect(await check()).toMatchObject(toFinding('failed', 'which is missing'))
  // A backup by the command in the same folder rotates that of the schedule.
  const former = join(folder, await findCopyName(server.sql, new Date(0)))
  await server.sql`update scheduled_backups set file = ${former}`
  expect(await check()).toMatchObject(toFinding('ok', 'A later backup has replaced it.'))
})

test('the lock of a scheduled backup outlives the connections of the pool', async () => {
  const { sql } = server
  const due = new Date(Date.now() + 30 * 86_400_000)
  const url = server.databaseUrl
  // postgres.js reads the limit from there.
  process.env['PGMAX_LIFETIME'] = '1'
  onTestFinished(() => {
    delete process.env['PGMAX_LIFETIME']
  })
  const isOpen = async () => {
    const rows = await sql`
      select from pg_stat_activity
      where datname = current_database() and application_name = 'tidings control'
    `
    return rows.count > 0
  }
  const backup = await sql.begin(async tx => {
    await tx`set local idle_in_transaction_session_timeout = 0`
    // The backup waits for this table.
    await tx`lock table events in access exclusive mode`
    const running = makeDueBackup({ ...options(toSchedule()), url }, { now: due })
    await until(() => isLockHeld(sql, 'backups'))
    // A connection that is opened later has reached the end of its life.
    const control = connect(url, { name: 'control', max: 1 })
    await control`select`
    await until(async () => !(await isOpen()))
    expect(await isLockHeld(sql, 'backups')).toBe(true)
    await control.end()
    return { running }
  })
  expect(await backup.running).toMatchObject({ succeeded_at: due, problem: null })
})
