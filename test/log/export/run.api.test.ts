import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parquetReadObjects } from 'hyparquet'
import { toId } from '../../../src/base/ids.ts'
import { checkExport } from '../../../src/cli/doctor/copies.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { EventInput } from '../../../src/log/events/schema.ts'
import { expireEvents } from '../../../src/log/events/retention.ts'
import type { Format } from '../../../src/log/export/columns.ts'
import { ndjson } from '../../../src/log/export/ndjson.ts'
import { parquet } from '../../../src/log/export/parquet.ts'
import { runExport, type ExportResult } from '../../../src/log/export/run.ts'
import { expectExactCounts } from '../../support/counts.ts'
import { makeFolder } from '../../support/scratch.ts'
import { withServer } from '../../support/servers/server.ts'
import { ageEvents } from '../../support/worlds/ageing.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

const server = withServer()
let pool: Pool
beforeAll(() => {
  pool = createPool(server.databaseUrl, { name: 'test exports', max: 2 })
})
afterAll(() => pool.end())

const FORMATS = { ndjson, parquet }

/** A folder of exports, with a function that exports all projects of the server into it. */
function newExports(format: Format = ndjson) {
  const folder = makeFolder()
  return {
    folder,
    run: (changed: Partial<Format> = {}): Promise<ExportResult> =>
      runExport({
        sql: server.sql,
        folder,
        format: { ...format, ...changed },
        // The last events can be of the same millisecond.
        before: new Date(Date.now() + 60_000),
      }),
    /** Reads the files of a project without code of the program, by their names. */
    async read({ projectId }: TestTenant): Promise<Record<string, any[]>> {
      const project = toId('prj', projectId)
      const names = readdirSync(folder).includes(project) ? readdirSync(join(folder, project)) : []
      const files = names.toSorted().map(async name => {
        const bytes = readFileSync(join(folder, project, name))
        if (!name.endsWith('.parquet')) return [name, toLines(bytes).map(line => JSON.parse(line))]
        const { buffer, byteOffset, byteLength } = bytes
        const file = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer
        return [name, await parquetReadObjects({ file })]
      })
      return Object.fromEntries(await Promise.all(files))
    },
  }
}

function toLines(bytes: Uint8Array): string[] {
  return gunzipSync(bytes).toString().trimEnd().split('\n')
}

const age = ({ projectId }: TestTenant, seq: number, interval: string) =>
  ageEvents(server.sql, projectId, { seq, interval })
const remove = ({ v1 }: TestTenant, userId: string) =>
  v1.request(`/v1/users/${userId}`, { method: 'DELETE' })
const toSeqs = (files: Record<string, any[]>) =>
  Object.values(files).map(events => events.map(({ seq }) => Number(seq)))

test.each(Object.entries(FORMATS))(
  'contract §11 an export as %s has a file for each month, with every field as it was',
  async (_, format) => {
    const exported = newExports(format)
    const tenant = await newTenant(server)
    const { send, identify, v1, projectId, account, path } = tenant
    const metadata = '{"n":1.10,"big":12345678901234567890,"deep":{"ä":[null,true]}}'
    const body = `{"channelName":"payments","title":"First","source":"shop","userId":"ada@example.com","tags":["a","ß\\"b"],"metadata":${metadata},"icon":"💰","notify":false,"level":"high","url":"https://example.com/1","thread":"a","state":"firing","timestamp":"2020-02-03T04:05:06.789Z","description":"\ufeffLine 1\\nLine 2"}`
    expect(Object.keys(JSON.parse(body)).toSorted()).toEqual(
      Object.keys(EventInput.properties)
        // A synonym of userId.
        .filter(name => name !== 'user_id')
        .toSorted(),
    )
    const headers = { 'content-type': 'application/json' }
    const { text } = await v1.request('/v1/events', { method: 'POST', body, headers })
    const first = JSON.parse(text).data
    await identify('ada', ['ada@example.com'])
    const deleted = await send({ title: 'Deleted' })
    await send({ title: 'Second' })
    await age(tenant, 3, '100 days')
    await send({ title: 'Third', tags: [] })
    await age(tenant, 4, '100 days')
    await account.delete(`${path}/events/${deleted.id}`)
    // Nobody can restore it any more.
    await server.sql`
      update events set deleted_at = now() - interval '1 minute'
      where project_id = ${projectId} and deleted_at is not null
    `
    await exported.run()
    const files = await exported.read(tenant)
    expect(toSeqs(files)).toEqual([[1, 3], [4]])
    const [name = '', other = ''] = Object.keys(files)
    const row = files[name]?.[0]
    expect(name).toBe(`${new Date(row.createdAt).toISOString().slice(0, 7)}.${format.extension}`)
    expect({ ...row, seq: Number(row.seq), timestamp: new Date(row.timestamp) }).toEqual({
      ...{ id: first.id, seq: 1, channelId: first.channelId, channelName: 'payments' },
      ...{ title: 'First', icon: '💰', tags: ['a', 'ß"b'], source: 'shop', notify: false },
      // The reader of Parquet removes the byte order mark, which is in the file.
      description: format === parquet ? 'Line 1\nLine 2' : '\ufeffLine 1\nLine 2',
      metadata: format === parquet ? metadata : JSON.parse(metadata),
      ...{ userId: 'ada', userRef: 'ada@example.com' },
      ...{ level: 'high', url: 'https://example.com/1' },
      ...{ thread: 'a', state: 'firing', threadSeq: row.seq },
      timestamp: new Date('2020-02-03T04:05:06.789Z'),
      createdAt: row.createdAt,
    })
    if (format === ndjson) {
      const [line] = toLines(readFileSync(join(exported.folder, toId('prj', projectId), name)))
      expect(line).toContain(`"metadata":${metadata},`)
    }
    expect(files[other]?.[0]).toMatchObject({
      ...{ tags: [], userId: null, icon: null, level: 'normal', url: null },
      ...{ thread: null, state: null, threadSeq: null },
    })

    // The next export continues.
    expect(await exported.run()).toMatchObject({ problems: [] })
    expect(await exported.read(tenant)).toEqual(files)
    await send({ title: 'Fourth' })
    await exported.run()
    expect(toSeqs(await exported.read(tenant)).flat()).toEqual([1, 3, 4, 5])
  },
)

