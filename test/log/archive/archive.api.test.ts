import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { parquetReadObjects } from 'hyparquet'
import { createFolderStore } from '../../../src/log/archive/folder-store.ts'
import { takeTurns } from '../../../src/log/archive/due.ts'
import type { ArchiveStore } from '../../../src/log/archive/store.ts'
import { EventInput } from '../../../src/log/events/schema.ts'
import { checkArchive } from '../../../src/cli/doctor/archive.ts'
import { toId } from '../../../src/base/ids.ts'
import { registry } from '../../../src/base/metrics.ts'
import { ageEvents } from '../../support/worlds/ageing.ts'
import { newArchiveSettings, readArchive, runArchiveOf } from '../../support/worlds/archive.ts'
import { BUCKET_KEYS, startBucket } from '../../support/servers/bucket.ts'
import { expectExactCounts } from '../../support/counts.ts'
import { lockLog } from '../../support/database-lock.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { findMain } from '../../support/servers/process.ts'
import { APP_SECRET } from '../../support/secret.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'

const settings = newArchiveSettings()
let server: Booted
beforeAll(async () => {
  server = await boot({ archive: settings })
})
afterAll(() => server[Symbol.asyncDispose]())

const run = (store?: ArchiveStore) => runArchiveOf(server, settings, store && { store })
const read = ({ projectId }: TestTenant) => readArchive(settings.place, projectId)
const age = ({ projectId }: TestTenant, seq: number, interval: string) =>
  ageEvents(server.sql, projectId, { seq, interval })

async function listSeqs({ v1 }: TestTenant): Promise<number[]> {
  const { body } = await v1.get('/v1/events?limit=100')
  return body.data.items.map(({ seq }: { seq: number }) => seq).toReversed()
}

async function listArchivedSeqs(tenant: TestTenant): Promise<number[]> {
  const files = await read(tenant)
  return files
    .flatMap(({ events }) => events.map(({ seq }) => Number(seq)))
    .toSorted((one, other) => one - other)
}

test('contract §11 old months move to one file each, with every field as it was', async () => {
  const tenant = await newTenant(server)
  const { send, identify, v1, projectId } = tenant
  const metadata = '{"n":1.10,"big":12345678901234567890,"deep":{"ä":[null,true]}}'
  const body = `{"channelName":"payments","title":"First","source":"shop","userId":"ada@example.com","tags":["a","ß\\"b"],"metadata":${metadata},"icon":"💰","notify":false,"timestamp":"2020-02-03T04:05:06.789Z","description":"\ufeffLine 1\\nLine 2"}`
  expect(Object.keys(JSON.parse(body)).toSorted()).toEqual(
    Object.keys(EventInput.properties).toSorted(),
  )
  const { text } = await v1.request('/v1/events', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
  })
  expect(text).toContain(metadata)
  const first = JSON.parse(text).data
  await identify('ada', ['ada@example.com'])
  const second = await send({ title: 'Second' })
  await age(tenant, 2, '100 days')
  const third = await send({ title: 'Third', tags: [] })
  await age(tenant, 3, '100 days')
  await send({ title: 'New' })

  expect(await run()).toMatchObject({ archived: 3, deleted: 3, problems: [] })
  const files = await read(tenant)
  expect(files.map(({ events }) => events.map(({ title }) => title))).toEqual([
    ['First', 'Second'],
    ['Third'],
  ])
  const [file] = files
  const [row] = file?.events ?? []
  const { createdAt, timestamp, ...rest } = row
  expect(rest).toEqual({
    id: first.id,
    seq: 1n,
    channelId: first.channelId,
    channelName: 'payments',
    title: 'First',
    // This reader removes the byte order mark, which is in the file.
    description: 'Line 1\nLine 2',
    icon: '💰',
    tags: ['a', 'ß"b'],
    metadata,
    userId: 'ada',
    userRef: 'ada@example.com',
    source: 'shop',
    notify: false,
  })
  expect(timestamp).toEqual(new Date('2020-02-03T04:05:06.789Z'))
  const month = createdAt.toISOString().slice(0, 7)
  expect(file?.name).toMatch(
    new RegExp(`^project=${toId('prj', projectId)}/month=${month}/events-[0-9a-f-]{36}\\.parquet$`),
  )
  expect(files[1]?.events[0]).toMatchObject({ id: third.id, tags: [], userId: null, icon: null })
  expect(files[0]?.events[1]).toMatchObject({ id: second.id, description: null })

  expect((await v1.get('/v1/events')).body.data).toMatchObject({
    items: [{ seq: 4 }],
    completeAfter: 3,
  })
  await expectExactCounts(server.sql, projectId)
  expect((await send()).seq).toBe(5)
  expect(await run()).toMatchObject({ archived: 0, deleted: 0 })
})

