import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { chownSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LOCKS } from '../../src/database/locks.ts'
import type { Sql } from '../../src/database/sql.ts'
import {
  openSecrets,
  readSecretFile,
  type SecretSource,
} from '../../src/database/secrets/open-secrets.ts'
import { rotateSecrets } from '../../src/database/secrets/rotation.ts'
import { SEALED_WEBHOOKS } from '../../src/delivery/webhooks/sealing.ts'
import { newMember, newOrganization, newTeam } from '../support/worlds/signed-in-account.ts'
import { insertSubscription } from '../support/worlds/push.ts'
import { insertWebhook as insertTenantWebhook } from '../support/worlds/webhooks.ts'
import { APP_SECRET, testSecrets } from '../support/secret.ts'
import { boot } from '../support/servers/server.ts'
import { ensureVapidKey } from '../../src/delivery/push/vapid.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { captureLog } from '../support/log.ts'
import { runProgram } from '../support/servers/process.ts'
import { hold } from '../support/database-lock.ts'
import { makeFolder } from '../support/scratch.ts'
import { canGiveFiles } from '../support/tools.ts'
import { openSql } from '../support/sql.ts'

const PLACE = { table: 'webhooks', column: 'url', rowId: 'a' }
const TABLES = [SEALED_WEBHOOKS]
let url: string
let sql: Sql
beforeAll(async () => {
  url = await cloneDatabase()
  sql = openSql(url, { max: 8 })
})
// All tests share one database; each begins without sealed values.
beforeEach(async () => {
  await sql`truncate sealed_canary, webhooks, erasure_keys cascade`
})
afterAll(() => sql.end({ timeout: 1 }))

const inFile = (dataDir: string): SecretSource => ({
  appSecret: undefined,
  oldAppSecrets: [],
  dataDir,
})
const given = (appSecret: Buffer, ...oldAppSecrets: Buffer[]): SecretSource => ({
  appSecret,
  oldAppSecrets,
  dataDir: '/nowhere',
})

test('design §5 an APP_SECRET is created in DATA_DIR, readable by its owner alone', async () => {
  const folder = makeFolder(0o700)
  const dataDir = join(folder, 'data')
  const first = await openSecrets(sql, inFile(dataDir))
  const { mode } = statSync(join(dataDir, 'app-secret'))
  expect(mode & 0o777).toBe(0o600)
  const again = await openSecrets(sql, inFile(dataDir))
  expect(again.open(first.seal('text', PLACE), PLACE)).toBe('text')
})

test('design §5 concurrent first starts on one folder use one secret', async () => {
  const dataDir = makeFolder(0o700)
  const all = await Promise.all(Array.from({ length: 8 }, () => openSecrets(sql, inFile(dataDir))))
  expect(new Set(all.map(({ keyId }) => keyId)).size).toBe(1)
})

test('design §5 of two machines that start with different secrets, one refuses to run', async () => {
  const starts = await Promise.allSettled(
    Array.from({ length: 4 }, () => openSecrets(sql, inFile(makeFolder(0o700)))),
  )
  expect(starts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const start of starts) {
    if (start.status === 'rejected')
      expect(String(start.reason)).toMatch(/another APP_SECRET|APP_SECRET is not set/)
  }
})

test('design §5 a lost secret is reported, and not replaced by a new one', async () => {
  await openSecrets(sql, inFile(makeFolder(0o700)))
  const elsewhere = makeFolder(0o700)
  await expect(openSecrets(sql, inFile(elsewhere))).rejects.toThrow('APP_SECRET is not set')
  expect(() => readFileSync(join(elsewhere, 'app-secret'))).toThrow()
})

test('design §5 a damaged file is not replaced', async () => {
  const folder = makeFolder(0o700)
  writeFileSync(join(folder, 'app-secret'), '# a comment\nnonsense\n')
  await expect(openSecrets(sql, inFile(folder))).rejects.toThrow('Restore it from a backup')
})

test('reliability §11 a wrong APP_SECRET stops the start with instructions and without showing a secret', async () => {
  await openSecrets(sql, given(randomBytes(32)))
  const wrong = randomBytes(32).toString('base64')
  const { code, output } = await runProgram({ env: { DATABASE_URL: url, APP_SECRET: wrong } })
  expect(code).toBe(1)
  expect(output).toContain('another APP_SECRET than the one in APP_SECRET')
  expect(output).not.toContain(wrong)
})

