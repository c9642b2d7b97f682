import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  HAS_FIELDS,
  noFilters,
  parseSearch,
  toSearchText,
  type SearchFilters,
} from '../../src/events/search-query.ts'

const DAY = Date.UTC(2026, 0, 1)

test.each<[string, Partial<SearchFilters>]>([
  ['', {}],
  ['  \t\n ', {}],
  ['channel:payments', { channels: is('payments') }],
  ['CHANNEL:Payments', { channels: is('Payments') }],
  ['channel:a channel:b', { channels: is('a', 'b') }],
  ['channel:a channel:a', { channels: is('a') }],
  ['channel:"New payments"', { channels: is('New payments') }],
  ['tag:vip -tag:test', { tags: { is: ['vip'], not: ['test'] } }],
  ['tag:plan:pro', { tags: is('plan:pro') }],
  ['-user:"Ada L"', { users: { is: [], not: ['Ada L'] } }],
  ['user:a"b', { users: is('a"b') }],
  ['user:"a\\"b\\\\c"', { users: is('a"b\\c') }],
  ['source:stripe', { sources: is('stripe') }],
  ['has:icon -has:USER', { has: { is: ['icon'], not: ['user'] } }],
  ['meta:a.b=c=d -meta:"plan=pro one"', { metadata: { is: ['a.b=c=d'], not: ['plan=pro one'] } }],
  ['foo:bar http://x', { words: is('foo:bar', 'http://x') }],
  ['pay -test', { words: { is: ['pay'], not: ['test'] } }],
  ['"exact words" -"not these"', { phrases: { is: ['exact words'], not: ['not these'] } }],
  ['"open', { phrases: is('open') }],
  ['"a"b', { phrases: is('a'), words: is('b') }],
  ['"" tag:"" -"" tag:" "', {}],
  ['tag: -', { words: is('tag:', '-') }],
  ['--x', { words: { is: [], not: ['-x'] } }],
  ['a-b -c-d', { words: { is: ['a-b'], not: ['c-d'] } }],
  ['tag:"open', { tags: is('open') }],
  ['"a\\', { phrases: is('a') }],
  ['after:2026-01-01', { after: DAY }],
  ['after:2026-01-01T10:00Z', { after: DAY + 36_000_000 }],
  ['before:"2026-01-01T00:00:00.5+01:00"', { before: DAY - 3_600_000 + 500 }],
  ['before:2026-01-02 before:2026-01-01', { before: DAY }],
  ['after:2026-01-01 after:2025-01-01', { after: DAY }],
  ['-before:2026-01-01', { after: DAY }],
  ['-after:2026-01-01', { before: DAY }],
  ['tag:🦊 Zürich', { tags: is('🦊'), words: is('Zürich') }],
  ['constructor:x __proto__:y', { words: is('constructor:x', '__proto__:y') }],
])('the search %p', (text, filters) => {
  expect(parseSearch(text)).toEqual({ filters: { ...noFilters(), ...filters }, issues: [] })
})

test.each([
  ['before:yesterday', ['before invalid_format']],
  ['after:2026-02-30', ['after invalid_format']],
  ['after:2026-01-01T10:00', ['after invalid_format']],
  ['meta:plan meta:=x', ['meta invalid_format', 'meta invalid_format']],
  ['has:everything', ['has invalid_value']],
  ['-has:toString before:x', ['has invalid_value', 'before invalid_format']],
  ['a '.repeat(21), [' too_many']],
  ['🦊'.repeat(501), [' too_long']],
])('the search %p has issues', (text, expected) => {
  const { issues } = parseSearch(text)
  expect(issues.map(({ path, code }) => `${path.join('.')} ${code}`)).toEqual(expected)
  for (const { message } of issues) expect(message).not.toBe('')
})

test('500 characters and 20 terms are accepted', () => {
  expect(parseSearch('🦊'.repeat(500)).issues).toEqual([])
  expect(parseSearch('a '.repeat(20)).issues).toEqual([])
})

test.each([
  ['  -tag:b   tag:a  x ', 'tag:a -tag:b x'],
  ['x "y  z" channel:"a b" after:2026-01-01T00:00:00Z', 'channel:"a b" after:2026-01-01 "y  z" x'],
  ['before:2026-01-01T10:30:00.000+00:30', 'before:2026-01-01T10:00Z'],
  ['before:2026-01-01T10:30:01Z', 'before:2026-01-01T10:30:01Z'],
  ['before:2026-01-01T10:30:00.001Z', 'before:2026-01-01T10:30:00.001Z'],
])('the search %p is written as %p', (text, written) => {
  expect(toSearchText(parseSearch(text).filters)).toBe(written)
})

test('filters of any text survive writing and parsing', () => {
  const piece = fc.oneof(
    fc.constantFrom('-', '"', '\\', ':', ' ', '\n', 'tag:', 'has:icon', 'before:', '2026-01-01'),
    fc.constantFrom('channel:', 'USER:', 'source:', 'foo:', 'after:2026-01-01T10:00Z', 'word'),
    fc.string({ unit: 'grapheme', maxLength: 6 }),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 15 }), pieces => {
      const { filters } = parseSearch(pieces.join(''))
      const { filters: again, issues } = parseSearch(toSearchText(filters))
      // Written filters may have more quotes than the text: its limits apply to what people type.
      if (issues.length === 0) expect(again).toEqual(filters)
      else expect(issues[0]?.code).toMatch(/^too_/)
    }),
    { numRuns: 2_000 },
  )
})

test('written filters are parsed unchanged', () => {
  const value = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
    .filter(one => one.trim() !== '')
  const word = value.filter(one => !/\s/u.test(one) && !/^[-"]|^[a-z]+:/iu.test(one))
  const choice = <Value extends string>(values: fc.Arbitrary<Value>) => {
    const list = fc.uniqueArray(values, { maxLength: 2 })
    return fc.record({ is: list, not: list })
  }
  const moment = fc.option(fc.integer({ min: Date.UTC(1000, 0), max: Date.UTC(9999, 0) }), {
    nil: null,
  })
  const filters: fc.Arbitrary<SearchFilters> = fc.record({
    channels: choice(value),
    users: choice(value),
    sources: choice(value),
    tags: choice(value),
    metadata: choice(value.map(one => `a${one}=${one}`)),
    has: choice(fc.constantFrom(...HAS_FIELDS)),
    words: choice(word),
    phrases: choice(value),
    after: moment,
    before: moment,
  })
  fc.assert(
    fc.property(filters, filters => {
      const { filters: read, issues } = parseSearch(toSearchText(filters))
      if (issues.length === 0) expect(read).toEqual(filters)
      else expect(issues[0]?.code).toMatch(/^too_/)
    }),
    { numRuns: 1_000 },
  )
})

function is<Value extends string>(...values: Value[]) {
  return { is: values, not: [] }
}
