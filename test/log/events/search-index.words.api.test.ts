import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { toArray } from '../../../src/database/arrays.ts'
import { FUNCTIONS } from '../../../src/database/sql-files.ts'
import type { Sql } from '../../../src/database/sql.ts'
import { listEventsJson } from '../../../src/log/events/read.ts'
import { buildHistogram } from '../../../src/log/events/histogram.ts'
import { noFilters } from '../../../src/log/events/search-filters.ts'
import {
  indexNextEvents,
  listStaleSegments,
  refreshSegment,
  reindexProject,
} from '../../../src/log/events/search-index.ts'
import { parseSearch } from '../../../src/log/events/search-query.ts'
import { toListFilters } from '../../../src/log/events/search-schema.ts'
import { InvalidRequest } from '../../../src/http/validation.ts'
import { matchesText } from '../../support/naive-words.ts'
import { cloneDatabase, FOREIGN } from '../../support/servers/postgres.ts'
import { newProject } from '../../support/worlds/project.ts'
import { randomPart, randomText, takePart } from '../../support/random-texts.ts'
import { appendTitles, compareIndex, listLive } from '../../support/search-index.ts'
import {
  foldText,
  isLetter,
  isUnspaced,
  UNICODE_FILE,
  writeUnicodeSql,
} from '../../unicode-tables.ts'
import { hasNothingToFind, splitWords } from '../../../src/base/text-search.ts'
import { openSql } from '../../support/sql.ts'

/** Long runs set TIDINGS_FUZZ. */
const CASES = Number(process.env['TIDINGS_FUZZ'] ?? 20)
const EXACT = { missing: [], excess: [], badParts: [] }

let sql: Sql
beforeAll(async () => {
  sql = openSql(await cloneDatabase(), { max: 2 })
})
afterAll(() => sql.end())

/** A project with an event of each title. Returns its uuid. */
async function newLog(titles: readonly string[]): Promise<string> {
  const { id } = await newProject({ sql, url: '' })
  await appendTitles(sql, id, { first: 1, last: titles.length, title: `'x'` })
  await sql`
    update events e
    set title = t.title
    from unnest(${toArray(titles)}::text[]) with ordinality as t (title, seq)
    where e.project_id = ${id} and e.seq = t.seq
  `
  return id
}

/** Returns the seqs that a search of the list finds, from the log or from the search index. */
async function list(id: string, filters = noFilters(), candidatesBeforeIndex = Infinity) {
  const query = { limit: 100, after: 0 }
  const page = await listEventsJson(sql, id, filters, query, { candidatesBeforeIndex })
  return (JSON.parse(page) as { items: { seq: number }[] }).items.map(({ seq }) => seq)
}

/** Searches the log, the feed and the counts, which must agree. Returns the seqs. */
async function findInLog(id: string, text: string): Promise<number[]> {
  const filters = toListFilters({ text })
  const found = await list(id, filters)
  expect([text, await listLive(sql, id, filters)]).toEqual([text, found])
  const range = { nowMs: Date.now() + 1_000 }
  const { total } = await buildHistogram(sql, id, filters, range, { timeLimitMs: 60_000 })
  expect([text, total]).toEqual([text, found.length])
  return found
}

/** Searches the log and then its search index, which must agree. Returns the seqs by text. */
async function findEverywhere(id: string, texts: readonly string[]) {
  const found = new Map<string, number[]>()
  for (const text of texts) found.set(text, await findInLog(id, text))
  await indexNextEvents(sql, id, { minEvents: 1 })
  for (const [text, seqs] of found)
    expect([text, await list(id, toListFilters({ text }), 0)]).toEqual([text, seqs])
  return found
}

