import { expect, test } from 'bun:test'
import { toArray } from '../../../src/database/arrays.ts'
import { expectFailure } from '../../support/answers.ts'
import { boot, withSharedServer } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'

const server = withSharedServer()

test('dashboard §6 the list of users is a keyset page, newest first', async () => {
  const tenant = await newTenant(server, 'viewer')
  for (const userId of ['a', 'b', 'c', 'd', 'e']) await tenant.identify(userId)
  expect(await list(tenant, 'limit=2')).toEqual(['e', 'd', 'c', 'b', 'a'])
})

test('dashboard §6 a row has the first aliases, and properties up to a limit', async () => {
  const { account, path, identify } = await newTenant(server)
  const aliases = Array.from({ length: 12 }, (_, n) => `alias ${String(n).padStart(2, '0')}`)
  const small = await identify('small', aliases, { n: 1.5, deep: { '"': null } })
  await identify('long', [], { text: 'x'.repeat(5_000) })
  const [long, short] = (await account.get(`${path}/users`)).body.data.items
  expect(short).toEqual({
    id: small.id,
    userId: 'small',
    properties: { n: 1.5, deep: { '"': null } },
    aliases: aliases.slice(0, 10),
    createdAt: expect.any(String),
    updatedAt: small.updatedAt,
  })
  expect(long).toMatchObject({ userId: 'long', properties: null })
})

test('dashboard §6 a server indexes users, and a search finds their present properties at once', async () => {
  await using own = await boot()
  const tenant = await newTenant(own)
  const check = async (found: string[]) => {
    const searches = ['london', 'par', 'paris-pro', 'city', 'rome']
    expect(
      await Promise.all(searches.map(async word => (await list(tenant, `search=${word}`)).join())),
    ).toEqual(found)
  }
  await tenant.identify('ada', [], { city: 'London', plan: 'pro' })
  await tenant.identify('bob', [], { city: 'Paris', plan: 'pro' })
  await check(['ada', 'bob', 'bob', '', ''])
  await until(async () => (await own.sql`select from unindexed_users`).count === 0)
  await check(['ada', 'bob', 'bob', '', ''])
  // Bob's words in the index are out of date.
  await own.sql`alter function index_users rename to held_index_users`
  await tenant.identify('bob', [], { city: 'Rome' })
  await check(['ada', '', '', '', 'bob'])
})

test('contract §2 properties of any size are kept, and their first 16 Ki characters are searchable', async () => {
  const tenant = await newTenant(server)
  const early = {
    keyword: 'early "quoted\nbird',
    list: [555017, 555018, { deep: 'Ада nest.example.com' }],
  }
  // Postgres' `numeric` cannot hold so many digits.
  const number = (JSON as unknown as { rawJSON(text: string): object }).rawJSON('9'.repeat(140_000))
  await tenant.identify('long', [], { ...early, filler: 'x '.repeat(60_000), late: 'worm' })
  await tenant.identify('number', [], { word: 'counted', wide: 'y'.repeat(300), number })
  await tenant.identify('edge', [], { inside: 'y '.repeat(8_190), outside: 'beyond' })
  await tenant.identify('list', [], {
    word: 'listed',
    list: Array.from({ length: 40_000 }, (_, n) => n),
  })
  for (const word of ['early', 'quoted', 'bird', '555017', '555018', 'ада', 'nest.example.com']) {
    expect([word, await list(tenant, `search=${encodeURIComponent(word)}`)]).toEqual([
      word,
      ['long'],
    ])
  }
  for (const word of ['keyword', 'filler', 'worm', 'nbird', 'beyond']) {
    expect([word, await list(tenant, `search=${word}`)]).toEqual([word, []])
  }
  expect(await list(tenant, 'search=counted')).toEqual(['number'])
  expect(await list(tenant, `search=${'y'.repeat(250)}`)).toEqual(['number'])
  expect(await list(tenant, 'search=listed 39')).toEqual(['list'])
})