test('contract §11 an export that fails at any step records no file, and the next one is complete', async () => {
  const exported = newExports()
  const tenant = await newTenant(server)
  for (let n = 1; n <= 3; n++) await tenant.send()
  const failing: Partial<Format>[] = [
    { write: () => Promise.reject(new Error('No space left')) },
    {
      write: async (path, pages) => (
        await ndjson.write(path, pages),
        Promise.reject(new Error('Full'))
      ),
    },
    { read: () => Promise.reject(new Error('Cannot be read')) },
    { read: async path => ({ ...(await ndjson.read(path)), sha256: '' }) },
    { read: async path => ({ ...(await ndjson.read(path)), events: 2 }) },
  ]
  for (const changed of failing) {
    const { problems } = await exported.run(changed)
    expect(problems).toContainEqual(expect.stringContaining(toId('prj', tenant.projectId)))
    expect(await exported.read(tenant)).toEqual({})
  }
  expect(await exported.run()).toMatchObject({ problems: [] })
  expect(toSeqs(await exported.read(tenant))).toEqual([[1, 2, 3]])

  // A file that was not recorded stays, because it can be the only copy of its events.
  await server.sql`delete from exports where project_id = ${tenant.projectId}`
  await exported.run()
  expect(Object.keys(await exported.read(tenant))).toEqual([
    expect.stringMatching(/^\d{4}-\d\d-2\.ndjson\.gz$/),
    expect.stringMatching(/^\d{4}-\d\d\.ndjson\.gz$/),
  ])
})

test('contract §11 retention that needs exports deletes exported events alone', async () => {
  const exported = newExports()
  const tenant = await newTenant(server)
  const { send, account, v1, projectId, path } = tenant
  const { channelId } = await send({ channelName: 'short' })
  await send({ channelName: 'long' })
  await account.patch(`${path}/channels/${channelId}`, { keepDays: 1 })
  await age(tenant, 2, '100 days')
  const expire = () =>
    expireEvents(pool, { after: undefined, isMore: false, hasFailed: false }, { needsExport: true })
  const listSeqs = async () =>
    (await v1.get('/v1/events')).body.data.items.map(({ seq }: { seq: number }) => seq)
  const check = () => checkExport(server.sql, { retentionNeedsExport: true })
  await expire()
  expect(await listSeqs()).toEqual([2, 1])
  expect(await check()).toMatchObject([{ state: 'warning' }])
  await exported.run()
  await send({ channelName: 'short' })
  await server.sql`
    update events set created_at = now() - interval '90 days' where project_id = ${projectId} and seq = 3
  `
  await expire()
  expect(await listSeqs()).toEqual([3, 2])
  await exported.run()
  await expire()
  expect(await listSeqs()).toEqual([2])
  expect(
    toSeqs(await exported.read(tenant))
      .flat()
      .toSorted(),
  ).toEqual([1, 2, 3])
  expect(await check()).toMatchObject([{ state: 'ok' }])
  await expectExactCounts(server.sql, projectId)
})

