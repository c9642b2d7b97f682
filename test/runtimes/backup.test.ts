import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { makeFolder } from '../support/scratch.ts'
import { createEmptyDatabase } from '../support/servers/postgres.ts'
import {
  compileBinary,
  runProgram,
  startProgram,
  type Runtime,
} from '../support/servers/process.ts'
import { scaled } from '../support/until.ts'
import { makeBackupFolder, PASSPHRASE } from '../support/worlds/backup.ts'
import { createRequests } from '../support/worlds/project.ts'
import { openSql } from '../support/sql.ts'

// Deno checks and compiles the sources at each start.
setDefaultTimeout(scaled(180_000))
beforeAll(compileBinary, scaled(120_000))

const OTHER = Buffer.alloc(32, 'other').toString('base64')

test.each<[Runtime, Runtime]>([
  ['binary', 'deno'],
  ['deno', 'binary'],
])(
  'a backup made on %s is restored on %s',
  async (from, to) => {
    using place = makeBackupFolder()
    const env = { DATABASE_URL: await createEmptyDatabase(), BACKUP_PASSPHRASE: PASSPHRASE }
    await using first = await startProgram({ runtime: from, env })
    const { post } = createRequests(first.url, first.firstKey!)
    const event = { channelName: 'payments', title: 'New payment 💰' }
    const sent = await post('/v1/events', event)
    const made = await runProgram({ runtime: from, args: ['backup', place.file, '--json'], env })
    expect(JSON.parse(made.output)).toMatchObject({ file: place.file, rows: { events: 1 } })

    const there = { ...env, DATABASE_URL: await createEmptyDatabase(), APP_SECRET: OTHER }
    const args = ['restore', place.file]
    const wrong = { ...there, BACKUP_PASSPHRASE: `${PASSPHRASE}!` }
    const refused = await runProgram({ runtime: to, args, env: wrong })
    expect(refused.code).toBe(1)
    expect(refused.output).toContain('The passphrase is wrong')
    const restored = await runProgram({ runtime: to, args, env: there })
    expect(restored.output).toContain('Restored 1 events')
    expect(restored.code).toBe(0)

    await using second = await startProgram({ runtime: to, env: there })
    expect(second.firstKey).toBeUndefined()
    const listed = await createRequests(second.url, first.firstKey!).get('/v1/events')
    expect(listed.body.data.items).toEqual([sent.body.data])
    expect(await exportEvents(from, env)).toEqual([1, 1])
  },
  scaled(120_000),
)

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
