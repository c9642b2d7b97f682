import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { HOUR_MS } from '../../../src/log/events/time-buckets.ts'
import { noFilters } from '../../../src/log/events/search-filters.ts'
import { parseSearch } from '../../../src/log/events/search-query.ts'
import { toSearchText } from '../../../src/log/events/search-writer.ts'
import { toPeriod } from '../../../src/log/insights/channel-counts.ts'
import { readResult } from '../../../src/log/insights/result.ts'
import type { CardGroup } from '../../../src/log/insights/schema.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { appendTitles } from '../../support/search-index.ts'
import { matchesFilters, type SentEvent } from '../../support/naive-search.ts'
import { bootSearchProject, filters, NOW_MS, OWNERS } from '../../support/worlds/search-project.ts'
import { forProcess } from '../../support/for-file.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const world = forProcess(bootSearchProject)

test('dashboard insights: a board has up to 12 cards, which are added, changed, moved and deleted', async () => {
  const { account, path, projectId } = await newTenant(world.server, 'member')
  const add = (card: object) => account.post(`${path}/insights`, card)
  const listKinds = async () =>
    (await account.get(`${path}/insights`)).body.data.cards.map(
      (card: { kind: string }) => card.kind,
    )
  expect(await listKinds()).toEqual([])
  const first = await add({ kind: 'number', q: ' tag:vip ', title: ' VIPs ' })
  expect(first.status).toBe(201)
  expect(first.body.data).toMatchObject({ kind: 'number', q: 'tag:vip', hours: 168, title: 'VIPs' })
  const top = (await add({ kind: 'top', groupBy: 'metadata', metadataPath: 'order.plan' })).body
    .data
  const users = (await add({ kind: 'top', groupBy: 'user', hours: 24 })).body.data
  const ids = [users.id, first.body.data.id, top.id]
  const moved = await account.put(`${path}/insights/order`, { cardIds: ids })
  expect(moved.body.data.cards.map(({ id }: { id: string }) => id)).toEqual(ids)
  for (const cardIds of [[], ids.slice(1), [...ids, ids[0]]]) {
    expectFailure(await account.put(`${path}/insights/order`, { cardIds }), 409, 'conflict')
  }
  const edited = await account.patch(`${path}/insights/${top.id}`, {
    kind: 'series',
    title: 'Plans',
  })
  expect(edited.body.data).toMatchObject({ kind: 'series', groupBy: null, metadataPath: null })
  expect((await account.delete(`${path}/insights/${users.id}`)).status).toBe(200)
  expectFailure(await account.get(`${path}/insights/${users.id}/result`), 404, 'not_found')
  expect(await listKinds()).toEqual(['number', 'series'])
  await Promise.all(Array.from({ length: 12 }, () => add({ kind: 'series' })))
  expect(await listKinds()).toHaveLength(12)
  expectFailure(await add({ kind: 'series' }), 409, 'conflict')
  const entries = await world.server.sql<{ action: string }[]>`
    select action from audit_log
    where project_id = ${projectId} and action like 'insights.%' order by id limit 6
  `
  expect(entries.map(({ action }) => action.replace('insights.', ''))).toEqual([
    ...['cardCreated', 'cardCreated', 'cardCreated', 'reordered', 'cardEdited', 'cardDeleted'],
  ])
})

test('contract §12 a card without its field or with a bad search is a 400 with the path', async () => {
  const { account, path } = await newTenant(world.server, 'member')
  const add = (card: object) => account.post(`${path}/insights`, card)
  expectIssues(await add({}), 'kind required')
  expectIssues(await add({ kind: 'funnel' }), 'kind invalid_value')
  expectIssues(await add({ kind: 'top' }), 'groupBy required')
  expectIssues(await add({ kind: 'top', groupBy: 'metadata' }), 'metadataPath required')
  expectIssues(await add({ kind: 'number', q: 'before:never' }), 'q.before invalid_format')
  expectIssues(await add({ kind: 'number', hours: 2161 }), 'hours out_of_range')
})

