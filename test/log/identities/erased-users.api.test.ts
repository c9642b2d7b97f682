import { expect, test } from 'bun:test'
import { expectFailure } from '../../support/answers.ts'
import { withServer } from '../../support/servers/server.ts'
import { listTraces } from '../../support/traces.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const server = withServer()

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
  for (const [n, userId] of ['zqx-user', 'zqx-alias', 'zqx-moved', 'zqx-late'].entries()) {
    await send({ userId }, keyed(10 + n))
  }
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
    { userId: 'zqx-user', events: 5, erasedAt: expect.any(String), erasedBy: null },
  ])
  expect(await listTraces(server.sql, 'zqx-')).toEqual([])
  const [entry] = await server.sql<{ target: string; details: object }[]>`
    select target, details from audit_log where project_id = ${projectId} and action = 'user.erased'
  `
  expect(entry as object).toEqual({ target: id, details: { events: 5 } })

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
  expect(replay.body.data.aliases).toEqual({ created: ['stays'] })
  expect((await account.post(`${path}/events/${hidden.id}/restore`)).status).toBe(200)
  expect((await v1.get(`/v1/events/${hidden.id}`)).body.data.userId).toBeNull()
})

test('contract §9 erasure of a former owner leaves the alias with its current owner', async () => {
  const { account, path, identify, send, v1 } = await newTenant(server)
  await identify('ada', ['shared'])
  await identify('bob')
  const { id } = await send({ userId: 'shared' })
  await account.post(`${path}/users/bob/aliases`, { alias: 'shared', from: 'ada' })
  expect((await account.delete(`${path}/users/ada`)).body.data.events).toBe(0)
  expect((await v1.get(`/v1/events/${id}`)).body.data.userId).toBe('bob')
  expect((await account.get(`${path}/users/bob`)).body.data.aliases).toMatchObject([
    { alias: 'shared' },
  ])
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