test('dashboard §6 first and last seen are exact for names in different parts of the log', async () => {
  const { projectId, send } = await newTenant(server)
  await send()
  const names = ['ada', '@ada', 'early', 'late', 'never']
  for (let round = 0; round < 8; round++) {
    await server.sql`delete from events where project_id = ${projectId} and seq > 1`
    // Each name is in a part of 16 segments, at any time.
    await server.sql`
      insert into events (
        project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, user_ref, source, notify
      )
      select
        e.project_id, gen_random_uuid(), e.channel_id, 4096 * (n % 16) + n + 1,
        e.occurred_at + random() * interval '1 year', e.created_at, e.title, e.tags, e.metadata,
        case
          when n % 16 < 5 then (array['ada', 'early', 'bob'])[1 + floor(random() * 3)::int]
          when n % 16 < 11 then (array['ada', '@ada', 'bob'])[1 + floor(random() * 3)::int]
          else (array['late', 'bob', 'bob'])[1 + floor(random() * 3)::int]
        end,
        e.source, e.notify
      from events e
        cross join generate_series(1, 200) as n
      where e.project_id = ${projectId}
    `
    await server.sql`
      insert into event_segments as s (project_id, segment, first_at, last_at)
      select e.project_id, e.seq >> 12, min(e.occurred_at), max(e.occurred_at) + interval '1 ms'
      from events e
      where e.project_id = ${projectId}
      group by e.project_id, e.seq >> 12
      on conflict (project_id, segment) do update set first_at = excluded.first_at, last_at = excluded.last_at
    `
    const [row] = await server.sql`
      select s.first_at, s.last_at, min(e.occurred_at) as first, max(e.occurred_at) as last
      from user_seen_times(${projectId}, ${toArray(names)}::text[]) s
        join events e on e.project_id = ${projectId} and e.user_ref = any(${toArray(names)}::text[])
      group by s.first_at, s.last_at
    `
    expect([row!['first_at'], row!['last_at']]).toEqual([row!['first'], row!['last']])
  }
})

test('dashboard §6 the page of a user has all their data, by user_id or alias', async () => {
  const { account, path, identify, send } = await newTenant(server, 'viewer')
  const first = await send({ userId: '@ada', channelName: 'sign-ups', icon: '👋' })
  const identity = await identify('ada', ['@ada', 'ada@example.com'], { plan: 'pro' })
  for (const userId of ['ada', 'ada@example.com']) await send({ userId, channelName: 'payments' })
  const last = await send({ userId: 'ada', channelName: 'payments' })
  await send({ userId: 'bob', channelName: 'payments' })
  const { body } = await account.get(`${path}/users/ada`)
  expect(body.data).toEqual({
    id: identity.id,
    userId: 'ada',
    properties: { plan: 'pro' },
    aliases: [
      { alias: '@ada', since: expect.any(String) },
      { alias: 'ada@example.com', since: expect.any(String) },
    ],
    createdAt: identity.updatedAt,
    updatedAt: identity.updatedAt,
    events: 4,
    firstSeenAt: first.timestamp,
    lastSeenAt: last.timestamp,
    channels: [
      { id: last.channelId, name: 'payments', icon: null, events: 3 },
      { id: first.channelId, name: 'sign-ups', icon: '👋', events: 1 },
    ],
  })
  for (const name of ['@ada', 'ada@example.com']) {
    expect((await account.get(`${path}/users/${encodeURIComponent(name)}`)).body.data).toEqual(
      body.data,
    )
  }
})

test('dashboard §6 a user whom only events name has a page, too', async () => {
  const { account, path, send } = await newTenant(server)
  const name = 'a/b?c#d%20 ü"'
  const event = await send({ userId: name })
  expect((await account.get(`${path}/users/${encodeURIComponent(name)}`)).body.data).toEqual({
    id: null,
    userId: name,
    properties: null,
    aliases: [],
    createdAt: null,
    updatedAt: null,
    events: 1,
    firstSeenAt: event.timestamp,
    lastSeenAt: event.timestamp,
    channels: [{ id: event.channelId, name: 'ops', icon: null, events: 1 }],
  })
  expectFailure(await account.get(`${path}/users/nobody`), 404, 'not_found')
})

