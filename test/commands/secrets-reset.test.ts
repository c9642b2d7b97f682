import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import type { Sql } from '../../src/database/sql.ts'
import { ensureVapidKey } from '../../src/delivery/push/vapid.ts'
import { openSecrets } from '../../src/database/secrets/open-secrets.ts'
import { newMember, newTeam } from '../support/worlds/signed-in-account.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { runProgram } from '../support/servers/process.ts'
import { insertSubscription } from '../support/worlds/push.ts'
import { APP_SECRET, testSecrets } from '../support/secret.ts'
import { boot } from '../support/servers/server.ts'
import { insertWebhook } from '../support/worlds/webhooks.ts'
import { openSql } from '../support/sql.ts'

let url: string
let sql: Sql
beforeAll(async () => {
  url = await cloneDatabase()
  sql = openSql(url, { max: 2 })
})
afterAll(() => sql.end({ timeout: 1 }))

const fresh = randomBytes(32)

/** Runs a command with this APP_SECRET. */
function run(appSecret: Buffer, ...args: string[]) {
  return runProgram({
    args,
    env: { DATABASE_URL: url, APP_SECRET: appSecret.toString('base64') },
  })
}

async function count() {
  const [row] = await sql<[{ devices: number; keys: number; enabled: number }]>`
    select
      (select count(*)::int from push_subscriptions) as devices,
      (select count(*)::int from vapid_keys) as keys,
      (select count(*)::int from webhooks where disabled_at is null) as enabled
  `
  return row
}

test('reliability §11 secrets reset lists the losses after a lost APP_SECRET, and acts only when confirmed', async () => {
  const source = { appSecret: APP_SECRET, oldAppSecrets: [], dataDir: '/nowhere' }
  await openSecrets(sql, source)
  const server = { sql, url: '' }
  const [organization, admin] = await newTeam(server, 'admin')
  const eventId = 'evt_01kadz5p6vf2w8y3m4n5q6r7s8'
  const { webhookId } = await insertWebhook(server, organization.project.uuid, {
    eventId,
    mark: 'a',
  })
  await insertSubscription(server, admin)
  await ensureVapidKey(sql, testSecrets())

  const known = await run(APP_SECRET, 'secrets', 'reset', '--yes')
  expect([known.code, known.output]).toEqual([1, expect.stringContaining('Nothing is lost')])
  expect((await run(APP_SECRET, 'doctor')).output).toContain('ok       APP_SECRET: Decrypts')
  const checked = await run(fresh, 'doctor')
  expect(checked.code).toBe(1)
  expect(checked.output).toContain("failed   APP_SECRET: The database's secrets are sealed with")
  expect(checked.output).toContain('tidings secrets reset')

  const before = await count()
  const told = await run(fresh, 'secrets', 'reset')
  expect(told.code).toBe(0)
  expect(told.output).toContain('Nothing was changed')
  expect(told.output).toContain('Webhooks disabled: 1')
  expect(told.output).toContain('Push subscriptions deleted: 1')
  expect(await count()).toEqual(before)

  const done = await run(fresh, 'secrets', 'reset', '--yes', '--json')
  expect(done.code).toBe(0)
  expect(JSON.parse(done.output)).toEqual({
    isDone: true,
    lost: { webhooks: 1, push_subscriptions: 1, vapid_keys: 1 },
  })
  expect(await count()).toEqual({ devices: 0, keys: 0, enabled: 0 })

  // The server starts, shows why the webhook is disabled, and it can be repaired.
  const started = await boot({ databaseUrl: url, appSecret: fresh }, { kinds: [] })
  await using _server = started
  const account = await newMember(started, organization, 'admin')
  const path = `/api/projects/${organization.project.id}/webhooks/${webhookId}`
  expect((await account.get(path)).body.data).toMatchObject({
    isEnabled: false,
    url: 'https://lost.invalid/',
    disabledReason: expect.stringContaining('lost with the APP_SECRET'),
  })
  const edit = await account.patch(path, { url: 'https://example.com/hook' })
  expect(edit.status).toBe(200)
  expect((await account.post(`${path}/rotate`, { graceHours: 0 })).status).toBe(200)
  expect((await account.post(`${path}/enable`)).body.data.isEnabled).toBe(true)
  expect((await account.get('/api/push/key')).status).toBe(200)
  const rows =
    await sql`select from audit_log where target = ${webhookId} and action = 'webhook.disabled'`
  expect(rows.count).toBe(1)
})