test('reliability §11 a secret in the environment is rotated by setting both', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)]
  const before = await openSecrets(sql, given(old))
  const id = await insertWebhook(text => before.seal(text.text, text.place))
  await expect(rotateSecrets(sql, given(fresh), TABLES)).rejects.toThrow('another APP_SECRET')
  expect(await rotateSecrets(sql, given(fresh, old), TABLES)).toEqual({
    isNew: false,
    resealed: 4,
  })
  const after = await openSecrets(sql, given(fresh))
  expect(await readWebhook(id, after.open)).toEqual([
    'url',
    'secret',
    'previous_secret',
    'own_request',
  ])
  await expect(openSecrets(sql, given(old))).rejects.toThrow('another APP_SECRET')
  expect((await rotateSecrets(sql, given(fresh), TABLES)).resealed).toBe(0)
})

test('reliability §11 a secret in DATA_DIR is rotated repeatedly while servers run', async () => {
  const dataDir = makeFolder(0o700)
  const running = await openSecrets(sql, inFile(dataDir))
  const ids = [await insertWebhook(({ text, place }) => running.seal(text, place))]
  for (let n = 0; n < 3; n++) {
    const before = running.keyId
    expect(await rotateSecrets(sql, inFile(dataDir), TABLES)).toMatchObject({ isNew: true })
    // The running server opens values sealed with the new secret, and seals with it from now on.
    expect(running.keyId).not.toBe(before)
    ids.push(await insertWebhook(({ text, place }) => running.seal(text, place)))
    for (const id of ids) expect(await readWebhook(id, running.open)).toHaveLength(4)
  }
  const lines = readFileSync(join(dataDir, 'app-secret'), 'utf8').split('\n')
  expect(lines.filter(line => line !== '' && !line.startsWith('#'))).toHaveLength(2)
  expect(statSync(join(dataDir, 'app-secret')).mode & 0o777).toBe(0o600)
  await openSecrets(sql, inFile(dataDir))
})

test('reliability §11 a rotation by root leaves the file to the user of the server', async () => {
  const dataDir = makeFolder(0o700)
  const file = join(dataDir, 'app-secret')
  // Only root can give files to others.
  const isRoot = canGiveFiles()
  const readOwner = () => {
    const { uid, gid, mode } = statSync(file)
    return [uid, gid, (mode & 0o777).toString(8)]
  }
  if (isRoot) chownSync(dataDir, 4242, 4243)
  await openSecrets(sql, inFile(dataDir))
  const { uid, gid } = statSync(dataDir)
  expect(readOwner()).toEqual([uid, gid, '600'])
  if (isRoot) chownSync(file, 4244, 4245)
  await rotateSecrets(sql, inFile(dataDir), TABLES)
  expect(readOwner()).toEqual([...(isRoot ? [4244, 4245] : [uid, gid]), '600'])
  if (isRoot) {
    // A restore would create a database that the server cannot use.
    const env = { BACKUP_PASSPHRASE: 'violet tractor seventeen' }
    const args = ['restore', '/nonexistent', '--data-dir', dataDir]
    const refused = await runProgram({ args, env })
    expect(refused).toMatchObject({
      code: 1,
      output: expect.stringContaining(`${dataDir} belongs to uid 4242`),
    })
  }
  // A former version gave it to root.
  if (isRoot) chownSync(file, 0, 0)
  await rotateSecrets(sql, inFile(dataDir), TABLES)
  expect(readOwner()).toEqual([uid, gid, '600'])
})

test('reliability §11 a server whose replaced file cannot be read keeps its keys, and says so once', async () => {
  const dataDir = makeFolder(0o700)
  const file = join(dataDir, 'app-secret')
  const running = await openSecrets(sql, inFile(dataDir))
  const sealed = running.seal('text', PLACE)
  const text = readFileSync(file)
  using log = captureLog()
  for (const replace of [() => mkdirSync(file), () => writeFileSync(file, 'nonsense')]) {
    rmSync(file, { recursive: true })
    replace()
    log.lines.length = 0
    for (let nth = 0; nth < 3; nth++) {
      expect(running.open(running.seal('text', PLACE), PLACE)).toBe('text')
      expect(running.open(sealed, PLACE)).toBe('text')
    }
    expect(log.lines).toEqual([expect.stringContaining('the keys in memory stay in use')])
  }
  // It reads the file again once it can.
  rmSync(file)
  writeFileSync(file, text)
  log.lines.length = 0
  expect(running.open(sealed, PLACE)).toBe('text')
  expect(log.lines).toEqual([])
  await expect(openSecrets(sql, inFile(join(dataDir, 'other')))).rejects.toThrow('is not set')
})

/** Begins a rotation, and runs `work` while it waits for the row of the webhook. */
async function rotateBeside(dataDir: string, id: string, work: () => Promise<unknown>) {
  const lock = await hold(sql, tx => tx`select from webhooks where id = ${id} for update`)
  const rotation = rotateSecrets(sql, inFile(dataDir), TABLES)
  rotation.catch(() => {})
  await lock.untilBlocked()
  await work()
  await lock.release()
  return rotation
}

