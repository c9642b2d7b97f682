import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { toId } from '../../src/base/ids.ts'
import { makeFolder } from '../support/scratch.ts'
import { cloneDatabase, createEmptyDatabase } from '../support/servers/postgres.ts'
import {
  compileBinary,
  runProgram,
  startProgram,
  type Runtime,
} from '../support/servers/process.ts'
import { openSql } from '../support/sql.ts'
import { scaled } from '../support/until.ts'
import { makeBackupFolder, PASSPHRASE } from '../support/worlds/backup.ts'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'

// Deno checks and compiles the sources at each start.
setDefaultTimeout(scaled(180_000))
beforeAll(compileBinary, scaled(120_000))

const OTHER = Buffer.alloc(32, 'other').toString('base64')

test('a backup of the executable is restored on Deno, and the other way round; both export', async () => {
  using first = makeBackupFolder()
  using second = makeBackupFolder()
  const env = { DATABASE_URL: await cloneDatabase(), BACKUP_PASSPHRASE: PASSPHRASE }
  const there = { ...env, DATABASE_URL: await createEmptyDatabase(), APP_SECRET: OTHER }
  const again = { ...env, DATABASE_URL: await createEmptyDatabase() }
  const sql = openSql(env.DATABASE_URL)
  const { id, key } = await newProject({ sql, url: '' })
  const [eventId] = await appendEvents(sql, id, 1)
  await sql.end()
  for (const [from, to, { file }, source, target] of [
    ['binary', 'deno', first, env, there],
    ['deno', 'binary', second, there, again],
  ] as const) {
    const made = await runProgram({ runtime: from, args: ['backup', file, '--json'], env: source })
    expect(JSON.parse(made.output)).toMatchObject({ file, rows: { events: 1 } })
    const restored = await runProgram({ runtime: to, args: ['restore', file], env: target })
    expect(restored.output).toContain('Restored 1 events')
    expect(restored.code).toBe(0)
  }
  await using last = await startProgram({ runtime: 'binary', env: again })
  expect(last.firstKey).toBeUndefined()
  const listed = await createRequests(last.url, key).get('/v1/events')
  expect(listed.body.data.items).toMatchObject([{ id: toId('evt', eventId!) }])
  expect(await exportEvents('binary', env, ['parquet'])).toEqual([1])
  expect(await exportEvents('deno', there, ['ndjson', 'parquet'])).toEqual([1, 1])
})

/** Exports the only event in formats. Returns the numbers of events in the files. */
async function exportEvents(
  runtime: Runtime,
  env: { DATABASE_URL: string },
  formats: readonly string[],
): Promise<number[]> {
  const sql = openSql(env.DATABASE_URL)
  await sql`update events set created_at = created_at - interval '100 days'`
  const counts: number[] = []
  for (const format of formats) {
    await sql`delete from exports`
    const args = ['export', makeFolder(), '--format', format, '--json']
    const { output } = await runProgram({ runtime, args, env })
    counts.push(...JSON.parse(output).files.map(({ events }: { events: number }) => events))
  }
  await sql.end()
  return counts
}
