import { expect, test } from 'bun:test'
import { hasNothingToFind } from '../../../src/base/text-search.ts'
import { toArray } from '../../../src/database/arrays.ts'
import { reindexUsers } from '../../../src/log/identities/user-indexer.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
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
    ...{ id: null, userId: name, properties: null, aliases: [], createdAt: null, updatedAt: null },
    ...{ events: 1, firstSeenAt: event.timestamp, lastSeenAt: event.timestamp },
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

/** Searches in every plane, which must agree. Returns the titles of the list. */
async function find({ account, path }: TestTenant, q: string): Promise<string[]> {
  const query = new URLSearchParams({ q, limit: '100' })
  const list = await account.get(`${path}/events?${query}`)
  expect([q, list.status]).toEqual([q, 200])
  const titles: string[] = list.body.data.items.map(({ title }: { title: string }) => title)
  const view = `${path}/views/${(await account.post(`${path}/views`, { name: 'x', q })).body.data.id}`
  await account.put(`${view}/read`, { seq: 0 })
  const card = await account.post(`${path}/insights`, { kind: 'number', q, hours: 24 })
  const result = `${path}/insights/${card.body.data.id}`
  let counts: number[] = []
  // On a slow machine, a count can end before the log does.
  await until(async () => {
    const histogram = (await account.get(`${path}/histogram?${query}`)).body.data
    const [counted] = (await account.get(`${path}/views`)).body.data.items
    const { total, completeSince } = (await account.get(`${result}/result`)).body.data
    counts = [histogram.total, counted.newEvents, total]
    return !histogram.isPartial && !counted.isPartial && completeSince === null
  })
  await account.delete(view)
  await account.delete(result)
  expect([q, ...counts]).toEqual([q, ...counts.map(() => titles.length)])
  return titles.toSorted()
}

async function newShop(): Promise<TestTenant> {
  const tenant = await newTenant(server)
  await tenant.identify('u1', ['@countess', 'lovelace'], { name: 'Ada Lovelace', age: 36 })
  await tenant.identify('u2', [], { first_name: 'Adam', last_name: 'Smith', city: 'Adana' })
  await tenant.identify('u3', [], { email: 'ada%b@example.com', note: 'ada' })
  await tenant.identify('u4', [], { company: 'Ada Ltd' })
  await tenant.identify('Ada_5', ['five'])
  for (const userId of ['u1', 'lovelace', 'u2', 'u3', 'u4', 'Ada_5', 'five', 'ádám', 'bob']) {
    await tenant.send({ title: userId, userId })
  }
  await tenant.send({ title: 'nobody' })
  return tenant
}

test('dashboard.md §3 user: finds the events of users by the beginning of a name, in every plane', async () => {
  const shop = await newShop()
  const other = await newTenant(server)
  await other.send({ title: 'of another tenant', userId: 'ada' })
  const all = ['Ada_5', 'five', 'lovelace', 'u1', 'u2', 'u3', 'ádám']
  expect(await find(shop, 'user:ada')).toEqual(all)
  expect(await find(shop, 'user:ADA')).toEqual(all)
  expect(await find(shop, 'user:ádá')).toEqual(all)
  expect(await find(shop, 'user:adam')).toEqual(['u2', 'ádám'])
  expect(await find(shop, 'user:ada_')).toEqual(['Ada_5', 'five'])
  expect(await find(shop, 'user:ada%b@ex')).toEqual(['u3'])
  expect(await find(shop, 'user:@count')).toEqual(['lovelace', 'u1'])
  expect(await find(shop, 'user:u')).toEqual(['lovelace', 'u1', 'u2', 'u3', 'u4'])
  expect(await find(shop, 'user:smith')).toEqual([])
  expect(await find(shop, 'user:36')).toEqual([])
  expect(await find(shop, 'user:adam user:bob')).toEqual(['bob', 'u2', 'ádám'])
  expect(await find(shop, '-user:ada')).toEqual(['bob', 'nobody', 'u4'])
  expect(await find(shop, 'user:ada (user:adam OR lovelace)')).toEqual(['lovelace', 'u2', 'ádám'])
})

test('dashboard.md §3 in quotes, user: finds one user under each name', async () => {
  const shop = await newShop()
  expect(await find(shop, 'user:"Ada_5"')).toEqual(['Ada_5', 'five'])
  expect(await find(shop, 'user:"lovelace"')).toEqual(['lovelace', 'u1'])
  expect(await find(shop, 'user:"ada"')).toEqual([])
  expect(await find(shop, 'user:"u1" user:bo')).toEqual(['bob', 'lovelace', 'u1'])
  expect(await find(shop, '-user:"u1" user:u')).toEqual(['u2', 'u3', 'u4'])
  const exact = await shop.v1.get('/v1/events?userId=u')
  expect(exact.body.data.items).toEqual([])
})