test('contract §11 an erasure names the months whose files can have the user', async () => {
  const exported = newExports()
  const tenant = await newTenant(server)
  const { send, identify, projectId, account, path } = tenant
  await identify('ada', ['ada@example.com'])
  await send({ userId: 'bob' })
  await send({ userId: 'ada@example.com' })
  // The file of that month has the alias.
  await account.delete(`${path}/users/ada/aliases/ada@example.com`)
  await age(tenant, 2, '100 days')
  await send({ userId: 'bob' })
  await age(tenant, 3, '100 days')
  await send({ userId: 'ada' })
  await send({ userId: 'eve' })
  await exported.run()
  const [first = ''] = Object.keys(await exported.read(tenant)).map(name => name.slice(0, 7))
  await send({ userId: 'new' })
  const erase = async (userId: string) => (await remove(tenant, userId)).body.data
  expect(await erase('new')).not.toHaveProperty('exportedMonths')
  const [row] = await server.sql<[{ months: string[] }]>`
    select to_json(array_agg(to_char(month, 'YYYY-MM') order by month)) as months
    from exports where project_id = ${projectId}
  `
  expect(row.months).toHaveLength(3)
  expect(await erase('ada')).toMatchObject({ exportedMonths: [first, row.months[2]] })
  // Repeated, it has the same months.
  expect(await erase('ada')).toMatchObject({ exportedMonths: [first, row.months[2]] })
  // So does an erasure that a restore repeats.
  const repeated = server.sql.begin(async tx => {
    const id = 'a0000000-0000-4000-8000-000000000000'
    await tx`insert into erased_users (id, project_id, erased_at) values (${id}, ${projectId}, now())`
    await tx`select repeat_erasure(${projectId}, ${id}, 'eve', array['eve'])`
    const [erased] = await tx<[{ months: string[] }]>`
      select to_json(exported_months) as months from erased_users where id = ${id}
    `
    throw new Error(erased.months.join())
  })
  await expect(repeated).rejects.toThrow(row.months[2])

  // Nothing tells whose the deleted events were.
  await server.sql`update projects set keep_days = 150 where id = ${projectId}`
  await expireEvents(
    pool,
    { after: undefined, isMore: false, hasFailed: false },
    { needsExport: true },
  )
  expect(await erase('eve')).toMatchObject({ exportedMonths: [first, row.months[2]] })
})

test('contract §11 an erasure names the months of which a member has deleted events', async () => {
  const exported = newExports()
  const tenant = await newTenant(server)
  const { send, account, path, projectId } = tenant
  const ids: string[] = []
  for (let n = 0; n < 2; n++) ids.push((await send({ userId: 'ada' })).id)
  await age(tenant, 1, '100 days')
  const deleteEvent = async (id = '') => {
    await account.delete(`${path}/events/${id}`)
    await server.sql`select purge_events(${projectId}, now() + interval '1 minute', 10)`
  }
  // One is deleted while its file is written, and the other afterwards.
  await exported.run({
    async write(file, pages) {
      const written = await ndjson.write(file, pages)
      if (file.includes(toId('prj', projectId)) && ids.length === 2) await deleteEvent(ids.shift())
      return written
    },
  })
  await deleteEvent(ids.shift())
  await send({ userId: 'ada' })
  const months = Object.keys(await exported.read(tenant)).map(name => name.slice(0, 7))
  expect(months).toHaveLength(2)
  expect((await remove(tenant, 'ada')).body.data).toMatchObject({ exportedMonths: months })
})

test('contract §11 a user who is erased while a file is written is not in it', async () => {
  const exported = newExports()
  const tenant = await newTenant(server)
  await tenant.send({ userId: 'ada' })
  // An erasure of a time when the clock was ahead.
  await server.sql`
    insert into erased_users (id, project_id, erased_at)
    values (gen_random_uuid(), ${tenant.projectId}, now() + interval '1 year')
  `
  let erased = false
  await exported.run({
    async write(path, pages) {
      const written = await ndjson.write(path, pages)
      if (!erased && path.includes(toId('prj', tenant.projectId))) {
        erased = true
        expect((await remove(tenant, 'ada')).status).toBe(200)
      }
      return written
    },
  })
  const [events] = Object.values(await exported.read(tenant))
  expect(events).toMatchObject([{ seq: 1, userId: null, userRef: null }])
})

test('contract §11 an event is exported that a member can still restore', async () => {
  const exported = newExports()
  const tenant = await newTenant(server)
  const { send, account, path, projectId } = tenant
  const { id } = await send()
  await account.delete(`${path}/events/${id}`)
  await server.sql`
    update events set deleted_at = now() + interval '1 minute' where project_id = ${projectId}
  `
  await exported.run()
  expect(toSeqs(await exported.read(tenant))).toEqual([[1]])
})

test('contract §11 clocks that jumped leave no event out', async () => {
  const exported = newExports()
  const tenant = await newTenant(server)
  for (let n = 1; n <= 4; n++) await tenant.send()
  await age(tenant, 4, '100 days')
  // The second event came after the clock was set back.
  await age(tenant, 2, '-31 days')
  await age(tenant, 1, '62 days')
  await exported.run()
  expect(toSeqs(await exported.read(tenant)).flat()).toEqual([1, 2, 3, 4])

  await tenant.send()
  await tenant.send()
  await server.sql`
    update events set created_at = now() + interval '3 days'
    where project_id = ${tenant.projectId} and seq = 5
  `
  await exported.run()
  expect(toSeqs(await exported.read(tenant)).flat()).toEqual([1, 2, 3, 4])
})
