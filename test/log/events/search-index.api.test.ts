import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Sql } from '../../../src/database/sql.ts'
import { listEventsJson } from '../../../src/log/events/read.ts'
import { parseSearch } from '../../../src/log/events/search-query.ts'
import {
  indexNextEvents,
  listStaleSegments,
  readIndexLag,
  refreshSegment,
  reindexProject,
} from '../../../src/log/events/search-index.ts'
import { listSeqRanges } from '../../../src/log/events/seq-ranges.ts'
import { purgeDeleted } from '../../../src/log/events/retention.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { newProject } from '../../support/worlds/project.ts'
import { appendTitles, compareIndex, storeTokens } from '../../support/search-index.ts'
import { boot } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'
import { openSql } from '../../support/sql.ts'

const EXACT = { missing: [], excess: [], badParts: [] }
/** "eighth" and "other" are stored as bits, "word7" and "only42" as offsets. */
const TITLE = `
  case when n % 8 = 0 then 'eighth' else 'other' end || ' word' || n % 50 || ' only' || n || ' alpha beta'
`
const EVENTS = 9_000
/** The cursor can stop at any seq. */
const ENDS = [0, 4_095, 4_700, 8_192, EVENTS]
const SEARCHES: [text: string, matches: (seq: number) => boolean][] = [
  ['eighth', n => n % 8 === 0],
  ['eighth other', () => false],
  ['word7', n => n % 50 === 7],
  ['word1', n => n % 50 === 1 || (n % 50 >= 10 && n % 50 < 20)],
  ['eighth word1 tag:"tag 2"', n => n % 8 === 0 && n % 50 === 12],
  [
    'other word1 source:test channel:test tag:"tag 1"',
    n => n % 8 !== 0 && (n % 50 === 1 || n % 50 === 11),
  ],
  ['only409', n => String(n).startsWith('409')],
  ['tag:"tag 3" only81', n => String(n).startsWith('81') && n % 10 === 3],
  ['"word3 only4103"', n => n === 4_103],
  ['only9000', n => n === 9_000],
  ['source:test only1', n => String(n).startsWith('1')],
  ['source:other', () => false],
  ['absent', () => false],
]

let sql: Sql
let other: Sql
beforeAll(async () => {
  const url = await cloneDatabase()
  sql = openSql(url, { max: 4 })
  other = openSql(url, { max: 4 })
})
afterAll(async () => {
  await sql.end()
  await other.end()
})

const newLog = async (events = EVENTS, title = TITLE) => {
  const { id } = await newProject({ sql, url: '' })
  await appendTitles(sql, id, { first: 1, last: events, title })
  return id
}

/** Returns the seqs on all pages, newest first, or in order with `after`. */
async function find(id: string, text: string, query: { after?: number } = {}): Promise<number[]> {
  const seqs: number[] = []
  for (let next: { after?: number; cursor?: string } = query; ;) {
    const json = await listEventsJson(
      sql,
      id,
      parseSearch(text).filters,
      { limit: 1_000, ...next },
      { candidatesBeforeIndex: 0 },
    )
    const page = JSON.parse(json) as { items: { seq: number }[]; nextCursor: string | null }
    seqs.push(...page.items.map(({ seq }) => seq))
    if (page.nextCursor === null) return seqs
    next = { cursor: page.nextCursor }
  }
}

/** Checks each search in one direction, and every other one in both. */
async function expectExact(id: string): Promise<void> {
  const all = Array.from({ length: EVENTS }, (_, n) => n + 1)
  for (const [nth, [text, matches]] of SEARCHES.entries()) {
    const expected = all.filter(matches)
    expect([text, await find(id, text)]).toEqual([text, expected.toReversed()])
    if (nth % 2 === 1) continue
    expect([text, await find(id, text, { after: 0 })]).toEqual([text, expected])
  }
}

/** Sets the head of the log back, so that the indexer stops there. */
async function indexUpTo(id: string, seq: number): Promise<void> {
  await sql`update event_logs set last_seq = ${seq} where project_id = ${id}`
  await indexAll(id, 1)
  await sql`update event_logs set last_seq = ${EVENTS} where project_id = ${id}`
}

async function indexAll(id: string, minEvents?: number, maxBytes?: number): Promise<void> {
  for (;;) {
    const options = { ...(minEvents && { minEvents }), ...(maxBytes && { maxBytes }) }
    const result = await indexNextEvents(sql, id, options)
    if (result?.indexed === 0) return
    if (result && result.indexedSeq === result.lastSeq) return
  }
}