test('contract §11 a month is whole: nothing is due before its last day is old enough', async () => {
  const tenant = await newTenant(server)
  await tenant.send()
  await age(tenant, 1, '30 days')
  await run()
  expect(await listSeqs(tenant)).toEqual([1])
})

test('contract §11 events with a time in the future stay, and those after them are archived', async () => {
  const tenant = await newTenant(server)
  const { send, projectId } = tenant
  for (const channelName of ['long', 'short', 'long', 'short']) await send({ channelName })
  await age(tenant, 4, '100 days')
  await age(tenant, 2, '-500 days')
  await run()
  expect(await listSeqs(tenant)).toEqual([1, 2])
  expect(await listArchivedSeqs(tenant)).toEqual([3, 4])

  const { channelId } = await send({ channelName: 'short' })
  await tenant.account.patch(`${tenant.path}/channels/${channelId}`, { keepDays: 1 })
  await server.sql`
    update events set created_at = date_trunc('month', now()) - interval '1 day'
    where project_id = ${projectId} and seq = 5
  `
  await run()
  expect(await listSeqs(tenant)).toEqual([1, 2])
  expect(await listArchivedSeqs(tenant)).toEqual([3, 4, 5])
})

test('contract §11 events that a channel does not keep are archived first, and then deleted', async () => {
  const tenant = await newTenant(server)
  const { send, account, path, projectId } = tenant
  for (const channelName of ['short', 'long', 'short']) {
    const { channelId } = await send({ channelName })
    if (channelName === 'short')
      await account.patch(`${path}/channels/${channelId}`, { keepDays: 1 })
  }
  // Both days are in one month.
  await server.sql`
    update events set created_at = date_trunc('month', now()) - interval '1 day' where project_id = ${projectId}
  `
  await run()
  expect(await listSeqs(tenant)).toEqual([2])
  expect(await listArchivedSeqs(tenant)).toEqual([1, 3])

  // The month's file grows.
  await send({ channelName: 'short' })
  await server.sql`
    update events set created_at = date_trunc('month', now()) - interval '1 day' where project_id = ${projectId}
  `
  await run()
  expect(await listSeqs(tenant)).toEqual([2])
  const files = await read(tenant)
  expect(files).toHaveLength(1)
  expect(files[0]?.metadata.row_groups).toHaveLength(2)
  expect(await listArchivedSeqs(tenant)).toEqual([1, 3, 4])
  await expectExactCounts(server.sql, projectId)
})

