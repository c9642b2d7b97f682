import { randomBytes } from 'node:crypto'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseExact } from '../../../src/http/exact-json.ts'
import { matchesMetadata } from '../../../src/log/events/metadata-values.ts'
import { findNeighbours, listEventsJson, type PageQuery } from '../../../src/log/events/read.ts'
import { buildHistogram } from '../../../src/log/events/histogram.ts'
import { suggestValues } from '../../../src/log/events/suggestions.ts'
import { toSearchFilters } from '../../../src/log/events/search-schema.ts'
import { indexNextEvents } from '../../../src/log/events/search-index.ts'
import {
  hasLatestOnly,
  noFilters,
  type SearchFilters,
} from '../../../src/log/events/search-filters.ts'
import { parseSearch } from '../../../src/log/events/search-query.ts'
import type { ScanLimits } from '../../../src/log/events/log-scan.ts'
import { matchesFilters, takeLatest, type SentEvent } from '../../support/naive-search.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { newProject } from '../../support/worlds/project.ts'
import { appendTitles, listLive } from '../../support/search-index.ts'
import { bootSearchProject, filters, OWNERS } from '../../support/worlds/search-project.ts'
import { forProcess } from '../../support/for-file.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { openSql } from '../../support/sql.ts'

/** Long runs set TIDINGS_FUZZ. */
const CASES = Number(process.env['TIDINGS_FUZZ'] ?? 60)

const world = forProcess(bootSearchProject)

test('contract §9 every search finds the same events as checking each one, in both directions and live', async () => {
  const options = {
    direction: fc.constantFrom('older', 'newer' as const),
    limit: fc.integer({ min: 7, max: 60 }),
    timeLimitMs: fc.constantFrom(0, 4_000),
    firstBatch: fc.constantFrom(7, 60, 256),
    candidatesBeforeIndex: fc.constantFrom(0, 0, 20, Infinity),
    nth: fc.integer({ min: 0, max: 240 }),
  }
  await fc.assert(
    fc.asyncProperty(filters, fc.record(options), async (filters, { direction, nth, ...rest }) => {
      const expected = world.sent
        .filter(one => matchesFilters(one, filters, OWNERS))
        .map(({ seq }) => seq)
      expect(await listLive(world.server.sql, world.project.id, filters)).toEqual(expected)
      if (direction === 'older') {
        const listed = (hasLatestOnly(filters) ? takeLatest(world.sent) : world.sent)
          .filter(one => matchesFilters(one, filters, OWNERS))
          .map(({ seq }) => seq)
        expect(await readAll(filters, {}, rest)).toEqual(listed.toReversed())
        expect(await readAll(filters, { threads: 'all' }, rest)).toEqual(expected.toReversed())
        return
      }
      for (const after of [0, world.sent[nth]?.seq ?? 0])
        expect(await readAll(filters, { after }, rest)).toEqual(expected.filter(seq => seq > after))
    }),
    { numRuns: CASES },
  )
})

test('contract §9 a log of up to 4,096 events is answered in one page, however slow its check is', async () => {
  const url = await cloneDatabase()
  const sql = openSql(url)
  await sql.unsafe(`
    alter function matches_texts rename to fast_matches_texts;
    create function matches_texts(
      title text, description text, needles text[], wanted text[], unwanted text[], has_symbols boolean
    ) returns boolean
    language plpgsql as $$
    begin
      perform pg_sleep(case when title = 'dear' then 600 else 0.001 end);
      return fast_matches_texts(title, description, needles, wanted, unwanted, has_symbols);
    end
    $$
  `)
  const { id } = await newProject({ sql, url: '' })
  const title = `case when n = 1 then 'rare' else 'other' end`
  await appendTitles(sql, id, { first: 1, last: 600, title })
  const { filters } = parseSearch('rare')
  const read = async (lastSeq: number) => {
    await sql`update event_logs set last_seq = ${lastSeq} where project_id = ${id}`
    const limits = { candidatesBeforeIndex: Infinity }
    const page = JSON.parse(await listEventsJson(sql, id, filters, {}, limits))
    const seqs = (page.items as SentEvent[]).map(({ seq }) => seq)
    return { seqs, hasMore: page.nextCursor !== null }
  }
  expect(await read(4_096)).toEqual({ seqs: [1], hasMore: false })
  // The first 256 candidates take longer than the page of a larger log may.
  expect(await read(4_097)).toEqual({ seqs: [], hasMore: true })

  // Each page examines or passes something, so that all events are reached.
  await appendTitles(sql, id, {
    first: 601,
    last: 603,
    title: `case when n = 602 then 'dear' else 'rare' end`,
  })
  const impatient = openSql(url, { settings: { statement_timeout: 1_000 } })
  for (const lastSeq of [4_096, 4_097]) {
    await sql`update event_logs set last_seq = ${lastSeq} where project_id = ${id}`
    const items: (SentEvent & { isUnexamined?: true })[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const query = { limit: 50, ...(cursor !== undefined && { cursor }) }
      const page = JSON.parse(await listEventsJson(impatient, id, filters, query))
      items.push(...page.items)
      cursor = page.nextCursor
    }
    expect(items.map(({ seq, isUnexamined }) => [seq, isUnexamined])).toEqual([
      [603, undefined],
      [602, true],
      [601, undefined],
      [1, undefined],
    ])
  }
  // A count ends there, and says so.
  const range = { nowMs: Date.now() + 1_000 }
  expect(await buildHistogram(impatient, id, filters, range)).toMatchObject({
    total: 1,
    isPartial: true,
  })
  await Promise.all([impatient.end(), sql.end()])
})

