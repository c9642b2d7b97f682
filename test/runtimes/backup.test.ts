import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { makeFolder } from '../support/scratch.ts'
import { createEmptyDatabase } from '../support/servers/postgres.ts'
import {
  compileBinary,
  runProgram,
  startProgram,
  type Runtime,
} from '../support/servers/process.ts'
import { openSql } from '../support/sql.ts'
import { scaled } from '../support/until.ts'
import { makeBackupFolder, PASSPHRASE } from '../support/worlds/backup.ts'
import { createRequests } from '../support/worlds/project.ts'

// Deno checks and compiles the sources at each start.
setDefaultTimeout(scaled(180_000))
beforeAll(compileBinary, scaled(120_000))

const OTHER = Buffer.alloc(32, 'other').toString('base64')

test('a backup of the executable is restored on Deno, and the other way round; both export', async () => {
  using first = makeBackupFolder()
  using second = makeBackupFolder()
  const env = { DATABASE_URL: await createEmptyDatabase(), BACKUP_PASSPHRASE: PASSPHRASE }
  const there = { ...env, DATABASE_URL: await createEmptyDatabase(), APP_SECRET: OTHER }
  const again = { ...env, DATABASE_URL: await createEmptyDatabase() }
  await using program = await startProgram({ runtime: 'binary', env })
  const { post } = createRequests(program.url, program.firstKey!)
  const sent = await post('/v1/events', { channelName: 'payments', title: 'New payment 💰' })
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
  const listed = await createRequests(last.url, program.firstKey!).get('/v1/events')
  expect(listed.body.data.items).toEqual([sent.body.data])
  expect(await exportEvents('binary', env)).toEqual([1, 1])
  expect(await exportEvents('deno', there)).toEqual([1, 1])
})

/** Exports the only event in both formats. Returns the numbers of events in the files. */
async function exportEvents(runtime: Runtime, env: { DATABASE_URL: string }): Promise<number[]> {
  const sql = openSql(env.DATABASE_URL)
  await sql`update events set created_at = created_at - interval '100 days'`
  const counts: number[] = []
  for (const format of ['ndjson', 'parquet']) {
    await sql`delete from exports`
    const args = ['export', makeFolder(), '--format', format, '--json']
    const { output } = await runProgram({ runtime, args, env })
    counts.push(...JSON.parse(output).files.map(({ events }: { events: number }) => events))
  }
  await sql.end()
  return counts
}