test('contract §11 a run that ends at any step loses no event and archives none twice', async () => {
  const tenant = await newTenant(server)
  const { send, projectId, v1 } = tenant
  for (let n = 1; n <= 4; n++) await send()
  let failures = 0
  // First, two events make a new file of their month. Then the others join them.
  for (const seq of [2, 4]) {
    await server.sql`
      update events set created_at = now() - interval '100 days' where project_id = ${projectId} and seq <= ${seq}
    `
    for (let step = 1; step < 25; step++) {
      const result = await run(failAt(step, projectId)).catch(() => undefined)
      if (!result || result.problems.length > 0) failures++
      const kept = await listSeqs(tenant)
      const [gone] = await server.sql<[{ n: number }]>`
        select coalesce(sum(deleted), 0)::int as n
        from archive_files
        where project_id = ${projectId} and state = 'current'
      `
      expect(kept.length + gone.n).toBe(4)
    }
    expect(await run()).toMatchObject({ problems: [] })
    expect(await read(tenant)).toHaveLength(1)
  }
  expect(failures).toBeGreaterThan(20)
  expect(await listSeqs(tenant)).toEqual([])
  expect(await listArchivedSeqs(tenant)).toEqual([1, 2, 3, 4])
  const names = readdirSync(settings.place, { recursive: true, encoding: 'utf8' })
  expect(names.filter(name => name.endsWith('.partial'))).toEqual([])
  expect((await v1.get('/v1/events')).body.data.items).toEqual([])
})

test('contract §11 no row is deleted if the file is not what was written', async () => {
  const tenant = await newTenant(server)
  await tenant.send({ title: 'Precious' })
  await age(tenant, 1, '100 days')
  const store = createFolderStore(settings.place)
  const damaging: ArchiveStore = {
    ...store,
    async create(name) {
      const upload = await store.create(name)
      return {
        ...upload,
        write: bytes => upload.write(bytes.map((byte, at) => (at === 30 ? byte ^ 1 : byte))),
      }
    },
  }
  const result = await run(damaging)
  expect(result?.problems).toEqual([expect.stringContaining('Its checksum differs')])
  expect(await listSeqs(tenant)).toEqual([1])
  expect(await read(tenant)).toEqual([])
  const [last] = await server.sql`select problem from archive_runs`
  expect(last?.['problem']).toContain('Its checksum differs')
  expect(await run()).toMatchObject({ archived: 1, problems: [] })
})

test('contract §11 a run that lost its lock keeps the file that another run relies on', async () => {
  const tenant = await newTenant(server)
  await tenant.send()
  await age(tenant, 1, '100 days')
  await run()
  await tenant.send()
  await age(tenant, 2, '100 days')
  const store = createFolderStore(settings.place)
  const result = await run({
    ...store,
    async open(name) {
      const object = await store.open(name)
      const [file] = await server.sql<{ id: string }[]>`
        select id from archive_files where name = ${name} and state = 'writing'
      `
      // The other run deletes the half-written file while this one verifies it.
      if (file) {
        await store.remove(name)
        await server.sql`delete from archive_files where id = ${file.id}`
      }
      return object
    },
  })
  expect(result?.problems).toEqual([expect.stringContaining('Another run has changed the file')])
  expect(await listArchivedSeqs(tenant)).toEqual([1])
  expect(await listSeqs(tenant)).toEqual([2])
  expect(await run()).toMatchObject({ archived: 1, problems: [] })
  expect(await listArchivedSeqs(tenant)).toEqual([1, 2])
})

test('contract §11 a replaced file is deleted last, when the run has deleted the rows', async () => {
  const tenant = await newTenant(server)
  await tenant.send()
  await age(tenant, 1, '100 days')
  await run()
  await tenant.send()
  await age(tenant, 2, '100 days')
  const store = createFolderStore(settings.place)
  const rows: number[] = []
  const [replaced] = await read(tenant)
  await run({
    ...store,
    async remove(name) {
      if (name === replaced?.name) rows.push((await listSeqs(tenant)).length)
      await store.remove(name)
    },
  })
  expect(rows).toEqual([0])
  expect(await listArchivedSeqs(tenant)).toEqual([1, 2])
})