test('an event has its existing neighbours', async () => {
  const there = world.sent.filter(one => !one.isDeleted).map(({ seq }) => seq)
  for (const { seq } of world.sent.filter((_, n) => n % 7 === 0)) {
    const { older, newer } = await findNeighbours(world.server.sql, world.project.id, seq)
    expect(older?.seq).toBe(there.findLast(one => one < seq))
    expect(newer?.seq).toBe(there.find(one => one > seq))
  }
})

test('dashboard §6 meta: finds a number in any spelling, and all its digits count', async () => {
  const other = await newProject(world.server)
  const numbers = [
    '1.10',
    '1.1e0',
    '12345678901234567890',
    '12345678901234567891',
    '9'.repeat(150_000),
  ]
  for (const number of [...numbers, '"1.1"', '{"b":1.1}', 'null']) {
    const body = `{"channelName":"c","title":"t","metadata":{"a":${number}}}`
    const headers = { 'content-type': 'application/json' }
    expect((await other.request('/v1/events', { method: 'POST', body, headers })).status).toBe(201)
  }
  const find = async (q: string) => {
    const page = await listEventsJson(world.server.sql, other.id, parseSearch(q).filters, {})
    return (JSON.parse(page) as { items: { seq: number }[] }).items.map(({ seq }) => seq)
  }
  expect(await find('meta:a=1.1')).toEqual([6, 2, 1])
  expect(await find('meta:a=1.10')).toEqual([2, 1])
  expect(await find('meta:a=12345678901234567890')).toEqual([3])
  expect(await find('-meta:a=1.1')).toEqual([8, 7, 5, 4, 3])
  expect(await find('meta:a=1e9999')).toEqual([])
})

test('dashboard §6 meta: finds the same events in the list and live', async () => {
  const other = await newProject(world.server)
  const metadata = [
    { a: 16 },
    { a: '16', 'a.b': 'x y' },
    { a: { b: 'x y' } },
    { a: null },
    { a: 'null' },
    { a: [1, 2] },
    { a: { '-1': 2, '01': 2 } },
    { a: { 'b.c': true } },
    { 'a.b': { c: true } },
    { 'a.b.c': true },
    { 'a.b.c.d.e': 1 },
    {},
  ]
  for (const one of metadata) {
    const event = { channelName: 'c', title: 't', metadata: one }
    expect((await other.post('/v1/events', event)).status).toBe(201)
  }
  const terms: [string, number[]][] = [
    ['meta:a=16', [1, 2]],
    ['meta:a=16.0', [1]],
    ['meta:a=0x10', []],
    ['meta:a=+16', []],
    ['meta:a=1_6', []],
    ['meta:a.b="x y"', [2, 3]],
    ['meta:a=null', [4, 5]],
    ['meta:b=null', []],
    ['-meta:a=null', [1, 2, 3, 6, 7, 8, 9, 10, 11, 12]],
    ['meta:a.1=2', [6]],
    ['meta:a.-1=2', [7]],
    ['meta:a.01=2', [7]],
    ['meta:a.b.c=true', [8, 9, 10]],
    ['meta:a.b.c.d.e=1', [11]],
  ]
  for (const [q, seqs] of terms) {
    const { filters } = parseSearch(q)
    const page = JSON.parse(await listEventsJson(world.server.sql, other.id, filters, { after: 0 }))
    expect([q, (page.items as SentEvent[]).map(({ seq }) => seq)]).toEqual([q, seqs])
    const { is, not } = filters.metadata
    const live = metadata.flatMap((one, n) => {
      const fits = (text: string) => matchesMetadata({ metadata: one } as never, text)
      return is.every(fits) && !not.some(fits) ? [n + 1] : []
    })
    expect([q, live]).toEqual([q, seqs])
  }
})

