import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { Webhook } from 'standardwebhooks'
import { VERSION } from '../../src/base/version.ts'
import { isBackedUp } from '../../src/server/backup/rows.ts'
import { migrate } from '../../src/database/migrate.ts'
import { MIGRATIONS } from '../../src/database/sql-files.ts'
import { listTables } from '../../src/database/tables.ts'
import { toErasedFile } from '../../src/log/identities/erased-file.ts'
import { toId } from '../../src/base/ids.ts'
import {
  backUp,
  countRows,
  makeBackupFolder,
  OTHER_SECRET,
  PASSPHRASE,
  restore,
  rewrite,
} from '../support/worlds/backup.ts'
import { createBrowser, newAccount } from '../support/worlds/browser.ts'
import { openFeed } from '../support/clients/feed.ts'
import { createKey } from '../support/worlds/keys.ts'
import { addMember, newMember, newOrganization } from '../support/worlds/signed-in-account.ts'
import { cloneDatabase, createEmptyDatabase } from '../support/servers/postgres.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'
import { insertSubscription } from '../support/worlds/push.ts'
import { makeFolder } from '../support/scratch.ts'
import { listTraces } from '../support/traces.ts'
import { startReceiver } from '../support/servers/receiver.ts'
import { boot, withServer } from '../support/servers/server.ts'
import { startTcpProxy } from '../support/servers/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { openSql } from '../support/sql.ts'
import { forFile } from '../support/for-file.ts'

const EVENT = { channelName: 'payments', title: 'New payment', userId: 'ada', tags: ['a\tb\\\n'] }

const server = withServer({ egressAllowCidrs: ['127.0.0.0/8'] })
const receiver = forFile(() => startReceiver())

/** Returns a project with a webhook and one delivered event. */
async function startStory() {
  const organization = await newOrganization(server)
  const { project } = organization
  const admin = await newMember(server, organization, 'admin')
  const account = await newAccount(server)
  await addMember(server, organization, account, 'admin')
  const url = `${receiver.url}/${project.id}`
  const created = await admin.post(`/api/projects/${project.id}/webhooks`, { url })
  const { id: webhookId, secret } = created.body.data
  const { token } = await createKey(server.sql, { projectId: project.uuid, name: 'story' })
  const { post } = createRequests(server.url, token)
  await post('/v1/identify', { user_id: 'ada', aliases: ['ada@example.com'] })
  const sent = await post('/v1/events', EVENT, { 'idempotency-key': 'story' })
  await receiver.until(1, `/${project.id}`)
  await insertSubscription(server, admin)
  const attempts = `/api/projects/${project.id}/webhooks/${webhookId}/attempts`
  await until(async () => (await admin.get(attempts)).body.data.items.length === 1)
  return { organization, project, admin, account, secret, token, sent, attempts }
}

/** Boots a new installation with another APP_SECRET, restored from `file`. */
async function bootRestored(file: string) {
  const databaseUrl = await createEmptyDatabase()
  await restore(databaseUrl, file)
  return boot({ databaseUrl, appSecret: OTHER_SECRET, egressAllowCidrs: ['127.0.0.0/8'] })
}

