import { beforeAll, expect, test } from 'bun:test'
import { makeBackupFolder, PASSPHRASE } from './support/backup.ts'
import { createEmptyDatabase } from './support/postgres.ts'
import { compileBinary, runProgram, startProgram, type Runtime } from './support/process.ts'
import { createRequests } from './support/project.ts'

beforeAll(compileBinary, 120_000)

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
  },
  120_000,
)