test('dashboard.md §3 in quotes, several words are a whole name, in every plane', async () => {
  const shop = await newShop()
  await shop.identify('u6', [], { name: 'Ada Lovelace King' })
  await shop.identify('u7', [], { first_name: 'ADA', last_name: 'Lovelace' })
  await shop.identify('user 1', ['the first'])
  for (const userId of ['u6', 'u7', 'user 1', 'user 10', 'the first', 'Bo Never Identified']) {
    await shop.send({ title: userId, userId })
  }
  expect(await find(shop, 'user:"Ada Lovelace"')).toEqual(['lovelace', 'u1', 'u7'])
  expect(await find(shop, 'user:" ada lovelace "')).toEqual(['lovelace', 'u1', 'u7'])
  expect(await find(shop, 'user:"ada love"')).toEqual([])
  expect(await find(shop, '-user:"Ada Lovelace" user:u')).not.toContain('u7')
  expect(await find(shop, 'user:"Adam Smith" user:bob')).toEqual(['bob', 'u2'])
  expect(await find(shop, '(user:"Adam Smith" OR bob)')).toEqual(['bob', 'u2'])
  expect(await find(shop, 'user:"user 1"')).toEqual(['the first', 'user 1'])
  expect(await find(shop, 'user:"the first"')).toEqual(['the first', 'user 1'])
  expect(await find(shop, 'user:"Bo Never Identified"')).toEqual(['Bo Never Identified'])
  // White space is as a page shows it.
  await shop.identify('u8', [], { name: 'Alan \u00a0Turing' })
  // A user_id takes precedence over an equal name.
  await shop.identify('Grace Hopper', ['grace'])
  await shop.identify('u9', [], { name: 'Grace Hopper' })
  for (const userId of ['u8', 'Grace Hopper', 'u9', 'grace']) {
    await shop.send({ title: userId, userId })
  }
  expect(await find(shop, 'user:"Alan Turing"')).toEqual(['u8'])
  expect(await find(shop, 'user:"Alan  Turing"')).toEqual(['u8'])
  expect(await find(shop, 'user:"Grace Hopper"')).toEqual(['Grace Hopper', 'grace'])
  // The parameter is a user_id or an alias alone.
  const exact = await shop.v1.get('/v1/events?userId=Ada%20Lovelace')
  expect(exact.body.data.items).toEqual([])
})

test('dashboard.md §3 an alias that became the name of another user finds that user', async () => {
  const shop = await newTenant(server)
  await shop.identify('u1', ['zoe'])
  await shop.identify('zoe', [], { name: 'Bea' })
  await shop.send({ title: 'of u1', userId: 'u1' })
  await shop.send({ title: 'of zoe', userId: 'zoe' })
  expect(await find(shop, 'user:"u1"')).toEqual(['of u1'])
  expect(await find(shop, 'user:bea')).toEqual(['of zoe'])
})

test('dashboard.md §3 a beginning can fit any number of users, and a symbol is one', async () => {
  const shop = await newTenant(server)
  await server.sql`
    insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
    select
      ${shop.projectId}, '_' || n, gen_random_uuid(), 'idn_' || gen_random_uuid(),
      '{"name":"Zoe of the many words"}', now(), now()
    from generate_series(1, 20000) as n
  `
  const [{ count }] = await server.sql.begin(async tx => {
    await reindexUsers(tx, shop.projectId)
    return tx<[{ count: number }]>`
      select count(*)::int as count from unindexed_users where project_id = ${shop.projectId}
    `
  })
  expect(count).toBe(20_000)
  await shop.send({ title: 'of one', userId: '_77' })
  await shop.send({ title: 'of another', userId: 'zed' })
  for (const q of ['user:zo', 'user:_', 'user:_7 user:zo', 'user:"zoe of the many words"']) {
    expect(await find(shop, q)).toEqual(['of one'])
  }
  expect(await find(shop, 'user:"zoe of the many"')).toEqual([])
  expect(await find(shop, '-user:zo')).toEqual(['of another'])
})

test('contract §9 a search of accents alone is a 400, which no search of letters or symbols is', async () => {
  const { account, path } = await newTenant(server)
  const search = (q: string) => account.get(`${path}/events?${new URLSearchParams({ q })}`)
  expectIssues(await search('a user:\u0301'), 'q.user invalid_value')
  expect((await search('a ++')).status).toBe(200)

  // All that may have nothing to find, and some of the others.
  const characters = Array.from({ length: 0x11_0000 - 1 }, (_, n) => n + 1)
    .filter(code => code < 0xd800 || code > 0xdfff)
    .map(code => String.fromCodePoint(code))
    .filter((one, n) => n % 499 === 0 || /[\p{M}\p{Z}\p{Cc}\p{Cf}\p{Lm}\p{Sk}]/u.test(one))
  const found = await server.sql<{ term: string }[]>`
    select c.term
    from unnest(${toArray(characters)}::text[]) as c (term)
    where not exists (select from text_patterns(array[c.term], '{false}'))
  `
  const marks = new Set(found.map(({ term }) => term))
  const differing = characters.filter(one => hasNothingToFind(one) !== marks.has(one))
  expect(differing.map(one => one.codePointAt(0)!.toString(16))).toEqual([])
})
