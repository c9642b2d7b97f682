import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Pool } from '../../../src/database/pool.ts'
import { completeErasedFile } from '../../../src/log/identities/erased-file.ts'
import type { ErasureKey } from '../../../src/log/identities/erased-users.ts'
import { expectFailure } from '../../support/answers.ts'
import { makeFolder } from '../../support/scratch.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { listTraces } from '../../support/traces.ts'
import { countSeconds } from '../../support/until.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { createRequests, newProject } from '../../support/worlds/project.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

test('contract §9 erasure leaves no user_id or alias of the user in any table', async () => {
  const { account, path, identify, send, v1, projectId } = await newTenant(server)
  const keyed = (n: number) => ({ 'idempotency-key': `key ${n}` })
  await identify('other-user')
  await v1.post(
    '/v1/identify',
    { user_id: 'other-user', aliases: ['zqx-moved', 'stays'] },
    keyed(1),
  )
  const { id } = await identify('zqx-user', ['zqx-alias', 'zqx-gone'], { email: 'zqx-property' })
  await v1.post('/v1/identify', { user_id: 'zqx-user', aliases: ['zqx-late'] }, keyed(2))
  await v1.post('/v1/identify', { user_id: 'other-user', aliases: ['zqx-alias'] }, keyed(3))
  for (const [n, userId] of [
    'zqx-user',
    'zqx-alias',
    'zqx-moved',
    'zqx-late',
    'zqx-gone',
  ].entries()) {
    await send({ userId }, keyed(10 + n))
  }
  const kept = await send({ userId: 'stays' })
  const hidden = await send({ userId: 'zqx-user' })
  await account.delete(`${path}/events/${hidden.id}`)
  const at = (userId: string) => `${path}/users/${userId}/aliases`
  // An alias from another user, one that moved away and back, and one that was removed.
  await account.post(at('zqx-user'), { alias: 'zqx-moved', from: 'other-user' })
  await account.post(at('other-user'), { alias: 'zqx-late', from: 'zqx-user' })
  await account.post(at('zqx-user'), { alias: 'zqx-late', from: 'other-user' })
  await account.post(at('zqx-user'), { alias: 'stays', from: 'other-user' })
  await account.post(at('other-user'), { alias: 'stays', from: 'zqx-user' })
  await account.delete(`${at('zqx-user')}/zqx-gone`)
  expect((await listTraces(server.sql, 'zqx-')).length).toBeGreaterThan(3)

  const erased = await account.delete(`${path}/users/zqx-user`)
  expect([erased.status, erased.body.data]).toEqual([
    200,
    { userId: 'zqx-user', events: 6, erasedAt: expect.any(String), erasedBy: null },
  ])
  expect(await listTraces(server.sql, 'zqx-')).toEqual([])
  expectFailure(await v1.get('/v1/users/zqx-user'), 404, 'not_found')
  expect((await v1.get(`/v1/events/${kept.id}`)).body.data.userId).toBe('other-user')
  const [entry] = await server.sql<{ target: string; details: object }[]>`
    select target, details from audit_log where project_id = ${projectId} and action = 'user.erased'
  `
  expect(entry as object).toEqual({ target: id, details: { events: 6 } })

  // The other user's history stays, without the name of the erased user.
  const changes = (await account.get(`${at('other-user')}/history`)).body.data.items
  expect(changes).toMatchObject([
    { alias: 'stays', change: 'moved from', other: null },
    { alias: 'stays', change: 'moved to', other: null },
    { alias: 'stays', change: 'added' },
  ])
  const replay = await v1.post(
    '/v1/identify',
    { user_id: 'other-user', aliases: ['zqx-moved', 'stays'] },
    keyed(1),
  )
  expect(replay.headers.get('x-idempotent-replay')).toBe('true')
  expect(replay.body.data).toMatchObject({ userId: 'other-user', aliases: { created: [] } })
  expect((await account.post(`${path}/events/${hidden.id}/restore`)).status).toBe(200)
  expect((await v1.get(`/v1/events/${hidden.id}`)).body.data.userId).toBeNull()
})

test('contract §9 erasure empties the stored answers to events of the user, which still replay', async () => {
  const tenant = await newTenant(server)
  const { identify, v1 } = tenant
  const quoted = `a"d\\a","userId":"bob`
  const content = {
    channelName: '"userId":"ada"',
    title: `"userId":${JSON.stringify(quoted)}`,
    metadata: { userId: quoted },
  }
  const post = (userId: string, key: string) =>
    v1.post('/v1/events', { ...content, userId }, { 'idempotency-key': key })
  await identify(quoted, ['@ada'])
  const early = await post('late@example.com', 'late')
  await identify(quoted, ['late@example.com'])
  const sent = [
    [await post(quoted, 'own'), 'own', quoted],
    [await post('@ada', 'alias'), 'alias', '@ada'],
    [early, 'late', 'late@example.com'],
  ] as const
  const other = await post('bob', 'other')

  expect((await erase(tenant, quoted)).body.data.events).toBe(3)
  for (const [first, key, userId] of sent) {
    const replay = await post(userId, key)
    expect(replay.headers.get('x-idempotent-replay')).toBe('true')
    expect(replay.body).toEqual({
      ...first.body,
      data: { ...first.body.data, userId: null, title: '', metadata: {} },
    })
  }
  expect((await post('bob', 'other')).text).toBe(other.text)
})

