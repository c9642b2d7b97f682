import { beforeAll, expect, test } from 'bun:test'
import { BUCKET_KEYS, startBucket } from '../support/servers/bucket.ts'
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

beforeAll(compileBinary, scaled(120_000))

const OTHER = Buffer.alloc(32, 'other').toString('base64')

test.each<[Runtime, Runtime]>([
  ['bun', 'deno'],
  ['deno', 'binary'],
  ['binary', 'bun'],
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
    expect(await archive(from, env)).toEqual({ archived: 1, deleted: 1, erased: 0, problems: [] })
  },
  scaled(120_000),
)

/** Archives the only event into a bucket. Returns the output of the command. */
async function archive(runtime: Runtime, env: { DATABASE_URL: string }): Promise<unknown> {
  await using bucket = startBucket()
  const sql = openSql(env.DATABASE_URL)
  await sql`update events set created_at = created_at - interval '100 days'`
  await sql.end()
  const { output } = await runProgram({
    runtime,
    args: ['archive', '--json'],
    env: {
      ...env,
      ARCHIVE_S3_URL: bucket.url,
      ARCHIVE_S3_ACCESS_KEY_ID: BUCKET_KEYS.accessKeyId,
      ARCHIVE_S3_SECRET_ACCESS_KEY: BUCKET_KEYS.secretAccessKey,
      ARCHIVE_AFTER_DAYS: '30',
    },
  })
  return JSON.parse(output)
}
