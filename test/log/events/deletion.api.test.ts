import { afterAll, beforeAll, expect, test } from 'bun:test'
import { countSeconds } from '../../support/until.ts'
import { purgeDeleted } from '../../../src/log/events/retention.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { ageDeletion } from '../../support/worlds/ageing.ts'
import { expectFailure } from '../../support/answers.ts'
import { expectExactCounts } from '../../support/counts.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { insertWebhook } from '../../support/worlds/webhooks.ts'

const server = withSharedServer()
let pool: Pool
beforeAll(() => {
  pool = createPool(server.databaseUrl, { name: 'test purge', max: 4 })
})
afterAll(() => pool.end())

test('contract §11 a deleted event is gone for every reader at once, and a restore brings it back unchanged', async () => {
  const { account, path, send, v1, projectId } = await newTenant(server)
  const event = await send({ userId: 'ada', tags: ['x'], metadata: { n: 1 } })
  await send({ title: 'stays' })
  const readAll = async () => [
    (await v1.get(`/v1/events/${event.id}`)).body.data,
    (await v1.get('/v1/events')).body.data,
    (await account.get(`${path}/channels`)).body.data,
    (await account.get(`${path}/users/ada`)).body.data,
  ]
  const before = await readAll()

  const passed = countSeconds()
  const deleted = await account.delete(`${path}/events/${event.id}`)
  expect(deleted.status).toBe(200)
  const [row] = await server.sql<[{ left_s: number }]>`
    select extract(epoch from ${deleted.body.data.undoUntil}::timestamptz - now())::float8 as left_s
  `
  expect(row.left_s).toBeWithin(5 - passed(), 5)
  expectFailure(await v1.get(`/v1/events/${event.id}`), 404, 'not_found')
  expect((await v1.get('/v1/events')).body.data.items).toMatchObject([{ title: 'stays' }])
  expect((await v1.get('/v1/events?userId=ada')).body.data.items).toEqual([])
  expectFailure(await account.get(`${path}/users/ada`), 404, 'not_found')
  const [channel] = (await account.get(`${path}/channels`)).body.data.items
  expect([channel.unread, channel.today.at(-1) + channel.today.at(-2)]).toEqual([1, 1])

  const restored = await account.post(`${path}/events/${event.id}/restore`)
  expect([restored.status, restored.body.data]).toEqual([200, { id: event.id, seq: event.seq }])
  expect(await readAll()).toEqual(before)
  await expectExactCounts(server.sql, projectId)
})

test('contract §4, §11 after its undo time a deletion is final, and the seq is never used again', async () => {
  const { account, path, send, projectId } = await newTenant(server)
  const [open, late] = [await send(), await send()]
  await account.delete(`${path}/events/${late.id}`)
  await ageDeletion(server.sql, projectId, '11 seconds')
  await account.delete(`${path}/events/${open.id}`)
  expectFailure(await account.post(`${path}/events/${late.id}/restore`), 404, 'not_found')
  await purgeDeleted(pool)
  expect(await listSeqs(projectId)).toEqual([1])
  expectFailure(await account.post(`${path}/events/${late.id}/restore`), 404, 'not_found')
  expect((await account.post(`${path}/events/${open.id}/restore`)).status).toBe(200)
  expect((await send()).seq).toBe(3)
  await expectExactCounts(server.sql, projectId)
})

test('contract §5 a replay of a deleted event has none of its content, and makes no new one', async () => {
  const { account, path, v1, projectId } = await newTenant(server)
  const post = () =>
    v1.post(
      '/v1/events',
      {
        ...{ channelName: 'c', title: 'zqx', description: 'zqx', tags: ['zqx'], userId: 'zqx' },
        ...{ icon: '💰', metadata: { n: 'zqx' }, source: 'shop', notify: false },
      },
      { 'idempotency-key': 'k' },
    )
  const first = await post()
  await account.delete(`${path}/events/${first.body.data.id}`)
  const empty = {
    ...first.body,
    data: {
      ...first.body.data,
      ...{ title: '', description: null, icon: null, tags: [], metadata: {}, userId: null },
    },
  }
  const expectEmpty = async () => {
    const replay = await post()
    expect([replay.status, replay.headers.get('x-idempotent-replay')]).toEqual([201, 'true'])
    expect(replay.body).toEqual(empty)
  }
  await insertWebhook(server, projectId, { eventId: first.body.data.id, mark: 'zqx' })
  await expectEmpty()
  await account.post(`${path}/events/${first.body.data.id}/restore`)
  expect((await post()).text).toBe(first.text)
  await account.delete(`${path}/events/${first.body.data.id}`)
  await ageDeletion(server.sql, projectId, '1 minute')
  await purgeDeleted(pool)
  await expectEmpty()
  expect(await listSeqs(projectId)).toEqual([])
  const stored = await server.sql`
    select from idempotency_keys k where k.project_id = ${projectId} and strpos(k::text, 'zqx') > 0
    union all
    select from webhook_attempts a where a.project_id = ${projectId} and strpos(a::text, 'zqx') > 0
  `
  expect(stored).toHaveLength(0)
})

test('contract §11 one of many concurrent deletions takes effect, and all concurrent undos succeed', async () => {
  const { account, path, send, projectId } = await newTenant(server)
  const { id } = await send()
  const many = Array.from({ length: 12 })
  const deletions = await Promise.all(many.map(() => account.delete(`${path}/events/${id}`)))
  expect(deletions.map(({ status }) => status).sort()).toEqual([200, ...new Array(11).fill(404)])
  const undone = await Promise.all(many.map(() => account.post(`${path}/events/${id}/restore`)))
  expect(undone.map(({ status }) => status)).toEqual(new Array(12).fill(200))
  await expectExactCounts(server.sql, projectId)
  const actions = await server.sql<{ action: string }[]>`
    select action from audit_log where project_id = ${projectId} and actor = 'account' order by id
  `
  expect(actions.map(({ action }) => action)).toEqual(['event.deleted', 'event.restored'])
})

test('contract §11 an undo that races the purge restores the event or is 404', async () => {
  const { account, path, send, projectId } = await newTenant(server)
  const events = await Promise.all(Array.from({ length: 10 }, () => send()))
  await Promise.all(events.map(({ id }) => account.delete(`${path}/events/${id}`)))
  // One moment before the undo time ends.
  await server.sql`
    update events set deleted_at = clock_timestamp() - interval '9990 ms' where project_id = ${projectId}
  `
  const [statuses] = await Promise.all([
    Promise.all(events.map(({ id }) => account.post(`${path}/events/${id}/restore`))),
    ...Array.from({ length: 20 }, () => purgeDeleted(pool)),
  ])
  await ageDeletion(server.sql, projectId, '1 minute')
  await purgeDeleted(pool)
  const back = events.filter((_, index) => statuses[index]?.status === 200)
  expect(await listSeqs(projectId)).toEqual(back.map(({ seq }) => seq).sort((a, b) => a - b))
  await expectExactCounts(server.sql, projectId)
})

async function listSeqs(projectId: string): Promise<number[]> {
  const rows = await server.sql<{ seq: string }[]>`
    select seq from events where project_id = ${projectId} order by seq
  `
  return rows.map(({ seq }) => Number(seq))
}
