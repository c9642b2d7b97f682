import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { toArray } from '../../../src/database/arrays.ts'
import { HOUR_MS } from '../../../src/log/events/time-buckets.ts'
import { parseSearch } from '../../../src/log/events/search-query.ts'
import { toSearchText } from '../../../src/log/events/search-text.ts'
import { groupAlike } from '../../../src/log/insights/alike.ts'
import { expectIssues } from '../../support/answers.ts'
import { matchesFilters, toShape, type SentEvent } from '../../support/naive-search.ts'
import type { TestProject } from '../../support/worlds/project.ts'
import { bootSearchProject, filters, NOW_MS, OWNERS } from '../../support/worlds/search-project.ts'
import type { Booted } from '../../support/servers/server.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { randomText } from '../../support/random-texts.ts'

let server: Booted
let project: TestProject
let sent: SentEvent[]
beforeAll(async () => {
  ;({ server, project, sent } = await bootSearchProject())
})
afterAll(() => server[Symbol.asyncDispose]())

async function listShapes(titles: readonly string[]): Promise<string[]> {
  const rows = await server.sql<{ shape: string }[]>`
    select shape_of_title(t.title) as shape
    from unnest(${toArray(titles)}::text[]) with ordinality as t (title, n)
    order by t.n
  `
  return rows.map(({ shape }) => shape)
}