test('reliability §12 a backup restores keys, accounts, log, webhooks and devices under another APP_SECRET', async () => {
  using place = makeBackupFolder()
  const story = await startStory()
  const { project, admin, account, secret, token, sent, attempts } = story
  const before = await openFeed(server.url, admin)
  const epoch = before.hello.epoch
  before.close()
  const backup = await backUp(server.databaseUrl, place.file, { isCheap: false })
  expect(statSync(place.file).mode & 0o777).toBe(0o600)
  expect(statSync(place.file).size).toBe(backup.bytes)
  expect(readdirSync(place.folder)).toEqual(['tidings.backup'])
  // Neither APP_SECRET opens the backup, and it contains no secret.
  const text = gunzipSync(readFileSync(place.file)).toString()
  expect(text).not.toContain(secret)
  expect(JSON.parse(text.slice(0, text.indexOf('\n'))).scrypt).toMatchObject({
    n: 131072,
    r: 8,
    p: 1,
  })

  await using after = await bootRestored(place.file)
  // The old key works, the old Idempotency-Key replays, and the log continues at the next seq.
  const { post, get } = createRequests(after.url, token)
  const replayed = await post('/v1/events', EVENT, { 'idempotency-key': 'story' })
  expect(replayed.text).toBe(sent.text)
  const next = await post('/v1/events', EVENT)
  expect(next.body.data.seq).toBe(2)
  expect((await get('/v1/events?userId=ada@example.com')).body.data.items).toHaveLength(2)

  // The old password works; old cookies do not.
  const browser = createBrowser(after.url)
  expect((await browser.signIn(account.email)).status).toBe(200)
  expect((await fetch(`${after.url}/api/me`, { headers: { cookie: admin.cookie } })).status).toBe(
    401,
  )
  const [device] = await after.sql`select from push_subscriptions where account_id = ${admin.uuid}`
  expect(device).toBeDefined()

  // The epoch changed, and a cursor of the old epoch gets a gap.
  const feed = await openFeed(after.url, {
    cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
  })
  expect(feed.hello.epoch).not.toBe(epoch)
  expect(await feed.subscribe(project.id, { after: 1, epoch })).toMatchObject({ recovered: false })
  expect(await feed.next()).toMatchObject({ type: 'gap', reason: 'epoch' })
  feed.close()

  // The webhook delivers, signed as before, and earlier deliveries can be sent again.
  await receiver.until(2, `/${project.id}`)
  const inbox = () => receiver.received.filter(({ path }) => path === `/${project.id}`)
  const [first, second] = inbox()
  const verified = new Webhook(secret).verify(second!.body, second!.headers)
  expect(verified).toMatchObject({ data: { id: next.body.data.id } })
  const { items } = (await browser.get(attempts)).body.data
  const oldest = items.at(-1)
  expect((await browser.post(`${attempts}/${oldest.id}/resend`)).status).toBe(200)
  await receiver.until(3, `/${project.id}`)
  expect(inbox()[2]!.headers['webhook-id']).toBe(first!.headers['webhook-id']!)

  // Triggers are enabled again, and sequences continue.
  await post('/v1/identify', { user_id: 'ada', aliases: ['lovelace'] })
  const [changes] = await after.sql<[{ changes: number; ids: number }]>`
    select count(*)::int as changes, count(distinct id)::int as ids
    from alias_changes
    where project_id = ${project.uuid}
  `
  expect(changes).toEqual({ changes: 2, ids: 2 })
})

test('a backup has every row of every table, except for those that are excluded on purpose', async () => {
  using place = makeBackupFolder()
  await startStory()
  const tables = await listTables(server.sql)
  const { migrations: _, function_sets: __, ...others } = await countRows(server.sql)
  const all = Object.keys(others)
  expect(tables.map(({ name }) => name).sort()).toEqual(all)
  const excluded = `
    clock epoch_timeline event_tokens invites management_tokens organization_channels
    organization_usage push_bursts rate_windows reset_links scheduled_backups sealed_canary
    search_cursors search_parts setup_links sign_in_failures sign_in_steps stale_segments
    used_challenges
  `
  expect(all.filter(name => !isBackedUp(tables.find(one => one.name === name)!))).toEqual(
    excluded.trim().split(/\s+/),
  )
  const { rows } = await backUp(server.databaseUrl, place.file)
  const databaseUrl = await cloneDatabase()
  expect((await restore(databaseUrl, place.file)).rows).toEqual(rows)
  await using sql = openSql(databaseUrl)
  const counts = await countRows(sql)
  for (const { name } of tables.filter(isBackedUp)) {
    // Only sessions with push subscriptions are restored, and the restore adds an audit entry.
    if (name === 'sessions') expect(counts[name]).toBe(counts['push_subscriptions']!)
    else expect(counts[name]).toBe(rows[name]! + Number(name === 'audit_log'))
  }
})