test('reliability §11 of concurrent rotations, one succeeds', async () => {
  const dataDir = makeFolder(0o700)
  const running = await openSecrets(sql, inFile(dataDir))
  const id = await insertWebhook(({ text, place }) => running.seal(text, place))
  const rotation = await rotateBeside(dataDir, id, async () =>
    expect(rotateSecrets(sql, inFile(dataDir), TABLES)).rejects.toThrow('is running'),
  )
  expect(rotation.resealed).toBe(4)
  expect(await readWebhook(id, running.open)).toHaveLength(4)
})

test('reliability §11 a rotation that has lost its lock removes no secret of another one', async () => {
  const dataDir = makeFolder(0o700)
  const running = await openSecrets(sql, inFile(dataDir))
  const id = await insertWebhook(({ text, place }) => running.seal(text, place))
  await rotateSecrets(sql, inFile(dataDir), TABLES)
  const interrupted = rotateBeside(
    dataDir,
    id,
    async () => sql`
      select pg_terminate_backend(pid) from pg_locks
      where locktype = 'advisory' and classid::bigint = ${LOCKS.secrets}
        and database = (select oid from pg_database where datname = current_database())
    `,
  )
  await expect(interrupted).rejects.toThrow()
  // A complete rotation leaves two.
  expect(readSecretFile(join(dataDir, 'app-secret'))).toHaveLength(3)
  expect((await rotateSecrets(sql, inFile(dataDir), TABLES)).isNew).toBe(true)
  expect(await readWebhook(id, running.open)).toHaveLength(4)
})

test('design §5 if no secret can be stored, the message says so', async () => {
  const folder = makeFolder(0o700)
  writeFileSync(join(folder, 'file'), '')
  const source = inFile(join(folder, 'file', 'data'))
  await expect(openSecrets(sql, source)).rejects.toThrow('cannot be created')
})

test('reliability §11 rotation processes tables in batches, and skips deleted rows', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)]
  const before = await openSecrets(sql, given(old))
  for (let n = 0; n < 205; n++) {
    await insertWebhook(({ text, place }) => before.seal(text, place))
  }
  await sql`
    update webhooks set
      deleted_at = now(), url = null, secret = null, previous_secret = null, previous_until = null, own_request = null
    where id = (select id from webhooks order by id limit 1)
  `
  expect((await rotateSecrets(sql, given(fresh, old), TABLES)).resealed).toBe(204 * 4)
})

test('tidings secrets rotate reports its result', async () => {
  const { code, output } = await runProgram({
    args: ['secrets', 'rotate', '--json'],
    env: { DATABASE_URL: url },
  })
  expect([code, output]).toEqual([0, expect.stringContaining('resealed')])
  expect(JSON.parse(output)).toEqual({ isNew: false, resealed: 0 })
})

/** Runs a command with this APP_SECRET. */
function run(appSecret: Buffer, ...args: string[]) {
  const env = { DATABASE_URL: url, APP_SECRET: appSecret.toString('base64') }
  return runProgram({ args, env })
}

/** Counts what a lost APP_SECRET takes away. */
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
  const fresh = randomBytes(32)
  await openSecrets(sql, given(APP_SECRET))
  const server = { sql, url: '' }
  const [organization, admin] = await newTeam(server, 'admin')
  const eventId = 'evt_01kadz5p6vf2w8y3m4n5q6r7s8'
  const { webhookId } = await insertTenantWebhook(server, organization.project.uuid, {
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

/** Inserts a webhook whose sealed columns contain their own names. */
async function insertWebhook(
  seal: (sealed: { text: string; place: typeof PLACE }) => string,
): Promise<string> {
  const { project } = await newOrganization({ sql })
  const id = crypto.randomUUID()
  const [url, secret, previous, own] = SEALED_WEBHOOKS.columns.map(column =>
    seal({ text: column, place: { table: 'webhooks', column, rowId: id } }),
  )
  await sql`
    insert into webhooks (
      project_id, id, name, url, host, preset, has_all_channels, secret, previous_secret, previous_until, own_request
    )
    values (
      ${project.uuid}, ${id}, 'n', ${url!}, 'h', 'standard', true, ${secret!}, ${previous!}, now(), ${own!}
    )
  `
  return id
}

async function readWebhook(
  id: string,
  open: (sealed: string, place: typeof PLACE) => string,
): Promise<string[]> {
  const [row] = await sql<Record<string, string>[]>`
    select url, secret, previous_secret, own_request from webhooks where id = ${id}
  `
  return SEALED_WEBHOOKS.columns.map(column =>
    open(row?.[column] ?? '', { table: 'webhooks', column, rowId: id }),
  )
}
