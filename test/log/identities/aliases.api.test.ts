import { expect, test } from 'bun:test'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newProject } from '../../support/worlds/project.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

test('dashboard §6 an added alias attributes earlier events to its user', async () => {
  const tenant = await newTenant(server, 'member')
  const { path, account, identify, send, v1 } = tenant
  await identify('ada')
  const { id } = await send({ userId: '@ada' })
  const added = await add(tenant, 'ada', { alias: '@ada' })
  expect(added.status).toBe(201)
  expect(added.body.data).toEqual({ userId: 'ada', alias: '@ada', since: expect.any(String) })
  expect((await v1.get(`/v1/events/${id}`)).body.data.userId).toBe('ada')
  const { aliases } = (await account.get(`${path}/users/ada`)).body.data
  expect(aliases).toEqual([{ alias: '@ada', since: added.body.data.since }])
})

test('contract §3 a user with 1,000 aliases gets no other until one is removed', async () => {
  const tenant = await newTenant(server, 'member')
  await tenant.identify('ada')
  await server.sql`
    insert into aliases (project_id, alias, user_id, created_at)
    select ${tenant.projectId}, 'alias ' || n, 'ada', now() from generate_series(0, 999) as n
  `
  await tenant.identify('bob', ['@bob'])
  const message = 'A user can have at most 1,000 aliases. Remove one first.'
  for (const json of [{ alias: 'new' }, { alias: '@bob', from: 'bob' }]) {
    const answer = await add(tenant, 'ada', json)
    expect([answer.status, answer.body.error]).toEqual([409, message])
  }
  await tenant.account.delete(`${tenant.path}/users/ada/aliases/alias%200`)
  expect((await add(tenant, 'ada', { alias: 'new' })).status).toBe(201)
})

test('contract §3 an alias that cannot be added is a conflict with the reasons of identify', async () => {
  const tenant = await newTenant(server, 'member')
  await tenant.identify('ada', ['@ada'])
  await tenant.identify('bob', ['@bob'])
  const reason = async (json: object) => {
    const answer = await add(tenant, 'ada', json)
    return [answer.status, answer.body.code, answer.body.error]
  }
  const conflict = (error: string) => [409, 'conflict', error]
  expect(await reason({ alias: 'ada' })).toEqual(conflict("Equals this user's own user_id"))
  expect(await reason({ alias: 'bob' })).toEqual(conflict("Equals another user's user_id"))
  expect(await reason({ alias: '@ada' })).toEqual(conflict('Already an alias of this user'))
  expect(await reason({ alias: '@bob' })).toEqual(conflict('Already an alias of another user'))
  expect(await reason({ alias: 'bob', from: 'bob' })).toEqual(
    conflict("Equals another user's user_id"),
  )
  expectFailure(await add(tenant, 'nobody', { alias: 'x' }), 404, 'not_found')
  // Reads resolve an alias to its owner; writes need the exact user_id.
  expectFailure(await add(tenant, '@ada', { alias: 'x' }), 404, 'not_found')
  expectIssues(await add(tenant, 'ada', {}), 'alias required')
  expectIssues(await add(tenant, 'ada', { alias: '' }), 'alias too_short')
  expectIssues(await add(tenant, 'ada', { alias: 'x'.repeat(256) }), 'alias too_long')
  expectIssues(await add(tenant, 'ada', { alias: '\u0000' }), 'alias invalid_encoding')
})

test('contract §3 moving an alias needs its current owner, and reads then resolve to the new owner', async () => {
  const tenant = await newTenant(server, 'member')
  const { path, account, v1, send } = tenant
  await tenant.identify('ada', ['shared'])
  await tenant.identify('bob')
  const { id } = await send({ userId: 'shared' })
  const moved = await add(tenant, 'bob', { alias: 'shared', from: 'ada' })
  expect([moved.status, moved.body.data.userId]).toEqual([201, 'bob'])
  expect((await v1.get(`/v1/events/${id}`)).body.data.userId).toBe('bob')
  expect((await v1.get('/v1/users/shared')).body.data.userId).toBe('bob')
  expect((await v1.get('/v1/events?userId=ada')).body.data.items).toEqual([])
  expect((await v1.get('/v1/events?userId=bob')).body.data.items).toMatchObject([{ id }])
  expect((await account.get(`${path}/users/bob`)).body.data.events).toBe(1)
  expect((await send({ userId: 'shared' })).userId).toBe('bob')

  expectFailure(await add(tenant, 'bob', { alias: 'free', from: 'ada' }), 409, 'conflict')
  await tenant.identify('eve')
  expectFailure(await add(tenant, 'eve', { alias: 'shared', from: 'ada' }), 409, 'conflict')
})

test('dashboard §6 a removed alias resolves to no user', async () => {
  const tenant = await newTenant(server, 'member')
  const { path, account, v1, send, identify } = tenant
  const odd = 'a/b c?#%ü'
  await identify('ada', [odd, '@ada'])
  const { id } = await send({ userId: odd })
  const remove = (userId: string, alias: string) =>
    account.delete(`${path}/users/${userId}/aliases/${encodeURIComponent(alias)}`)
  expectFailure(await remove('bob', odd), 404, 'not_found')
  const removed = await remove('ada', odd)
  expect([removed.status, removed.body.data]).toEqual([200, { userId: 'ada', alias: odd }])
  expectFailure(await remove('ada', odd), 404, 'not_found')
  expect((await v1.get(`/v1/events/${id}`)).body.data.userId).toBe(odd)
  expect((await identify('bob', [odd])).aliases).toEqual({ created: [odd] })
})

