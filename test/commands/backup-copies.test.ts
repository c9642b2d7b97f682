import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkBackups } from '../../src/cli/doctor/database.ts'
import type { BackupSchedule } from '../../src/config.ts'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { registry } from '../../src/metrics.ts'
import { makeDueBackup } from '../../src/server/scheduled-backups.ts'
import { makeBackupFolder, PASSPHRASE, restore } from '../support/backup.ts'
import { createEmptyDatabase } from '../support/postgres.ts'
import { runProgram } from '../support/process.ts'
import { newProject } from '../support/project.ts'
import { makeFolder } from '../support/scratch.ts'
import { APP_SECRET } from '../support/secret.ts'
import { boot, type Booted } from '../support/server.ts'
import { until } from '../support/until.ts'

const COPY = /^tidings-\d{4}-\d\d-\d\dT\d{6}Z\.backup$/

let server: Booted
let pool: Pool
const folder = makeFolder()
/** Half a day from now, so that the time does not come during the tests. */
const at = new Date(Date.now() + 12 * 3_600_000)
const toSchedule = (more: Partial<BackupSchedule> = {}): BackupSchedule => ({
  ...{ folder, hour: at.getHours(), minute: at.getMinutes(), keep: 2, passphrase: PASSPHRASE },
  ...more,
})
beforeAll(async () => {
  server = await boot({ backupSchedule: toSchedule() })
  pool = createPool(server.databaseUrl, { name: 'test', max: 2 })
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
})
const listCopies = () => readdirSync(folder).filter(name => COPY.test(name))
const read = async () => (await server.sql`select * from scheduled_backups`)[0] as any
const readMetric = async () => {
  const metric = registry.getSingleMetric('tidings_backup_last_success_timestamp_seconds')
  return (await metric?.get())?.values[0]?.value
}

test('a server makes the first scheduled backup at its start, and then one a day', async () => {
  const { post } = await newProject(server)
  await until(async () => (await readMetric()) !== undefined)
  expect(await readMetric()).toBe((await read()).succeeded_at.getTime() / 1000)
  expect(readdirSync(folder)).toEqual(listCopies())
  expect(listCopies()).toHaveLength(1)
  // Serving continues, and nothing is due.
  expect((await post('/v1/events', { channelName: 'a', title: 'b' })).status).toBe(201)
  await makeDueBackup(options(toSchedule()))
  expect(listCopies()).toHaveLength(1)

  // Of two servers at the next time, one makes it. Files of others stay.
  const foreign = ['notes.txt', 'tidings-2020-01-01.backup', 'tidings-2020-01-01T000000Z.backup.gz']
  const abandoned = join(folder, 'tidings-2020-01-01T000000Z.backup.7.part')
  for (const name of foreign) writeFileSync(join(folder, name), '')
  writeFileSync(join(folder, 'tidings-2020-01-01T000000Z.backup'), '')
  writeFileSync(abandoned, '')
  utimesSync(abandoned, 0, 0)
  const tomorrow = new Date(Date.now() + 86_400_000)
  await Promise.all([1, 2].map(() => makeDueBackup(options(toSchedule()), { now: tomorrow })))
  expect(listCopies()).toHaveLength(2)
  expect(listCopies()).not.toContain('tidings-2020-01-01T000000Z.backup')
  expect(readdirSync(folder).toSorted()).toEqual([...foreign, ...listCopies()].toSorted())
  const { rows } = await restore(await createEmptyDatabase(), (await read()).file)
  expect(rows['events']).toBe(1)
  expect(await checkBackups(server.sql, { backupSchedule: toSchedule() })).toMatchObject([
    { state: 'ok', message: expect.stringContaining(`The last one is ${folder}/tidings-`) },
  ])
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

  const old = ['tidings-2020-01-01T000000Z.backup', 'tidings-2020-01-02T000000Z.backup']
  for (const name of old) writeFileSync(join(place.folder, name), '')
  const made = await run(place.folder, '--keep', '2', '--json')
  const { file, deleted } = JSON.parse(made.output) as { file: string; deleted: string[] }
  expect(deleted).toEqual([join(place.folder, old[0]!)])
  const names = ['tidings.backup', old[1]!, file.slice(place.folder.length + 1)]
  expect(readdirSync(place.folder).toSorted()).toEqual(names.toSorted())
})