const NFD = 'Ze\u0301ro de\u0301faut'
const FOUND: [title: string, texts: string[]][] = [
  ['payment.failed for acme', ['failed', 'payment.failed', 'Payment.f', 'acme', 'failed.for']],
  ['user.signup', ['signup', 'user.sign']],
  [
    'Invoice INV-2024-0042 paid, CVE-2026-2332 order-4711 GH-88',
    ['0042', '2332', '2024', '4711', '88', 'inv-2024', 'CVE-2026-2332', 'inv', 'INV-'],
  ],
  ['deploy/prod finished src/app/main.ts:42', ['prod', 'main.ts', 'app', 'deploy/', '42']],
  ['acme/shop deployed', ['shop', 'acme/shop']],
  [
    'Text\u00addatei, می\u200cخواهم, word\u2060joined',
    ['textdatei', 'می\u200cخواهم', 'میخواهم', 'wordj'],
  ],
  ['Gesamtkonzept an\u200bbei', ['Ge\u00adsamt\u00adkon\u00adzept', 'bei']],
  [
    'api.example.com is down, ada@example.com https://shop.example.com/orders/42 error.log',
    ['example.com', 'orders', '42', 'log', 'ada@ex', 'ada@example.c', 'ada@', 'https://shop'],
  ],
  [
    'db-01.eu.internal v2.3.1 at <module> a<b and c>d key=value',
    [
      ...'db-01 internal 2.3 module v2 V2.3.1 <module> b and value key= key=value'.split(' '),
      'v2.3.1 at',
    ],
  ],
  ['🚀Deployed', ['deployed', '🚀', '🚀Dep']],
  ['Backup failed—disk full', ['disk', 'failed', 'failed—disk']],
  ['“Payment” refused', ['payment', '“Payment”', '"payment', 'refused.']],
  ['我家在，上海，东边', ['上海', '我家', '家在', '东边', '上海，东']],
  ['支払いが失敗しました', ['失敗', '支払い', 'しました', '払いが失敗', 'ました']],
  ['ระบบล้มเหลวอีกครั้ง', ['ล้มเหลว', 'ระบบ', 'ครั้ง']],
  ['«отклонён» Ещё', ['отклонён', 'отклонен', 'ОТКЛОН', 'еще']],
  ['¿qué? l’été', ['qué', 'que', 'été', 'ete', '¿Qué?']],
  [NFD, ['zéro', 'zero', NFD, NFD.normalize('NFC'), 'DÉFAUT']],
  ['Straße ΟΔΟΣ İstanbul ﬁle', ['strasse', 'STRASSE', 'straß', 'οδος', 'istanbul', 'file']],
  ['한국어 서버', ['한국', '한국어'.normalize('NFD'), '하']],
  ['C++ build on C# and .NET at 100%', ['C++', 'c#', '.net', '100%', 'C++ build', 'on .NET']],
  ['Temperature -5 °C #ops', ['-5', '5', '#ops', 'ops', '°C', '°']],
  ["п\u02bcять об'єкт", ['п\u02bcять', 'п\u02bcя']],
  [`b ${'z'.repeat(1_500)}`, [200, 201, 450].map(length => 'z'.repeat(length))],
  [`b ${'z'.repeat(300)}`, [200, 201, 300].map(length => 'z'.repeat(length))],
  ['a --- b & c', ['---', '&', 'a & b', 'b &']],
]

test('the tokens of a long run without spaces are made in one pass', async () => {
  const letters = Array.from({ length: 20_000 }, (_, n) => String.fromCodePoint(0x4e00 + (n % 300)))
  // A quadratic function would exceed the statement time-out.
  const [row] = await sql<[{ n: number }]>`
    select cardinality(tokens_of_words(words_of_text(${letters.join('')}))) as n
  `
  expect(row.n).toBe(301)
})

const NOT_FOUND: [title: string, texts: string[]][] = [
  ['C build, cat, c.', ['C++', 'C#', '.c', '%']],
  ['internet net', ['.NET', 'ternet', '100%']],
  ['failed payment, a b', ['payment.failed', 'b.a', 'a.b.c', 'a&c']],
  ['失 敗', ['失敗', '敗し']],
  ['失败abc', ['bc', '败a b']],
  ['vC++ 2100%', ['C++', '100%']],
  ['п\u02bcять', ['ять']],
  ['v2 v3, nav4 v5', ['v2.3', '2.v', '4', 'v3.nav4.5']],
  ['word', ['...', '--']],
]

test('contract §9 an event is found by each word that a reader sees, and by no other', async () => {
  const events = [...FOUND, ...NOT_FOUND]
  const id = await newLog(events.map(([title]) => title))
  const texts = events.flatMap(([, texts]) => texts)
  const found = await findEverywhere(id, [...new Set(texts)])
  for (const [n, [title, texts]] of events.entries())
    for (const text of texts) {
      const isFound = found.get(text)?.includes(n + 1)
      expect([title, text, isFound]).toEqual([title, text, n < FOUND.length])
    }
})

test.each(['', ' ', '\u0301', '\u0001', 'word \u0301'])(
  'contract §9 the text %p is refused',
  text => {
    expect(() => toListFilters({ text })).toThrow(InvalidRequest)
  },
)

test('contract §9 phrases match whole words, and excluded words exclude in the same way', async () => {
  const id = await newLog(['acme/shop deployed', 'payment.failed', 'C++ and C', '❌ café 上海'])
  const searches: [string, number[]][] = [
    ['"shop deployed"', [1]],
    ['"shop deploy"', []],
    ['"Payment failed"', [2]],
    ['"payment"', [2]],
    ['-shop', [2, 3, 4]],
    ['-"shop deployed"', [2, 3, 4]],
    ['-CAFE -payment.failed', [1, 3]],
    ['"C++"', [3]],
    ['-C++', [1, 2, 4]],
    ['"海"', [4]],
    ['"Café 上"', [4]],
    ['-"海"', [1, 2, 3]],
    ['shop OR failed', [1, 2]],
    ['❌ OR failed', [2, 4]],
    ['-(shop OR failed)', [3, 4]],
  ]
  for (const [q, seqs] of searches) {
    expect([q, await list(id, parseSearch(q).filters)]).toEqual([q, seqs])
    expect([q, await listLive(sql, id, parseSearch(q).filters)]).toEqual([q, seqs])
  }
  await indexNextEvents(sql, id, { minEvents: 1 })
  for (const [q, seqs] of searches) {
    expect([q, await list(id, parseSearch(q).filters, 0)]).toEqual([q, seqs])
  }
})