test('dashboard insights: a number compares with the same part of the period before', async () => {
  const { account, path, send } = await newTenant(world.server)
  const hoursAgo = (n: number) => new Date(Date.now() - n * HOUR_MS).toISOString()
  for (const hours of [0, 1, 25, 26, 27, 80]) await send({ timestamp: hoursAgo(hours) })
  // A minute later than now, one day ago: that part of the day is not over yet.
  await send({ timestamp: new Date(Date.now() - 24 * HOUR_MS + 60_000).toISOString() })
  const { id } = (await account.post(`${path}/insights`, { kind: 'number', hours: 24 })).body.data
  const { data } = (await account.get(`${path}/insights/${id}/result`)).body
  expect(data).toMatchObject({ kind: 'counts', previous: 3, completeSince: null, values: [] })
  // The event of 24 hours ago belongs to the period if its hour is the next one.
  expect(data.total - 2).toBeOneOf([0, 1])
})

test('dashboard insights: a number has no comparison with events that are not kept any longer', async () => {
  const { account, path, send, projectId } = await newTenant(world.server)
  const { channelId } = await send({ channelName: 'short' })
  await send({ channelName: 'long', title: 'Paid' })
  const read = async (card: object) => {
    const { id } = (await account.post(`${path}/insights`, { kind: 'number', ...card })).body.data
    const { data } = (await account.get(`${path}/insights/${id}/result`)).body
    await account.delete(`${path}/insights/${id}`)
    return data
  }
  const week = { hours: 7 * 24 }
  const keep = (keepDays: number | null) => account.patch(path, { keepDays })
  expect(await read(week)).toMatchObject({ total: 2, previous: 0 })
  await keep(7)
  expect(await read(week)).toMatchObject({ total: 2, previous: null })
  expect(await read({ ...week, q: 'Paid' })).toMatchObject({ total: 1, previous: null })
  expect(await read({ ...week, q: 'channel:none' })).toMatchObject({ total: 0, previous: null })
  expect(await read({ hours: 24 })).toMatchObject({ total: 2, previous: 0 })
  await keep(15)
  expect(await read(week)).toMatchObject({ total: 2, previous: 0 })

  await keep(null)
  await account.patch(`${path}/channels/${channelId}`, { keepDays: 7 })
  expect(await read(week)).toMatchObject({ previous: null })
  expect(await read({ ...week, q: 'channel:short' })).toMatchObject({ previous: null })
  for (const q of ['channel:long', '-channel:short', 'channel:long Paid']) {
    expect(await read({ ...week, q })).toMatchObject({ total: 1, previous: 0 })
  }
  await account.patch(`${path}/channels/${channelId}`, { keepDays: null })
  await world.server.sql`
    insert into exports (project_id, month, name, events, first_seq, last_seq)
    values (${projectId}, date_trunc('month', now()), ${path}, 1, 0, 0)
  `
  expect(await read({ hours: 1 })).toMatchObject({ total: 2, previous: null })
})

const GROUPS: readonly (CardGroup | null)[] = [
  ...([null, 'channel', 'tag', 'user', 'source', 'metadata'] as const),
]