test('contract §9 erasure empties the stored answer to an identify', async () => {
  const tenant = await newTenant(server)
  const body = { user_id: 'ada', properties: { city: 'zqy London' }, aliases: ['@ada', 'ada'] }
  const identify = () => tenant.v1.post('/v1/identify', body, { 'idempotency-key': 'k' })
  const first = await identify()
  await erase(tenant, 'ada')
  const replay = await identify()
  expect([replay.status, replay.headers.get('x-idempotent-replay')]).toEqual([200, 'true'])
  expect(replay.body).toEqual({
    ...first.body,
    data: { ...first.body.data, userId: null, properties: {}, aliases: { created: [] } },
  })
  expect(await listTraces(server.sql, 'zqy London')).toEqual([])
})

test('the database is not asked while the disk of the list is slow', async () => {
  const file = join(makeFolder(), 'erased-users')
  spawnSync('mkfifo', [file])
  let asked = 0
  const pool = { run: () => Promise.resolve(Array(asked++ * 0)) } as unknown as Pool
  const completing = completeErasedFile(pool, { id: '' } as ErasureKey, file)
  // A writer opens it once there is a reader.
  const writer = await open(file, 'w')
  expect(asked).toBe(0)
  await writer.close()
  await completing
  expect(asked).toBe(1)
})

test('contract §9 a repeated erasure says when and by which key the user was erased', async () => {
  const tenant = await newTenant(server)
  const { projectId, identify, send } = tenant
  const scopes = ['identities:erase'] as const
  const { token, id } = await createKey(server.sql, { projectId, name: 'eraser', scopes })
  await identify('ada', ['@ada'])
  await send({ userId: '@ada' })
  const passed = countSeconds()
  const first = await erase({ v1: createRequests(server.url, token) }, 'ada')
  expect(first.body.data).toMatchObject({ events: 1, erasedBy: { id, name: 'eraser' } })
  const [row] = await server.sql<[{ age_s: number }]>`
    select extract(epoch from now() - ${first.body.data.erasedAt}::timestamptz)::float8 as age_s
  `
  expect(row.age_s).toBeWithin(0, passed())
  const again = await erase(tenant, 'ada')
  expect([again.status, again.body.data]).toEqual([200, first.body.data])
  for (const name of ['@ada', 'ADA']) expectFailure(await erase(tenant, name), 404, 'not_found')
  const { request } = await newProject(server)
  expectFailure(await erase({ v1: { request } }, 'ada'), 404, 'not_found')

  // A later user with the same name has an erasure of their own.
  await identify('ada')
  const second = await erase(tenant, 'ada')
  expect(second.body.data).toMatchObject({ events: 0, erasedBy: { name: 'test' } })
  expect(second.body.data.erasedAt > first.body.data.erasedAt).toBe(true)
})

test("contract §9 erasure keeps an alias that is another user's user_id", async () => {
  const tenant = await newTenant(server)
  const { identify, send, v1 } = tenant
  await identify('ada', ['bob'])
  await identify('bob')
  const event = await send({ userId: 'bob' }, { 'idempotency-key': 'k' })
  expect((await erase(tenant, 'ada')).body.data.events).toBe(0)
  expect((await v1.get(`/v1/events/${event.id}`)).body.data.userId).toBe('bob')
  expect(await send({ userId: 'bob' }, { 'idempotency-key': 'k' })).toEqual(event)
  expect((await v1.get('/v1/users/bob')).body.data.userId).toBe('bob')
})

test('contract §9 erasure takes the exact user_id, and an unknown one leaves no entry', async () => {
  const { account, path, identify, send, projectId } = await newTenant(server)
  await identify('ada', ['@ada'])
  for (const name of ['@ada', 'nobody', 'ADA']) {
    expectFailure(await account.delete(`${path}/users/${name}`), 404, 'not_found')
  }
  expect((await account.get(`${path}/users/ada/aliases/history`)).body.data.items).toHaveLength(1)
  await send({ userId: 'named only' })
  expect((await account.delete(`${path}/users/named%20only`)).body.data.events).toBe(1)
  const entries = await server.sql<{ target: string | null }[]>`
    select target from audit_log where project_id = ${projectId} and actor = 'account'
  `
  expect([...entries]).toEqual([{ target: null }])
})

test('contract §9 concurrent erasure and alias changes end in one of their two orders', async () => {
  const { account, path, identify, projectId } = await newTenant(server)
  for (let round = 0; round < 5; round++) {
    await identify('ada', ['@ada'])
    await identify('bob')
    await Promise.all([
      account.delete(`${path}/users/ada`),
      account.post(`${path}/users/bob/aliases`, { alias: '@ada', from: 'ada' }),
      account.post(`${path}/users/ada/aliases`, { alias: 'another' }),
    ])
    const rows = await server.sql`
      select from alias_changes where project_id = ${projectId} and (user_id = 'ada' or other = 'ada')
      union all
      select from aliases where project_id = ${projectId} and user_id = 'ada'
    `
    expect(rows).toHaveLength(0)
    await account.delete(`${path}/users/bob`)
  }
})

function erase({ v1 }: { v1: Pick<TestTenant['v1'], 'request'> }, userId: string) {
  return v1.request(`/v1/users/${encodeURIComponent(userId)}`, { method: 'DELETE' })
}