test('a search is exact, whatever part of the log is indexed', async () => {
  const id = await newLog()
  const tokens = await storeTokens(sql, id)
  for (const end of ENDS) {
    await indexUpTo(id, end)
    expect([end, await compareIndex(sql, id, tokens)]).toEqual([end, EXACT])
    await expectExact(id)
  }
  // The third segment has the parts up to 8,192 and after it.
  const [parts] = await sql`select count(*)::int as n from search_parts where project_id = ${id}`
  expect(parts).toEqual({ n: 4 })
})

test('long texts are indexed in parts of limited size, also when their segment is complete', async () => {
  const id = await newLog(5_000)
  await indexAll(id, 1, 10_000)
  expect(await compareIndex(sql, id)).toEqual(EXACT)
  const [parts] = await sql`
    select count(*)::int as n, max(last_seq - first_seq)::int as most from search_parts where project_id = ${id}
  `
  expect(parts?.['n']).toBeGreaterThan(10)
  expect(parts?.['most']).toBeLessThan(500)
  expect(await find(id, 'word7')).toHaveLength(100)
})

test('the beginning of a segment waits until it has enough events', async () => {
  const id = await newLog(600)
  await sql`update event_logs set last_seq = 511 where project_id = ${id}`
  expect(await indexNextEvents(sql, id)).toEqual({ indexedSeq: 0n, indexed: 0, lastSeq: 511n })
  await sql`update event_logs set last_seq = 512 where project_id = ${id}`
  expect(await indexNextEvents(sql, id)).toEqual({ indexedSeq: 512n, indexed: 512, lastSeq: 512n })
})

test('two indexers at once index every event once', async () => {
  const ids = [await newLog(), await newLog()]
  const run = async (connection: Sql) => {
    for (let idle = 0; idle < 20;) {
      for (const id of ids) {
        const result = await indexNextEvents(connection, id, { minEvents: 1, maxBytes: 30_000 })
        idle = result && result.indexedSeq === result.lastSeq ? idle + 1 : 0
      }
    }
  }
  await Promise.all([run(sql), run(sql), run(other), run(other)])
  for (const id of ids) expect(await compareIndex(sql, id)).toEqual(EXACT)
})

test('a segment is indexed anew beside appends and searches', async () => {
  const id = await newLog()
  await indexAll(id)
  // As if the index were damaged.
  await sql`delete from event_tokens where project_id = ${id} and first_token < 'o'`
  expect(await find(id, 'eighth')).not.toHaveLength(EVENTS / 8)
  let isDone = false
  const reindexed = reindexProject(other, id, () => {}).finally(() => (isDone = true))
  let last = EVENTS
  // On a slow machine, endless appends would keep the lock from the other one.
  for (let n = 0; n === 0 || (n < 20 && !isDone); n++) {
    await appendTitles(sql, id, { first: last + 1, last: last + 700, title: TITLE })
    last += 700
    await indexNextEvents(sql, id, { minEvents: 1 })
  }
  // The log has three parts before the first append, and can have more before the list is read.
  expect(await reindexed).toBeGreaterThanOrEqual(3)
  await indexAll(id)
  expect(await compareIndex(sql, id)).toEqual(EXACT)
})

test('an event with more than 500 words is found by each of them', async () => {
  const words = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, n) => `w${from + n}`).join(' ')
  const { id } = await newProject({ sql, url: '' })
  await appendTitles(sql, id, { first: 1, last: 600, title: `'w' || n % 3` })
  await sql`update events set description = ${words(0, 800)} where project_id = ${id} and seq = 7`
  await sql`update events set description = ${words(0, 400)} where project_id = ${id} and seq = 8`
  await indexAll(id)
  expect(await find(id, 'w399')).toEqual([8, 7])
  expect(await find(id, 'w799')).toEqual([7])
  expect(await find(id, 'w800')).toEqual([])
  const tokens = await sql`
    select u.token
    from event_tokens t, unnest(t.tokens) as u (token)
    where t.project_id = ${id} and u.token in ('*', 'w399', 'w799')
  `
  expect(tokens.map(({ token }) => token).sort()).toEqual(['*', 'w399'])
})

test('words of deleted events leave the index, once no more are deleted', async () => {
  const id = await newLog(5_000)
  await indexAll(id, undefined, 50_000)
  await sql`select hide_events(${id}, '{42,4200}')`
  expect(await find(id, 'only42')).not.toContain(42)
  await sql`select restore_events(${id}, '{4200}')`
  expect(await find(id, 'only42')).toContain(4_200)
  await sql`update events set deleted_at = now() - interval '1 hour' where project_id = ${id} and seq = 42`
  await purgeDeleted({ run: (work: (sql: Sql) => unknown) => work(sql) } as never)
  expect(await listStaleSegments(sql)).toEqual([])
  expect((await compareIndex(sql, id)).excess).toContain('42 only42')
  await sql`update stale_segments set last_at = now() - interval '1 hour' where project_id = ${id}`
  const [stale] = await listStaleSegments(sql)
  expect(stale).toMatchObject({ projectId: id, segment: '0' })
  expect(await refreshSegment(sql, stale!)).toBe(true)
  // A part with long texts takes about a second, so each has its own transaction.
  const commits =
    await sql`select count(distinct xmin::text)::int as n from search_parts where project_id = ${id}`
  expect(commits[0]?.n).toBeGreaterThan(3)
  expect(await compareIndex(sql, id)).toEqual(EXACT)
  expect(await sql`select from stale_segments where project_id = ${id}`).toHaveLength(0)
})