test('dashboard insights: cards count the events that searches find, by every field', async () => {
  const bound = fc.record({
    groupBy: fc.constantFrom(...GROUPS),
    hours: fc.integer({ min: 1, max: 150 }),
    nowMs: fc.integer({ min: 0, max: 72 * 60 }).map(minutes => NOW_MS - minutes * 60_000),
  })
  const some = fc.oneof(
    filters,
    filters.map(({ channels }) => ({ ...noFilters(), channels })),
  )
  const limits = { candidatesBeforeIndex: 0, timeLimitMs: 10_000 }
  await fc.assert(
    fc.asyncProperty(some, bound, async (filters, { groupBy, hours, nowMs }) => {
      const kind = groupBy === null ? 'number' : 'top'
      const metadataPath = groupBy === 'metadata' ? 'amount' : null
      const q = toSearchText(filters)
      fc.pre(parseSearch(q).issues.length === 0)
      const card = { kind, groupBy, metadataPath, q, hours } as const
      const result = await readResult(world.server.sql, world.project.id, card, { nowMs, limits })
      if (result.kind !== 'counts') throw new Error(result.kind)
      const { fromMs, toMs, previousFromMs, previousToMs } = toPeriod(hours, nowMs)
      const found = world.sent.filter(one => matchesFilters(one, filters, OWNERS))
      const between = (from: number, to: number) =>
        found.filter(({ timestamp }) => Date.parse(timestamp) >= from && Date.parse(timestamp) < to)
      const now = between(fromMs, toMs)
      const before = between(previousFromMs, previousToMs)
      const previous = groupBy === null ? before.length : null
      expect([result.total, result.previous]).toEqual([now.length, previous])
      expect(result.completeSince).toBeNull()
      const totals = new Map<string, number>()
      for (const event of now)
        for (const value of listValues(event, groupBy))
          totals.set(value, (totals.get(value) ?? 0) + 1)
      const shown = result.values.map(({ name, value, total }) => {
        expect(total).toBe(totals.get((groupBy === 'channel' ? name : value) ?? '') ?? 0)
        return total
      })
      expect(shown).toEqual([...totals.values()].toSorted((a, b) => b - a).slice(0, 8))
      expect(result.hasMore).toBe(totals.size > 8)
    }),
    { numRuns: 40 },
  )
})

test('dashboard insights: a card whose budget ran out says since when its counts are complete', async () => {
  const card = {
    kind: 'number',
    groupBy: null,
    metadataPath: null,
    q: '-tag:test',
    hours: 220,
  } as const
  const whole = await readResult(world.server.sql, world.project.id, card, { nowMs: NOW_MS })
  const limits = { firstBatch: 30, timeLimitMs: 0 }
  const part = await readResult(world.server.sql, world.project.id, card, { nowMs: NOW_MS, limits })
  if (whole.kind !== 'counts' || part.kind !== 'counts') throw new Error('not counts')
  expect(whole.completeSince).toBeNull()
  expect(whole.previous).toBe(0)
  expect(part.total).toBeLessThan(whole.total)
  expect(part.previous).toBeNull()
  expect(Date.parse(part.completeSince ?? '')).toBeGreaterThan(Date.parse(part.from))
})

test('dashboard insights: a card with too many values counts the newest events, and says so', async () => {
  const { projectId } = await newTenant(world.server)
  await appendTitles(world.server.sql, projectId, {
    first: 1,
    last: 12_000,
    title: `'Event ' || n`,
  })
  await world.server.sql`
    update events set source = 'source ' || seq, occurred_at = now() - (12000 - seq) * interval '1 s'
    where project_id = ${projectId}
  `
  await world.server.sql`
    update event_segments set first_at = now() - interval '1 day' where project_id = ${projectId}
  `
  const card = { kind: 'top', groupBy: 'source', metadataPath: null, q: '', hours: 24 } as const
  const limits = { timeLimitMs: 60_000 }
  const result = await readResult(world.server.sql, projectId, card, { nowMs: Date.now(), limits })
  if (result.kind !== 'counts') throw new Error(result.kind)
  expect(result.total).toBeWithin(5_000, 12_000)
  expect(Date.parse(result.completeSince ?? '')).toBeGreaterThan(Date.parse(result.from))
  expect([result.values.length, result.hasMore]).toEqual([8, true])
})

/** The values of an event that a card counts. Channels are named by their first spelling. */
function listValues(event: SentEvent, groupBy: CardGroup | null): string[] {
  switch (groupBy) {
    case null:
      return []
    case 'channel':
      return [event.channelName]
    case 'tag':
      return [...event.tags]
    case 'user':
      return event.userId === null ? [] : [OWNERS.get(event.userId) ?? event.userId]
    case 'source':
      return [event.source]
    case 'metadata': {
      const value = event.metadata['amount']
      return value === undefined ? [] : [String(value)]
    }
  }
}