test('dashboard §6 the history lists changes of aliases from every source', async () => {
  const tenant = await newTenant(server, 'member')
  const { path, account, identify } = tenant
  await identify('ada', ['a', 'b'])
  await identify('bob')
  await add(tenant, 'ada', { alias: 'c' })
  await add(tenant, 'bob', { alias: 'a', from: 'ada' })
  await account.delete(`${path}/users/ada/aliases/b`)
  const who = { id: account.id, name: 'Test person' }
  const change = (alias: string, change: string, other: string | null, person: object | null) => ({
    at: expect.any(String),
    alias,
    change,
    other,
    person,
  })
  expect(await listHistory(tenant, 'ada')).toEqual([
    change('b', 'removed', null, who),
    change('a', 'moved to', 'bob', who),
    change('c', 'added', null, who),
    change('b', 'added', null, null),
    change('a', 'added', null, null),
  ])
  expect(await listHistory(tenant, 'bob')).toEqual([change('a', 'moved from', 'ada', who)])
  expect(await listHistory(tenant, 'a')).toEqual(await listHistory(tenant, 'bob'))
  expect(await listHistory(tenant, 'ada', 2)).toEqual(await listHistory(tenant, 'ada'))
  const history = `${path}/users/ada/aliases/history`
  expectFailure(await account.get(history.replace('ada', 'nobody')), 404, 'not_found')
  for (const cursor of ['x', 'WzFd', toCursor([1, 'a', '\u0000']), toCursor([1e15, 'a', 'b'])]) {
    expectIssues(await account.get(`${history}?cursor=${cursor}`), 'cursor invalid_format')
  }
})

test('contract §3 concurrent moves and identifies of one alias leave one owner and a history without gaps', async () => {
  const tenant = await newTenant(server, 'member')
  const names = ['ada', 'bob', 'eve']
  for (const name of names) await tenant.identify(name)
  for (let round = 0; round < 8; round++) {
    const answers = await Promise.all([
      ...names.map(name => tenant.identify(name, ['shared']).then(() => 200)),
      ...names.flatMap(name =>
        names.map(from =>
          add(tenant, name, { alias: 'shared', ...(from !== name && { from }) }).then(
            ({ status }) => status,
          ),
        ),
      ),
      tenant.account
        .delete(`${tenant.path}/users/${names[round % 3]}/aliases/shared`)
        .then(({ status }) => status),
    ])
    expect(answers.filter(status => ![200, 201, 404, 409].includes(status))).toEqual([])
  }
  const changes = await server.sql<{ user_id: string; change: string; other: string | null }[]>`
    select user_id, change, other from alias_changes where project_id = ${tenant.projectId} order by id
  `
  let owner: string | null = null
  for (const { user_id: user, change, other } of changes) {
    if (change === 'added') expect(owner).toBeNull()
    else if (change === 'moved from') expect(owner).toBe(other)
    else expect(owner).toBe(user)
    if (change !== 'moved to') owner = change === 'removed' ? null : user
  }
  const aliases = await server.sql<{ user_id: string }[]>`
    select user_id from aliases where project_id = ${tenant.projectId}
  `
  expect(aliases.map(({ user_id }) => user_id)).toEqual(owner === null ? [] : [owner])
})

test('reliability §11 the audit log records changes of aliases by ids alone', async () => {
  const tenant = await newTenant(server, 'member')
  const ada = await tenant.identify('ada')
  const bob = await tenant.identify('bob')
  await add(tenant, 'ada', { alias: 'secret name' })
  await add(tenant, 'bob', { alias: 'secret name', from: 'ada' })
  await tenant.account.delete(
    `${tenant.path}/users/bob/aliases/${encodeURIComponent('secret name')}`,
  )
  await add(tenant, 'bob', { alias: 'bob' })
  const entries = await server.sql<{ action: string; target: string; details: object }[]>`
    select action, target, details from audit_log where project_id = ${tenant.projectId} and actor = 'account' order by id
  `
  expect([...entries]).toEqual([
    { action: 'alias.added', target: ada.id, details: {} },
    { action: 'alias.moved', target: bob.id, details: { from: ada.id } },
    { action: 'alias.removed', target: bob.id, details: {} },
  ])
})

test('contract §9 users named . and .. are read and erased by a parameter', async () => {
  const { post, get, request } = await newProject(server)
  for (const userId of ['.', '..', 'a/b?c']) {
    await post('/v1/identify', { user_id: userId, aliases: [`alias of ${userId}`] })
    await post('/v1/events', { channelName: 'c', title: 't', userId })
    const name = (text: string) => `/v1/users?userId=${encodeURIComponent(text)}`
    expect((await get(name(`alias of ${userId}`))).body.data).toMatchObject({ userId })
    const erased = await request(name(userId), { method: 'DELETE' })
    expect(erased.body.data).toMatchObject({ userId, events: 1 })
    expect((await get(name(userId))).status).toBe(404)
  }
})

function add(
  { account, path }: Pick<TestTenant, 'account' | 'path'>,
  userId: string,
  json: object,
) {
  return account.post(`${path}/users/${encodeURIComponent(userId)}/aliases`, json)
}

async function listHistory({ account, path }: TestTenant, userId: string, limit = 100) {
  const changes: { alias: string }[] = []
  for (let query = `limit=${limit}`; ;) {
    const { data } = (await account.get(`${path}/users/${userId}/aliases/history?${query}`)).body
    changes.push(...data.items)
    if (data.nextCursor === null) return changes
    query = `limit=${limit}&cursor=${data.nextCursor}`
  }
}

function toCursor(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