test('segments whose events have all expired leave the index, and searches skip them', async () => {
  const id = await newLog(3 * 4_096 + 600)
  await indexAll(id)
  const refresh = async () => {
    await sql`update stale_segments set last_at = now() - interval '1 hour' where project_id = ${id}`
    for (const stale of await listStaleSegments(sql)) await refreshSegment(sql, stale)
  }
  const listSegments = async () =>
    [
      ...(await sql<{ segment: string; parts: number }[]>`
        select s.segment, (
            select count(*)::int from search_parts p where p.project_id = ${id} and p.first_seq >> 12 = s.segment
          ) as parts
        from event_segments s
        where s.project_id = ${id}
        order by s.segment
      `),
    ].map(({ segment, parts }) => [Number(segment), parts])
  const expire = (first: number, last: number) => sql`
    select delete_free_events(${id}, array(select generate_series(${first}::int, ${last}::int)), null)
  `
  const isLeft = (seq: number) => (seq >= 4_000 && seq < 4_096) || seq >= 12_288
  await expire(1, 3_999)
  await expire(4_096, 12_287)
  expect(await listSegments()).toHaveLength(4)
  await refresh()
  expect(await listSegments()).toEqual([
    [0, 1],
    [3, expect.any(Number)],
  ])
  const last = 3 * 4_096 + 600
  const left = Array.from({ length: last }, (_, n) => n + 1).filter(isLeft)
  expect(await compareIndex(sql, id)).toEqual(EXACT)
  for (const [text, matches] of SEARCHES.slice(0, 5)) {
    const expected = left.filter(matches)
    for (const after of [4_090, 5_000, 12_300]) {
      expect([text, await find(id, text, { after })]).toEqual([
        text,
        expected.filter(seq => seq > after),
      ])
    }
    expect([text, await find(id, text)]).toEqual([text, expected.toReversed()])
  }

  await expire(4_000, 4_095)
  const listRanges = () =>
    listSeqRanges(sql, id, { afterMs: null, beforeMs: null, endsAtHead: true })
  expect(await listRanges()).toEqual([{ first: 12_288n, last: BigInt(last) }])
  const json = await listEventsJson(
    sql,
    id,
    parseSearch('absent').filters,
    { limit: 10 },
    { candidatesBeforeIndex: 0, timeLimitMs: 0 },
  )
  expect(JSON.parse(json)).toMatchObject({ items: [], nextCursor: null })

  // The segment of the head stays.
  await expire(12_288, last)
  await refresh()
  expect(await listSegments()).toEqual([[3, 0]])
  expect(await listRanges()).toEqual([])
  expect(await find(id, 'alpha')).toEqual([])
  await appendTitles(sql, id, { first: last + 1, last: last + 10, title: TITLE })
  for (const query of [{}, { after: 0 }, { after: 12_300 }])
    expect(await find(id, 'alpha', query)).toHaveLength(10)
  await expire(last + 1, last + 10)
  expect(await reindexProject(sql, id, () => {})).toBe(4)
  expect(await listSegments()).toEqual([[3, 0]])
})

test('a server indexes what others have appended, and what it appends itself', async () => {
  const databaseUrl = await cloneDatabase()
  const appended = openSql(databaseUrl)
  const { id } = await newProject({ sql: appended, url: '' })
  await appendTitles(appended, id, { first: 1, last: EVENTS, title: TITLE })
  expect(await readIndexLag(appended)).toMatchObject({ projects: 1, events: EVENTS })
  await using server = await boot({ databaseUrl })
  const own = await newProject(server)
  // A few at a time, because a busy server refuses some of 550 requests at once.
  for (let first = 0; first < 550; first += 50) {
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        own.post('/v1/events', { channelName: 'c', title: `title ${first + n}` }),
      ),
    )
    expect(responses.map(({ status }) => status)).toEqual(Array(50).fill(201))
  }
  const seqs = async () => await server.sql`select seq from search_cursors`
  await until(async () => (await readIndexLag(server.sql)).events === 0)
  expect((await seqs()).map(({ seq }) => Number(seq) >= 512)).toEqual([true, true])
  for (const one of [id, own.id]) {
    expect(await compareIndex(server.sql, one)).toEqual(EXACT)
  }
  await appended.end()
})