describe('dashboard alike titles: the shape of a title', () => {
  test.each([
    [
      'Order # paid: #',
      ['Order #1234 paid: 99.90 €', 'Order #77 paid: 5 €', 'Order 8 paid: $1,200'],
    ],
    ['Order # paid: #', ['Order 1 paid: EUR 1.234,50', 'Order 2 paid: 1 234,50 SEK']],
    ['Balance: #', ['Balance: -5', 'Balance: +5.2', 'Balance: −€5', 'Balance: €-5']],
    ['Backup of # done', ['Backup of 2026-11-26 done', 'Backup of 2026-11-26T09:30:00.123Z done']],
    ['Backup of # done', ['Backup of 26 Nov 2026 done', 'Backup of November 26th, 2026 done']],
    ['Starts at #', ['Starts at 9:30 PM', 'Starts at 09:30', 'Starts at 12:30:45']],
    ['User # left', ['User 550e8400-e29b-41d4-a716-446655440000 left', 'User 7 left']],
    ['Deployed #', ['Deployed 3fa2b1c', 'Deployed 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567']],
    ['Charge pi_# failed', ['Charge pi_3NqX9a2eZvKYlo2C failed', 'Charge pi_7 failed']],
    ['evt_# sent', ['evt_01kadz5p6vf2w8y3m4n5q6r7s8 sent']],
    [
      'Login from #',
      ['Login from 10.0.0.1', 'Login from 2001:db8::1', 'Login from 00:1b:44:11:3a:b7'],
    ],
    ['Sign-in by OAuth#', ['Sign-in by OAuth2', 'Sign-in by OAuth1']],
    ['CPU at #%', ['CPU at 95%', 'CPU at 7.5%']],
    ['Try it the # time', ['Try it the 1st time', 'Try it the 3rd time']],
    ['# of # tests failed', ['3 of 120 tests failed', '1 of 2 tests failed']],
    ['الطلب # مدفوع', ['الطلب ١٢٣ مدفوع', 'الطلب 5 مدفوع']],
    ['注文#号', ['注文12号', '注文５号']],
    ['A word', ['A word']],
  ])('%s', async (shape, titles) => {
    expect(await listShapes(titles)).toEqual(titles.map(() => shape))
  })

  test('is the title itself without digits, and equal for titles that differ in digits alone', async () => {
    const digits = [...'0123456789٠٥७৯５𝟗𞥖']
    const case_ = fc.record({ text: randomText, digits: fc.array(fc.constantFrom(...digits)) })
    await fc.assert(
      fc.asyncProperty(fc.array(case_, { minLength: 50, maxLength: 50 }), async cases => {
        const texts = cases.map(({ text }) => text)
        const others = cases.map(({ text, digits }) => {
          let n = 0
          return text.replace(/\p{Nd}/gu, one => digits[n++] ?? one)
        })
        const shapes = await listShapes(texts)
        expect(await listShapes(others)).toEqual(shapes)
        expect(await listShapes(shapes)).toEqual(shapes)
        expect(shapes.filter(one => /\p{Nd}/u.test(one))).toEqual([])
        const plain = texts.map(text => text.replace(/\p{Nd}/gu, ''))
        expect(await listShapes(plain)).toEqual(plain)
      }),
      { numRuns: 20 },
    )
  })

  test('has every character of Unicode but digits', async () => {
    for (let first = 1; first < 0x11_0000; first += 4_096) {
      const codes = Array.from({ length: 4_096 }, (_, n) => first + n)
      const isText = (code: number) => code < 0x11_0000 && (code < 0xd800 || code > 0xdfff)
      // A line for each, so that a digit touches nothing.
      const text = codes
        .filter(isText)
        .map(code => `${String.fromCodePoint(code)}\n`)
        .join('')
      const [shape] = await listShapes([text])
      expect(shape === text.replace(/\p{Nd}/gu, '#')).toBe(true)
    }
  })

  test('keeps words, whatever numbers stand between them', async () => {
    const hex = (length: number) =>
      fc
        .string({
          unit: fc.constantFrom(...'0123456789abcdef'),
          minLength: length,
          maxLength: length,
        })
        .filter(one => /\d/.test(one))
    const amount = fc.tuple(fc.nat(), fc.nat(99)).map(([whole, part]) => `${whole}.${part}`)
    const number = fc.oneof(
      fc.nat().map(String),
      fc.nat().map(n => `#${n}`),
      amount,
      amount.map(n => `€${n}`),
      amount.map(n => `${n} €`),
      amount.map(n => `${n} USD`),
      fc.nat().map(n => n.toLocaleString('de')),
      fc.nat().map(n => n.toLocaleString('fr')),
      fc
        .date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true })
        .map(date => date.toISOString()),
      fc.uuid(),
      hex(7),
      hex(40),
      fc.ipV4(),
    )
    const word = fc.constantFrom(
      'order',
      'Paid:',
      'by',
      'für',
      '失敗',
      'оплата',
      '🦊',
      '(new)',
      'deadbeef',
    )
    const words = fc.array(word, { minLength: 1, maxLength: 3 }).map(some => some.join(' '))
    const title = fc.array(fc.tuple(words, number), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fc.array(title, { minLength: 20, maxLength: 20 }), async titles => {
        const shapes = await listShapes(titles.map(parts => parts.flat().join(' ')))
        expect(shapes).toEqual(titles.map(parts => parts.map(([some]) => `${some} #`).join(' ')))
      }),
      { numRuns: 20 },
    )
  })

  test('takes a time that grows with the length of the title, not with its square', async () => {
    const parts = [
      '0',
      '0-',
      'a0',
      'a',
      '0a:',
      ':',
      '0.0,',
      'f',
      '-',
      ' Jan 0',
      '€ ',
      '٠',
      '٠a',
      '0Z',
    ]
    for (const part of parts) {
      const text = part.repeat(Math.ceil(100_000 / part.length))
      const [shape] = await server.sql.begin(async tx => {
        // The square would take hours.
        await tx`set local statement_timeout = '20s'`
        return tx<{ shape: string }[]>`select shape_of_title(${text}) as shape`
      })
      expect(shape?.shape).not.toMatch(/\d/)
    }
  })
})