test('a backup under load is a consistent snapshot: each head is that of its log', async () => {
  using place = makeBackupFolder()
  const { token } = await startStory()
  const { post } = createRequests(server.url, token)
  let isOver = false
  const load = Promise.all(
    Array.from({ length: 8 }, async () => {
      while (!isOver) await post('/v1/events', EVENT)
    }),
  )
  await backUp(server.databaseUrl, place.file).finally(() => (isOver = true))
  await load
  const databaseUrl = await cloneDatabase()
  await restore(databaseUrl, place.file)
  await using sql = openSql(databaseUrl)
  const rows = await sql<{ last_seq: string; events: string; newest: string; counted: string }[]>`
    select
      l.last_seq, count(*) as events, max(e.seq) as newest,
      (select sum(n.n) from event_counts n where n.project_id = l.project_id) as counted
    from event_logs l
      join events e on e.project_id = l.project_id
    group by l.project_id
  `
  expect(rows.length).toBeGreaterThan(0)
  for (const { last_seq, events, newest, counted } of rows) {
    expect([events, newest, counted]).toEqual([last_seq, last_seq, last_seq])
  }
})

test('a damaged, foreign or incompatible backup is refused, and restores nothing', async () => {
  using place = makeBackupFolder()
  await startStory()
  await backUp(server.databaseUrl, place.file)
  const bytes = readFileSync(place.file)
  const other = join(place.folder, 'other')
  const databaseUrl = await cloneDatabase()
  await using sql = openSql(databaseUrl)
  const { sealed_canary: _, clock: __, ...empty } = await countRows(sql)
  const refused = async (file: string, message: string, passphrase = PASSPHRASE) => {
    await expect(restore(databaseUrl, file, { passphrase })).rejects.toThrow(message)
    const { sealed_canary: _, clock: __, ...counts } = await countRows(sql)
    expect(counts).toEqual(empty)
  }
  const damaged = 'The backup is damaged or incomplete'

  await refused(place.file, 'The passphrase is wrong', `${PASSPHRASE}!`)
  for (const share of [0.01, 0.3, 0.7, 0.99]) {
    writeFileSync(other, bytes.subarray(0, Math.floor(bytes.length * share)))
    await refused(other, damaged)
  }
  for (const share of [0.3, 0.6, 0.9]) {
    const changed = Buffer.from(bytes)
    changed[Math.floor(bytes.length * share)]! ^= 0x20
    writeFileSync(other, changed)
    await refused(other, damaged)
  }
  // A forger can write valid gzip, but does not have the passphrase.
  const lines = (text: string) => text.split('\n')
  for (const change of [
    (text: string) => text.replace('New payment', 'Old payment'),
    (text: string) => lines(text).slice(0, -2).join('\n'),
    (text: string) => `${lines(text).slice(0, -2).join('\n')}\n`,
    (text: string) => text.replace(/\{"mac":".*?"\}/, '{"mac":""}'),
    (text: string) => `${text}{"mac":"x"}\n`,
    (text: string) => text.replace(/"scrypt":\{"n":\d+/, '"scrypt":{"n":1073741824'),
    (text: string) => text.replace('{"table":"accounts"', '{"table":"pg_authid"'),
  ]) {
    await refused(rewrite(place.file, other, change), damaged)
  }
  const newer = (change: (text: string) => string) => rewrite(place.file, other, change)
  await refused(
    newer(text => text.replace('"format":1', '"format":2')),
    `made by a newer Tidings. Restore it with version ${VERSION}`,
  )
  await refused(
    newer(text => text.replace('"migrations":[', '"migrations":["9000_more",')),
    'made by a newer Tidings, with the migrations 9000_more',
  )
  for (const nothing of ['PGDMP', gzipSync('{"x":1}\n')]) {
    writeFileSync(other, nothing)
    await refused(other, 'This file is not a Tidings backup')
  }
  writeFileSync(other, '')
  await refused(other, 'Nothing was restored')
  await refused(join(place.folder, 'absent'), 'does not exist')
  await refused(
    newer(text => text.replace(/\{"table":"events".*\n/, head => `${head}nonsense\n`)),
    'The database rejected the rows of events',
  )
  // After all refusals, the same database accepts the valid backup.
  await restore(databaseUrl, place.file)
})

test('only an empty installation accepts a restore, which replaces data of the first start alone', async () => {
  using place = makeBackupFolder()
  const { token } = await startStory()
  await backUp(server.databaseUrl, place.file)
  await expect(restore(server.databaseUrl, place.file)).rejects.toThrow(/sealed|not empty/)

  await using fresh = await boot({ appSecret: OTHER_SECRET })
  expect(fresh.server.firstKey).toBeDefined()
  const feed = await openFeed(
    fresh.url,
    await newMember(fresh, await newOrganization(fresh), 'viewer'),
  )
  await expect(restore(fresh.databaseUrl, place.file)).rejects.toThrow('not empty: it has accounts')
  await fresh.sql`delete from accounts`
  // Restores while the server runs: it informs its clients and continues with the restored data.
  // A deadlock with one of its transactions is no end.
  const tables = (await listTables(fresh.sql)).filter(({ name }) => name !== 'sealed_canary')
  const [first, last] = [tables[0]!.name, tables.at(-1)!.name]
  let restored: Promise<unknown> | undefined
  await fresh.sql.begin(async tx => {
    await tx.unsafe(`select from ${last}`)
    restored = restore(fresh.databaseUrl, place.file)
    await until(async () => {
      const waiting = await fresh.sql`
        select from pg_locks where not granted and mode = 'AccessExclusiveLock' and relation = ${last}::regclass
      `
      return waiting.count === 1
    })
    await tx.savepoint(one => one.unsafe(`select from ${first}`)).catch(() => undefined)
  })
  await restored
  expect([1008, 1012]).toContain((await feed.closed).code)
  expect((await createRequests(fresh.url, token).get('/v1/me')).status).toBe(200)
  expect((await createRequests(fresh.url, fresh.server.firstKey!).get('/v1/me')).status).toBe(401)
})

test('a backup of an older schema is migrated, unless the target already has a newer schema', async () => {
  using place = makeBackupFolder()
  await startStory()
  await backUp(server.databaseUrl, place.file)
  const text = 'create table more as select count(*)::int as events from events;'
  const migrations = [...MIGRATIONS, { name: '9000_more', text }]

  const newerUrl = await createEmptyDatabase()
  await migrate(newerUrl, migrations)
  await expect(restore(newerUrl, place.file, { migrations })).rejects.toThrow(
    'The schema of the database is newer than the backup (9000_more)',
  )
  // This program does not know all tables of that schema.
  const refusal = 'migrations of a newer Tidings: 9000_more'
  await expect(restore(newerUrl, place.file)).rejects.toThrow(refusal)
  await expect(backUp(newerUrl, `${place.file}.more`)).rejects.toThrow(refusal)

  const databaseUrl = await createEmptyDatabase()
  const { rows } = await restore(databaseUrl, place.file, { migrations })
  await using sql = openSql(databaseUrl)
  expect([...(await sql`select events from more`)]).toEqual([{ events: rows['events']! }])
})

test('a cancelled backup, or one without disk space, leaves no file, and the previous one stays', async () => {
  using place = makeBackupFolder()
  await backUp(server.databaseUrl, place.file)
  const before = readFileSync(place.file)
  const reason = new Error('Stopped')
  await expect(
    backUp(server.databaseUrl, place.file, { signal: AbortSignal.abort(reason) }),
  ).rejects.toThrow()
  expect(readdirSync(place.folder)).toEqual(['tidings.backup'])
  expect(readFileSync(place.file).equals(before)).toBe(true)
  // Postgres disappears in the middle of the backup.
  const proxy = await startTcpProxy(server.databaseUrl)
  const held = proxy.trap({ from: 'server', type: 'H', application: 'tidings backup' })
  const failure = backUp(proxy.url, place.file).then(
    () => undefined,
    (error: unknown) => error,
  )
  ;(await held).cut()
  expect(await failure).toMatchObject({ code: 'CONNECTION_CLOSED' })
  await proxy.close()
  expect(readdirSync(place.folder)).toEqual(['tidings.backup'])
  await expect(backUp(server.databaseUrl, join(place.folder, 'no', 'folder'))).rejects.toThrow(
    `${join(place.folder, 'no')} does not exist`,
  )
  expect(existsSync(join(place.folder, 'no'))).toBe(false)
})

test('a backup is complete without its entry in the audit log, as if the database had no space', async () => {
  using place = makeBackupFolder()
  const { sql, databaseUrl } = server
  await sql`alter table audit_log add constraint is_full check (action <> 'server.backedUp') not valid`
  try {
    expect((await backUp(databaseUrl, place.file)).file).toBe(place.file)
    expect(readdirSync(place.folder)).toEqual(['tidings.backup'])
  } finally {
    await sql`alter table audit_log drop constraint is_full`
  }
})

test('contract §9 a user who was erased after the backup stays erased in a restore', async () => {
  using place = makeBackupFolder()
  const [before, after] = [makeFolder(), makeFolder()]
  await using own = await boot({ dataDir: before })
  const project = await newProject(own)
  const { post, get, request } = project
  let n = 0
  const keyed = () => ({ 'idempotency-key': `key ${n++}` })
  const identify = (user_id: string, aliases: string[], properties?: object) =>
    post('/v1/identify', { user_id, aliases, properties }, keyed())
  const send = (userId: string) => post('/v1/events', { ...EVENT, userId }, keyed())
  const erase = async (userId: string, from = request) =>
    (await from(`/v1/users/${userId}`, { method: 'DELETE' })).body.data
  await identify('carl', ['@carl'])
  await erase('carl')
  for (const [user, alias] of [
    ['zqx-ada', 'zqx-@ada'],
    ['bob', '@bob'],
    ['carl', '@carl2'],
  ] as const) {
    await identify(user, [alias], { about: user })
  }
  await identify('bob', ['zqx-ada', 'zqx-moved'])
  for (const user of ['zqx-ada', 'zqx-@ada', 'zqx-late', 'zqx-moved', '@bob', 'carl'])
    await send(user)
  await backUp(own.databaseUrl, place.file)

  // The erasure also covers an alias that belonged to somebody else at the backup.
  await identify('zqx-ada', ['zqx-late'])
  const at = `/api/projects/${toId('prj', project.id)}/users/zqx-ada/aliases`
  const [{ organization_id: uuid }] = await own.sql<[{ organization_id: string }]>`
    select organization_id from projects where id = ${project.id}
  `
  const admin = await newMember(own, { uuid }, 'admin')
  await admin.post(at, { alias: 'zqx-moved', from: 'bob' })
  const erased = await erase('zqx-ada')
  const erasedFile = toErasedFile(before)
  const list = readFileSync(erasedFile, 'utf8')
  expect([statSync(erasedFile).mode & 0o777, list.includes('zqx-')]).toEqual([0o600, false])
  // Names are appended again where one of them is missing.
  writeFileSync(erasedFile, list + list)

  const databaseUrl = await cloneDatabase()
  const { erased: repeated } = await restore(databaseUrl, place.file, { erasedFile })
  expect(repeated).toEqual({ listed: 1, erased: 1, unknown: 0 })
  await using restored = openSql(databaseUrl)
  const traces = await listTraces(restored, 'zqx-')
  for (const table of ['identities', 'aliases']) expect(traces).not.toContain(table)
  await using again = await boot({ databaseUrl, appSecret: OTHER_SECRET, dataDir: after })
  await until(async () => (await listTraces(again.sql, 'zqx-')).length === 0)
  const v1 = createRequests(again.url, project.key)
  const { items } = (await v1.get('/v1/events')).body.data
  expect(items.map(({ userId }: { userId: string | null }) => userId)).toEqual([
    ...['carl', 'bob'],
    ...[null, null, null, null],
  ])
  expect((await v1.get('/v1/users/@bob')).body.data.properties).toEqual({ about: 'bob' })
  expect((await v1.get('/v1/users/carl')).body.data.aliases).toEqual(['@carl2'])
  expect(await erase('zqx-ada', v1.request)).toEqual(erased)
  // The list of the new installation is complete.
  await until(() => existsSync(toErasedFile(after)))
  const lines = (text: string) =>
    text
      .split('\n')
      .filter(line => line !== '')
      .sort()
  expect(lines(readFileSync(toErasedFile(after), 'utf8'))).toEqual(lines(list))

  // Without the list, the user is back. A list of another installation is noticed.
  const plain = await cloneDatabase()
  const other = join(place.folder, 'other')
  writeFileSync(other, list.replaceAll(/^[0-9a-f-]{36}/gm, crypto.randomUUID()))
  const unlisted = await restore(plain, place.file, { erasedFile: other })
  expect(unlisted.erased).toEqual({ listed: 0, erased: 0, unknown: 4 })
  await using sql = openSql(plain)
  expect(await listTraces(sql, 'zqx-ada')).toContain('identities')
  expect((await get('/v1/users/bob')).status).toBe(200)
})