test('a term gets suggestions of values, from the search index and the newest events', async () => {
  const { account, path, projectId, send, identify } = await newTenant(world.server, 'viewer')
  const suggest = async (field: string, text = '') => {
    const query = new URLSearchParams({ field, text })
    const { status, body } = await account.get(`${path}/suggestions?${query}`)
    expect(status).toBe(200)
    return (body.data.items as { value: string }[]).map(({ value }) => value)
  }
  expect(await suggest('tag')).toEqual([])
  await identify('ada', ['ada@example.com'], { name: 'Ada Lovelace' })
  const metadata = parseExact(
    '{"plan":"pro","order":{"total":42,"a.b":1},"big":1152921506151679042,"":1}',
  ).value
  await send({ channelName: 'Payments', tags: ['vip', 'Beta'], source: 'web', metadata })
  await send({ channelName: 'ops', tags: ['vip'], userId: 'bob', metadata: { plan: 'free' } })
  expect(await suggest('channel', 'pay')).toEqual(['Payments'])
  expect(await suggest('channel', 'pyaments')).toEqual(['Payments'])
  expect(await suggest('channel', 'nothing')).toEqual([])
  expect(await suggest('tag')).toEqual(['vip', 'Beta'])
  expect(await suggest('tag', 'b')).toEqual(['Beta'])
  expect(await suggest('tag', 'ip')).toEqual(['vip'])
  expect(await suggest('source', 'we')).toEqual(['web'])
  expect(await suggest('user', 'love')).toEqual(['ada'])
  expect(await suggest('user', 'bo')).toEqual(['bob'])
  expect(await suggest('meta', 'p')).toEqual(['plan='])
  expect(await suggest('meta', 'order')).toEqual(['order.total='])
  expect((await suggest('meta', 'plan=')).sort()).toEqual(['plan=free', 'plan=pro'])
  expect(await suggest('meta', 'big=')).toEqual(['big=1152921506151679042'])
  const { body } = await account.get(`${path}/suggestions?field=user`)
  expect(body.data.items).toEqual([{ value: 'ada', label: 'Ada Lovelace' }])
  expect((await account.get(`${path}/suggestions?field=has`)).status).toBe(400)
  // Only the search index still has the tags of hidden events.
  await indexNextEvents(world.server.sql, projectId, { minEvents: 1 })
  await world.server.sql`select hide_events(${projectId}, '{1,2}')`
  expect(await suggest('tag', 'V')).toEqual(['vip'])
  expect(await suggest('source', 'web')).toEqual(['web'])
})

test('suggestions do not read large metadata, and are empty when reading takes too long', async () => {
  const { path, account, projectId, send } = await newTenant(world.server, 'viewer')
  const read = async () => {
    const { status, body } = await account.get(`${path}/suggestions?field=meta`)
    return [status, body.data.items.map(({ value }: { value: string }) => value)]
  }
  await send({ metadata: { plan: 'pro' } })
  await send({ metadata: { large: randomBytes(4_000).toString('hex') } })
  // It is small where it is stored.
  await send({ metadata: { long: 'x'.repeat(100_000) } })
  expect(await read()).toEqual([200, ['plan=']])
  await world.server.sql.begin(async other => {
    await other`lock table events in access exclusive mode`
    const settings = { statement_timeout: 50 }
    const impatient = openSql(world.server.databaseUrl, { settings })
    expect(await suggestValues(impatient, projectId, { field: 'meta' })).toEqual([])
    await impatient.end()
  })
})

test('the times of a search and of its range bound it together', () => {
  expect(toSearchFilters({})).toEqual(noFilters())
  const narrowed = { q: 'after:2026-01-02 before:2026-01-05', from: '2026-01-01', to: '2026-01-04' }
  expect(toSearchFilters(narrowed)).toEqual({
    ...noFilters(),
    after: Date.UTC(2026, 0, 2),
    before: Date.UTC(2026, 0, 4),
  })
})

async function readPage(
  filters: SearchFilters,
  query: PageQuery,
  limits?: ScanLimits,
): Promise<{ items: SentEvent[]; nextCursor: string | null }> {
  return JSON.parse(
    await listEventsJson(world.server.sql, world.project.id, filters, query, limits),
  )
}

/** Returns the seqs on all pages. */
async function readAll(
  filters: SearchFilters,
  { after, ...threads }: { after?: number; threads?: 'all' },
  { limit, ...limits }: ScanLimits & { limit: number },
): Promise<number[]> {
  const seqs: number[] = []
  for (let query: PageQuery = after === undefined ? {} : { after }; ;) {
    const page = await readPage(filters, { ...threads, ...query, limit }, limits)
    expect(page.items.length).toBeLessThanOrEqual(limit)
    seqs.push(...page.items.map(({ seq }) => seq))
    if (page.nextCursor === null) return seqs
    query = { cursor: page.nextCursor }
  }
}
