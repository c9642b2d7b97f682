import { expect, test } from 'bun:test'
import { toArray } from '../../../src/database/arrays.ts'
import { reindexUsers } from '../../../src/log/identities/user-indexer.ts'
import { expectIssues } from '../../support/answers.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { hasNothingToFind } from '../../../src/base/text-search.ts'
import { until } from '../../support/until.ts'

const server = withSharedServer()

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