test('dashboard alike titles: groups have the events that a search finds', async () => {
  const limits = { candidatesBeforeIndex: 0, timeLimitMs: 10_000 }
  await fc.assert(
    fc.asyncProperty(filters, async some => {
      const { filters: wanted, issues } = parseSearch(toSearchText(some))
      fc.pre(issues.length === 0)
      const titles = await groupAlike(server.sql, project.id, wanted, {
        nowMs: NOW_MS,
        limits,
      })
      const fromMs = wanted.after ?? Math.min(wanted.before ?? NOW_MS, NOW_MS) - 168 * HOUR_MS
      const found = sent.filter(
        one => matchesFilters(one, wanted, OWNERS) && Date.parse(one.timestamp) >= fromMs,
      )
      const groups = Map.groupBy(found, ({ title }) => toShape(title))
      expect(titles.total).toBe(found.length)
      expect(titles.completeSince).toBeNull()
      const sizes = [...groups.values()].map(all => all.length).toSorted((a, b) => b - a)
      expect(titles.groups.map(({ total }) => total)).toEqual(sizes.slice(0, 50))
      expect(titles.hasMore).toBe(sizes.length > 50)
      for (const {
        shape,
        total,
        example,
        channels,
        channelCount,
        firstAt,
        lastAt,
        counts,
      } of titles.groups) {
        const all = groups.get(shape) ?? []
        expect([shape, total]).toEqual([shape, all.length])
        const times = all.map(({ timestamp }) => timestamp).toSorted()
        expect([firstAt, lastAt]).toEqual([times.at(0)!, times.at(-1)!])
        expect(example).toBe(all.at(-1)!.title)
        const names = new Set(all.map(({ channelName }) => channelName))
        expect(new Set(channels.map(({ name }) => name))).toEqual(names)
        expect(channelCount).toBe(names.size)
        const expected = counts.map(() => 0)
        for (const time of times) {
          const n = Math.floor((Date.parse(time) - Date.parse(titles.from)) / titles.stepMs)
          // The last bucket has the end of the range, too.
          const bucket = Math.min(n, expected.length - 1)
          expected[bucket] = (expected[bucket] ?? 0) + 1
        }
        expect(counts).toEqual(expected)
        expect(counts.length).toBeLessThanOrEqual(30)
      }
    }),
    { numRuns: 60 },
  )
})

test('dashboard alike titles: the events of a group are found, in any spelling of its numbers', async () => {
  const { account, path, send } = await newTenant(server, 'viewer')
  for (const title of [
    'Order #1 paid: 5 €',
    'Order #22 paid: 99.90 €',
    'Order #3 paid',
    'Hi',
    'Order paid',
  ])
    await send({ title })
  await send({ title: 'Order #4 paid: $1', channelName: 'shop' })
  const { status, body } = await account.get(`${path}/alike?q=order`)
  expect(status).toBe(200)
  const [first] = body.data.groups
  expect(body.data.groups.map(({ shape, total }: any) => `${total} ${shape}`).toSorted()).toEqual([
    ...['1 Order # paid', '1 Order paid', '3 Order # paid: #'],
  ])
  expect(first).toMatchObject({ example: 'Order #4 paid: $1', channelCount: 2 })
  const search = async (q: string) => {
    const query = new URLSearchParams({ q })
    const { data } = (await account.get(`${path}/events?${query}`)).body
    return data.items.map(({ title }: { title: string }) => title)
  }
  const paid = ['Order #4 paid: $1', 'Order #22 paid: 99.90 €', 'Order #1 paid: 5 €']
  expect(await search(`alike:"${first.shape}"`)).toEqual(paid)
  expect(await search('alike:"Order 9 paid: 0 USD"')).toEqual(paid)
  expect(await search('alike:"Order #1 paid" alike:hi')).toEqual(['Order #3 paid'])
  expect(await search('alike:Hi alike:"Order #1 paid"')).toEqual(['Hi', 'Order #3 paid'])
  expect(await search('-alike:"Order # paid: #"')).toEqual(['Order paid', 'Hi', 'Order #3 paid'])
  expectIssues(await account.get(`${path}/alike?q=has:all`), 'q.has invalid_value')
  expectIssues(await account.get(`${path}/alike?from=never`), 'from invalid_format')
})

test('dashboard alike titles: counts say since when they are complete, and groups are limited', async () => {
  const wanted = parseSearch('-tag:test').filters
  const limits = { maxCandidates: 1, firstBatch: 30, timeLimitMs: 60_000 }
  const whole = await groupAlike(server.sql, project.id, wanted, { nowMs: NOW_MS })
  const part = await groupAlike(server.sql, project.id, wanted, { nowMs: NOW_MS, limits })
  expect(part.total).toBeLessThan(whole.total)
  expect(Date.parse(part.completeSince ?? '')).toBeGreaterThan(Date.parse(part.from))

  const { account, path, send } = await newTenant(server, 'viewer')
  for (let n = 0; n < 51; n++) {
    await send({ title: String.fromCodePoint(0x4e00 + n).repeat(1 + (n % 3)) })
  }
  const { data } = (await account.get(`${path}/alike`)).body
  expect([data.groups.length, data.total, data.hasMore]).toEqual([50, 51, true])
})