test('contract §11 a file that changed after it was written replaces no row', async () => {
  const tenant = await newTenant(server)
  await tenant.send()
  await age(tenant, 1, '100 days')
  const store = createFolderStore(settings.place)
  let opened = 0
  await run({
    ...store,
    open(name) {
      // The second time, the file was verified and committed.
      if (name.includes('events-') && ++opened === 2) throw new Error('Interrupted')
      return store.open(name)
    },
  })
  const [file] = await read(tenant)
  const path = join(settings.place, file!.name)
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.subarray(0, -1))
  expect((await run())?.problems).toEqual([expect.stringContaining('bytes instead of')])
  expect(await listSeqs(tenant)).toEqual([1])
  writeFileSync(path, bytes)
  expect(await run()).toMatchObject({ deleted: 1, problems: [] })

  await tenant.send()
  await age(tenant, 2, '100 days')
  writeFileSync(
    path,
    bytes.map((byte, at) => (at === 30 ? byte ^ 1 : byte)),
  )
  expect((await run())?.problems).toEqual([expect.stringContaining('has changed since it was')])
  expect(await listSeqs(tenant)).toEqual([2])
  writeFileSync(path, bytes)
  expect(await run()).toMatchObject({ archived: 1, problems: [] })
  expect(await listArchivedSeqs(tenant)).toEqual([1, 2])
})

test('contract §11 an event that a member deletes during a run is in no file', async () => {
  const tenant = await newTenant(server)
  const { send, account, path } = tenant
  const { id } = await send({ title: 'Deleted' })
  await send({ title: 'Kept' })
  await age(tenant, 2, '100 days')
  const store = createFolderStore(settings.place)
  let opened = 0
  const result = await run({
    ...store,
    async open(name) {
      // The second time, the file is verified, and its rows are deleted.
      if (name.includes('events-') && ++opened === 2) await account.delete(`${path}/events/${id}`)
      return store.open(name)
    },
  })
  expect(result).toMatchObject({ archived: 2, deleted: 2, problems: [] })
  expect(await listArchivedSeqs(tenant)).toEqual([2])
})

test('contract §11 rows are deleted before the log is locked, and writers go first', async () => {
  const tenant = await newTenant(server)
  const { projectId, send } = tenant
  await send()
  await age(tenant, 1, '100 days')
  const listFree = () => server.sql`
    select seq from events where project_id = ${projectId} for update skip locked
  `
  const writer = await lockLog(server.sql, projectId)
  const result = run()
  await writer.untilBlocked()
  expect(await listFree()).toHaveLength(0)
  await until(async () => (await listFree()).length > 0)
  // It tries again.
  await writer.untilBlocked()
  await writer.release()
  expect(await result).toMatchObject({ archived: 1, deleted: 1, problems: [] })
  expect(await listSeqs(tenant)).toEqual([])
  await expectExactCounts(server.sql, projectId)
})

test('contract §9 erasure reaches archived events, also of a user known from nothing else', async () => {
  const tenant = await newTenant(server)
  const { send, identify, path, account, projectId } = tenant
  await identify('ada', ['ada@example.com'])
  for (const userId of ['ada', 'ada@example.com', 'bob', 'carol']) await send({ userId })
  await age(tenant, 4, '100 days')
  await run()
  const users = async () =>
    (await read(tenant)).flatMap(({ events }) =>
      events.map(({ userId, userRef }) => [userId, userRef]),
    )
  const carol = ['carol', 'carol']
  expect(await users()).toEqual([['ada', 'ada'], ['ada', 'ada@example.com'], ['bob', 'bob'], carol])

  const erase = (userId: string) => account.delete(`${path}/users/${userId}`)
  expect((await erase('ada')).body.data).toMatchObject({ userId: 'ada', events: 0 })
  expect((await erase('bob')).status).toBe(200)
  // A later user can have the same name.
  await send({ userId: 'bob' })
  await until(async () => {
    const rows = await server.sql`select from erasures where project_id = ${projectId}`
    return rows.length === 0
  })
  expect(await run()).toMatchObject({ erased: 3, problems: [] })
  expect(await users()).toEqual([[null, null], [null, null], [null, null], carol])
  // The erasure reports them, and is not begun again.
  const again = (await erase('bob')).body.data
  expect(again).toMatchObject({ userId: 'bob', events: expect.any(Number) })
  const [{ n }] = await server.sql<[{ n: number }]>`
    select sum(events)::int as n from erased_users where project_id = ${projectId}
  `
  expect(n).toBe(4)
  expect(await run()).toMatchObject({ erased: 0 })
  expect((await erase('ada@example.com')).status).toBe(200)
})