test('a part of the index with words by former rules is read in full, until it is indexed anew', async () => {
  const titles = Array.from({ length: 40 }, (_, n) => `payment.failed ${n}`)
  const id = await newLog(titles)
  await sql`
    create or replace function tokens_of_words(words text) returns text[]
    language sql immutable as $$ select '{former}'::text[] $$
  `
  await indexNextEvents(sql, id, { minEvents: 1 })
  await sql`update search_parts set rules = 1 where project_id = ${id}`
  await sql.unsafe(FUNCTIONS.files.find(({ name }) => name === 'folded_words')!.text)
  await appendTitles(sql, id, { first: 41, last: 600, title: `'failed ' || n` })
  await indexNextEvents(sql, id, { minEvents: 1 })
  const search = async (q: string) => await list(id, parseSearch(q).filters, 0)
  const expectFound = async () => {
    const from400 = Array.from({ length: 10 }, (_, n) => 400 + n)
    expect(await search('failed 40')).toEqual(from400)
    expect(await search('payment')).toEqual(titles.map((_, n) => n + 1))
    expect(await search('failed tag:"tag 7" source:test 17')).toEqual([177])
    expect(await search('tag:"tag 7" payment')).toEqual([7, 17, 27, 37])
    expect(await search('former')).toEqual([])
  }
  await expectFound()
  await sql`
    insert into stale_segments (project_id, segment, first_at, last_at)
    values (${id}, 0, now() - interval '1 day', now() - interval '1 day')
  `
  const stale = (await listStaleSegments(sql)).find(({ projectId }) => projectId === id)
  expect(await refreshSegment(sql, stale!)).toBe(true)
  const rules = async () => {
    const rows = await sql`select distinct rules from search_parts where project_id = ${id}`
    return rows.map(({ rules }) => rules)
  }
  expect(await rules()).toEqual([3])
  expect(await compareIndex(sql, id)).toEqual(EXACT)
  await expectFound()
  await sql`update search_parts set rules = 1 where project_id = ${id}`
  await reindexProject(sql, id, () => {})
  expect(await rules()).toEqual([3])
})

describe('on random texts of all planes,', () => {
  test('contract §9 the list, the search index, the feed and the simplest code agree', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(randomText, { minLength: 6, maxLength: 6 }),
        fc.array(randomPart, { minLength: 12, maxLength: 12 }),
        async (titles, parts) => {
          const id = await newLog(titles)
          const queries = new Set<string>()
          for (const [n, part] of parts.entries()) {
            const query = takePart(titles[n % titles.length] ?? '', part)
            if (!splitWords(query).some(hasNothingToFind)) queries.add(query)
            else expect(() => toListFilters({ text: query })).toThrow(InvalidRequest)
          }
          const expected = [...queries].map((query): [string, number[]] => [
            query,
            titles.flatMap((title, n) => (matchesText(`${title} `, query) ? [n + 1] : [])),
          ])
          expect(await findEverywhere(id, [...queries])).toEqual(new Map(expected))
          expect(await compareIndex(sql, id)).toEqual(EXACT)
        },
      ),
      { numRuns: CASES },
    )
  })
})

test('the tables of Unicode are those of this Bun', async () => {
  expect(await Bun.file(UNICODE_FILE).text()).toBe(writeUnicodeSql())
})

test('every character is folded, and belongs to a word, as Unicode says', async () => {
  const texts: string[] = []
  for (let first = 1; first < 0x11_0000; first += 4_096) {
    const codes = Array.from({ length: 4_096 }, (_, n) => first + n)
    // A line for each, so that marks do not change the one before.
    const isText = (code: number) => code < 0x11_0000 && (code < 0xd800 || code > 0xdfff)
    texts.push(
      codes
        .filter(isText)
        .map(code => String.fromCodePoint(code))
        .join('\n'),
    )
  }
  for (const text of texts.filter(one => one !== '')) {
    const [row] = await sql<[{ folded: string; words: string; nfd: string }]>`
      select f.folded, words_of_text(f.folded) as words, normalize(${text}::text, NFD) as nfd
      from (select fold_text(${text}) as folded) f
    `
    // An older Postgres does not know how the newest characters are composed.
    if (process.env[FOREIGN] !== undefined && row.nfd !== text.normalize('NFD')) continue
    const folded = foldText(text)
    expect(row.folded === folded).toBe(true)
    const words = [...folded].map(one =>
      !isLetter(one) ? ' ' : isUnspaced(one) ? ` \u0002${one} ` : one,
    )
    expect(row.words === ` ${words.join('')} `.replace(/ +/g, ' ')).toBe(true)
  }
})
