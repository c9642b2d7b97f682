import { describe, expect, test } from 'bun:test'
import type { Event } from '../../src/events/schema.ts'
import { parseSearch } from '../../src/events/search-query.ts'
import { toShellJson } from '../../src/dashboard/app/event/curl.ts'
import {
  createMatcher,
  EMPTY_SEARCH,
  needsServer,
  parse,
  readSearch,
  toLiveFilters,
  toQuery,
  toSearchPath,
  toTermText,
} from '../../src/dashboard/app/feed/search.ts'

const EVENT: Event = {
  ...{ id: 'evt_1', seq: 1, channelId: 'chn_1', channelName: 'payments', userId: 'ada' },
  ...{ timestamp: '2026-11-20T10:00:00.000Z', createdAt: '2026-11-20T10:00:00.000Z' },
  ...{
    title: 'New payment',
    description: null,
    icon: null,
    tags: ['vip'],
    metadata: { a: 1, b: { c: ['x'], d: null } },
  },
  ...{ source: 'shop', notify: true },
}
const filtersOf = (text: string) => parseSearch(text).filters
const judge = (text: string) => createMatcher(filtersOf(text))(EVENT)

describe('dashboard.md §3 the filter of the socket', () => {
  test.each([
    ['', {}],
    ['channel:a channel:b tag:x', { channels: ['a', 'b'], tags: ['x'] }],
    ['user:ada source:shop new pay', { userId: 'ada', source: 'shop', text: 'new pay' }],
    ['user:ada user:bob source:a source:b', {}],
    ['-tag:x -word has:icon before:2026-01-01', {}],
    ['"new payment" word', { text: 'word new payment' }],
    [
      `channel:${'a'.repeat(256)} tag:${'b'.repeat(51)} ${'c'.repeat(150)}`,
      { text: 'c'.repeat(150) },
    ],
    ['a'.repeat(201), {}],
  ])('for %p', (text, expected) => {
    expect<object>(toLiveFilters(filtersOf(text))).toEqual(expected)
  })

  test.each([
    ['payment', 'yes'],
    ['tag:vip source:shop has:metadata has:user', 'yes'],
    ['source:shop source:web', 'yes'],
    ['after:2026-11-20T10:00Z before:2026-11-20T10:01Z', 'yes'],
    ['before:2026-11-20T10:00Z', 'no'],
    ['after:2026-11-20T10:01Z', 'no'],
    ['has:icon', 'no'],
    ['-has:metadata', 'no'],
    ['meta:a=1 meta:b.c.0=x -meta:b.d=null', 'yes'],
    ['meta:a=1.0', 'yes'],
    ['meta:a=2', 'no'],
    ['meta:b.c.length=1', 'no'],
    ['-meta:a=1', 'no'],
    ['-tag:vip', 'no'],
    ['-source:shop', 'no'],
    ['"new payment"', 'maybe'],
    ['-word', 'maybe'],
    ['-channel:payments', 'maybe'],
    ['user:ada user:bob', 'maybe'],
    ['-user:ada', 'maybe'],
    ['-user:bob has:icon', 'no'],
  ] as const)('with %p the event is %s', (text, expected) => {
    expect(judge(text)).toBe(expected)
    if (expected === 'maybe') expect(needsServer(filtersOf(text))).toBe(true)
  })
})

describe('dashboard.md §3 a search and its address', () => {
  test('convert to each other', () => {
    const path = toSearchPath('prj_1', {
      ...{ channelId: 'chn_1', text: 'a "b & c" -tag:d#e' },
      ...{ from: '24h', to: '2026-11-20T10:00:00Z' },
    })
    const { searchParams } = new URL(path, 'http://localhost')
    expect(readSearch(Object.fromEntries(searchParams))).toEqual({
      ...{ channelId: 'chn_1', text: 'a "b & c" -tag:d#e' },
      ...{ from: '24h', to: '2026-11-20T10:00:00Z' },
    })
    expect(toSearchPath('prj_1', EMPTY_SEARCH, 'evt_1')).toBe('/p/prj_1/e/evt_1')
  })

  test('omit invalid moments, and a typed channel goes before the chosen one', () => {
    expect(readSearch({ from: 'x', to: 'toString', q: ' channel:a ', channel: 'chn_1' })).toEqual({
      ...EMPTY_SEARCH,
      text: 'channel:a',
    })
    expect(readSearch({ from: 'constructor', channel: '' })).toEqual(EMPTY_SEARCH)
  })

  test('have a range that ends now, and the narrower of two bounds applies', () => {
    const nowMs = Date.parse('2026-11-20T10:00:00Z')
    const search = { ...EMPTY_SEARCH, channelId: 'chn_1', text: 'after:2026-11-20', from: '24h' }
    expect(toQuery(search, nowMs)).toEqual({
      q: 'channel:chn_1 after:2026-11-20',
      from: '2026-11-19T10:00:00.000Z',
    })
    expect(parse(search, nowMs).filters.after).toBe(Date.parse('2026-11-20'))
  })

  test('a value that no search can express has no search', () => {
    expect(toTermText('users', 'a "b" c')).toBe('user:"a \\"b\\" c"')
    expect(toTermText('users', '   ')).toBeUndefined()
    expect(toTermText('tags', 'x'.repeat(600))).toBeUndefined()
  })
})

test('reliability §9 JSON for a shell is equal, without characters that a shell would interpret', () => {
  const hostile = {
    a: `'; rm -rf ~ #`,
    b: '" & calc | more > x < y ^ %PATH% !h! `id` $(id)',
    c: 'back\\slash\\" \\n \n \u001b[2J \u009b \u202e \u2028',
    'k"\\': ['👩‍🚀', 'Zürich'],
  }
  const text = toShellJson(hostile)
  expect(JSON.parse(text)).toEqual(hostile)
  expect(text).not.toMatch(/[&|<>^%!`$'\p{Cc}]|\\"/u)
  expect(text).toContain('👩‍🚀')
})