test('contract §9 an erasure counts an event once that is both in a file and in a row', async () => {
  const tenant = await newTenant(server)
  const { send, identify, path, account, projectId } = tenant
  await identify('ada', ['ada@example.com'])
  for (const userId of ['ada', 'bob', 'ada@example.com']) await send({ userId })
  await age(tenant, 3, '100 days')
  const store = createFolderStore(settings.place)
  let opened = 0
  const result = await run({
    ...store,
    async open(name) {
      // The second time, the file is verified, and its rows are deleted.
      if (name.includes('events-') && ++opened === 2) {
        expect((await account.delete(`${path}/users/ada`)).status).toBe(200)
        await until(async () => {
          const rows = await server.sql`select from erasures where project_id = ${projectId}`
          return rows.length === 0
        })
      }
      return store.open(name)
    },
  })
  expect(result).toMatchObject({ archived: 3, deleted: 3, problems: [] })
  const count = async () => {
    const [{ n }] = await server.sql<[{ n: number }]>`
      select sum(events)::int as n from erased_users where project_id = ${projectId}
    `
    return n
  }
  expect(await count()).toBe(2)
  expect(await run()).toMatchObject({ erased: 2, problems: [] })
  const users = (await read(tenant)).flatMap(({ events }) => events.map(({ userRef }) => userRef))
  expect(users).toEqual([null, 'bob', null])
  expect(await count()).toBe(2)
})

test('contract §11 the files of a deleted project are deleted', async () => {
  const tenant = await newTenant(server)
  await tenant.send()
  await age(tenant, 1, '100 days')
  await run()
  expect(await read(tenant)).toHaveLength(1)
  await server.sql`update projects set deleted_at = now() where id = ${tenant.projectId}`
  await run()
  expect(await read(tenant)).toEqual([])
})

test('contract §11 a folder without the marker, or with that of another installation, is not used', async () => {
  const marker = join(settings.place, 'tidings-archive.json')
  renameSync(marker, `${marker}.away`)
  await expect(run()).rejects.toThrow('Check that the folder is mounted')
  writeFileSync(marker, '{"archive":"00000000-0000-0000-0000-000000000000"}')
  await expect(run()).rejects.toThrow('the archive of another installation')
  // The run during the backup wrote a file. Later ones may have deleted the one that it replaced.
  const written = 'project=prj_1/month=2026-01/events-1.parquet'
  mkdirSync(join(settings.place, dirname(written)), { recursive: true })
  writeFileSync(join(settings.place, written), '')
  await server.sql`
    insert into archive_files (id, project_id, month, name, state, checked_at, written_at)
    values (gen_random_uuid(), gen_random_uuid(), '2026-01-01', ${written}, 'writing', now(), now())
  `
  // An installation that was restored elsewhere takes it over on request alone.
  expect(await runArchiveOf(server, settings, { isAdopting: true })).toMatchObject({ problems: [] })
  expect(existsSync(join(settings.place, written))).toBe(true)
  expect(readFileSync(marker)).toEqual(readFileSync(`${marker}.away`))
})

test('contract §11 a missing file is reported, and used again when it is back', async () => {
  const tenant = await newTenant(server)
  await tenant.send({ userId: 'ada' })
  await age(tenant, 1, '100 days')
  await run()
  const [file] = await read(tenant)
  const path = join(settings.place, file!.name)
  renameSync(path, `${path}.away`)
  await tenant.account.delete(`${tenant.path}/users/ada`)
  expect(await run()).toMatchObject({ erased: 0, problems: [] })
  expect(await checkArchive(server.sql, { archive: settings })).toMatchObject([
    { state: 'warning', message: expect.stringContaining('1 files are missing') },
  ])
  renameSync(`${path}.away`, path)
  expect(await run()).toMatchObject({ erased: 1 })
  expect((await read(tenant)).map(({ events }) => events)).toMatchObject([[{ userId: null }]])
  expect(await checkArchive(server.sql, { archive: settings })).toMatchObject([{ state: 'ok' }])
})