test('dashboard §6 an exact user_id wins over an alias, with its own events', async () => {
  const { account, path, identify, send } = await newTenant(server)
  await identify('ada', ['bob'])
  await identify('bob')
  await send({ userId: 'bob' })
  const get = async (name: string) => (await account.get(`${path}/users/${name}`)).body.data
  expect(await get('bob')).toMatchObject({ userId: 'bob', events: 1 })
  expect(await get('ada')).toMatchObject({ userId: 'ada', events: 0, lastSeenAt: null })
})

test('dashboard §6 events are counted up to 10,000', async () => {
  const { account, path, send, projectId } = await newTenant(server)
  await send({ userId: 'ada' })
  await server.sql`
    insert into events (
      project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, user_ref, source, notify
    )
    select
      e.project_id, gen_random_uuid(), e.channel_id, n, e.occurred_at, e.created_at, e.title, e.tags, e.metadata,
      e.user_ref, e.source, e.notify
    from events e
      cross join generate_series(2, 10100) as n
    where e.project_id = ${projectId}
  `
  const { data } = (await account.get(`${path}/users/ada`)).body
  expect([data.events, data.channels[0].events]).toEqual([10_000, 10_000])
})

/** Returns the user_ids of all pages. */
async function list({ account, path }: TestTenant, query: string): Promise<string[]> {
  const found: string[] = []
  for (let cursor = ''; ;) {
    const { status, body } = await account.get(`${path}/users?${query}${cursor}`)
    expect(status).toBe(200)
    found.push(...body.data.items.map(({ userId }: { userId: string }) => userId))
    if (body.data.nextCursor === null) return found
    cursor = `&cursor=${body.data.nextCursor}`
  }
}

test('dashboard §3 the names of users come from properties, else from an e-mail address, everywhere', async () => {
  const { account, path, identify, send } = await newTenant(server, 'member')
  await identify('ada', [], { full_name: ' Ada Lovelace ', email: 'ada@example.com' })
  await identify('grace', ['grace@example.com'], { firstName: 'Grace', lastName: 'Hopper' })
  await identify('linus', ['penguin', 'linus@example.com'], { name: { first: 'Linus' } })
  await identify('alan', [], { name: ' ', email: 'alan@example.com' })
  await identify('nobody', ['someone'])
  await identify('dora', [], { displayName: 'Dora' })
  const userIds = ['ada', 'grace', 'linus', 'alan', 'nobody', 'unknown', 'dora']
  const { status, body } = await account.post(`${path}/users/names`, { userIds })
  expect(status).toBe(200)
  const names = body.data.items.map(({ userId, name }: Record<string, string>) => [userId, name])
  const expected = {
    ada: 'Ada Lovelace',
    grace: 'Grace Hopper',
    linus: 'linus@example.com',
    alan: 'alan@example.com',
    dora: 'Dora',
  }
  expect(Object.fromEntries(names)).toEqual(expected)

  for (const userId of userIds) await send({ userId })
  const card = await account.post(`${path}/insights`, { kind: 'top', groupBy: 'user' })
  const { values } = (await account.get(`${path}/insights/${card.body.data.id}/result`)).body.data
  const ofCard = values.map(({ value, name }: Record<string, string>) => [value, name])
  const { items } = (await account.get(`${path}/suggestions?field=user`)).body.data
  const suggested = items.map(({ value, label }: Record<string, string>) => [value, label])
  const others = { nobody: null }
  expect(Object.fromEntries(ofCard)).toEqual({ ...expected, ...others, unknown: null })
  expect(Object.fromEntries(suggested)).toEqual({ ...expected, ...others })
  const search = `${path}/events?q=${encodeURIComponent('user:"Grace Hopper" OR user:dora')}`
  const found = (await account.get(search)).body.data.items
  expect(found.map(({ userId }: { userId: string }) => userId)).toEqual(['dora', 'grace'])
})