test('contract §11 the server runs the archive by itself, also into a bucket', async () => {
  await using bucket = startBucket()
  const databaseUrl = await cloneDatabase()
  const command = [
    'env',
    `DATABASE_URL=${databaseUrl}`,
    `APP_SECRET=${APP_SECRET.toString('hex')}`,
    `ARCHIVE_S3_URL=${bucket.url}`,
    `ARCHIVE_S3_ACCESS_KEY_ID=${BUCKET_KEYS.accessKeyId}`,
    `ARCHIVE_S3_SECRET_ACCESS_KEY=${BUCKET_KEYS.secretAccessKey}`,
    ...['ARCHIVE_AFTER_DAYS=30', process.execPath, findMain()],
  ] as const
  const archive = { ...settings, place: { url: bucket.url, region: 'us-east-1', ...BUCKET_KEYS } }
  {
    await using first = await boot({ databaseUrl, archive })
    const tenant = await newTenant(first)
    await tenant.send({ title: 'Old' })
    await ageEvents(first.sql, tenant.projectId, { seq: 1, interval: '100 days' })
    expect(await checkArchive(first.sql, { archive })).toMatchObject([{ state: 'warning' }])
  }
  await using second = await boot({ databaseUrl, archive }, { selfCommand: command })
  await until(async () => {
    const [last] = await second.sql`select from archive_runs where succeeded_at is not null`
    return last !== undefined
  })
  const [marker, file = ''] = [...bucket.objects.keys()].toSorted().toReversed()
  expect(marker).toBe('some prefix/tidings-archive.json')
  const { buffer, byteOffset, byteLength } = bucket.objects.get(file)!
  const events = await parquetReadObjects({
    file: buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer,
  })
  expect(events).toMatchObject([{ title: 'Old', seq: 1n }])
  expect(await checkArchive(second.sql, { archive })).toMatchObject([
    { state: 'ok', message: expect.stringContaining('1 events are in 1 files') },
  ])
  const name = 'tidings_archive_events'
  await until(async () => (await registry.getSingleMetric(name)?.get())?.values[0]?.value === 1)
})

test('contract §11 organizations take turns, one month at a time', () => {
  const due = ['a1', 'a2', 'a3', 'b1', 'c1', 'c2'].map(projectId => ({
    organizationId: projectId.charAt(0),
    projectId,
    month: '2026-01',
    isWhole: true,
  }))
  expect(takeTurns(due).map(({ projectId }) => projectId)).toEqual([
    ...['a1', 'b1', 'c1', 'a2', 'c2', 'a3'],
  ])
})

/** A store that fails at the given operation on a project's files, and at every later one. */
function failAt(step: number, projectId: string): ArchiveStore {
  const store = createFolderStore(settings.place)
  let steps = 0
  const count = (name: string) => {
    if (name.includes(toId('prj', projectId)) && ++steps >= step)
      throw new Error('The disk is gone')
  }
  return {
    location: store.location,
    async create(name) {
      count(name)
      const upload = await store.create(name)
      return {
        async write(bytes) {
          count(name)
          await upload.write(bytes)
        },
        async finish() {
          await upload.finish()
          count(name)
        },
        abort: upload.abort,
      }
    },
    async open(name) {
      count(name)
      const object = await store.open(name)
      return (
        object && {
          ...object,
          async read(start, end) {
            count(name)
            return object.read(start, end)
          },
        }
      )
    },
    async remove(name) {
      count(name)
      await store.remove(name)
    },
  }
}
