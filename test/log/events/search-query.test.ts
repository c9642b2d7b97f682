import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { findClosest } from '../../../src/base/closest.ts'
import { LEVELS } from '../../../src/log/channels/level.ts'
import { noFilters, type SearchFilters } from '../../../src/log/events/search-filters.ts'
import {
  applyFixes,
  explainIssue,
  findFix,
  findUnknownKeys,
} from '../../../src/log/events/search-explanation.ts'
import { parseSearch } from '../../../src/log/events/search-query.ts'
import { matchesFilters, type SentEvent } from '../../support/naive-search.ts'
import { toSearchText } from '../../../src/log/events/search-writer.ts'

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
  ['-user:"Ada" user:ada', { users: { is: ['ada'], not: ['"Ada"'] } }],
  ['user:"Ada L"', { users: { is: ['Ada L'], not: [] } }],
  ['user:" Ada"', { users: { is: ['" Ada"'], not: [] } }],
  ['user:a"b', { users: is('a"b') }],
  ['user:"a\\"b\\\\c"', { users: is('"a"b\\c"') }],
  ['source:stripe', { sources: is('stripe') }],
  ['level:high LEVEL:Critical', { levels: is('high', 'critical') }],
  ['level>=high -level:low', { levels: { is: ['high', 'critical'], not: ['low'] } }],
  ['-Level>="high"', { levels: { is: [], not: ['high', 'critical'] } }],
  ['"level>x" level level>=', { phrases: is('level>x'), words: is('level', 'level>=') }],
  ['state:firing -State:"RUNNING"', { states: { is: ['firing'], not: ['running'] } }],
  ['thread:Deploy -thread:"a b"', { threads: { is: ['Deploy'], not: ['a b'] } }],
  ['has:icon -has:USER', { has: { is: ['icon'], not: ['user'] } }],
  ['meta:a.b="x \\"y" -meta:c=""', { metadata: { is: ['a.b=x "y'], not: ['c='] } }],
  ['meta:a="x y', { metadata: { is: ['a=x y'], not: [] } }],
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
  expect(parseSearch(text)).toMatchObject({ filters: { ...noFilters(), ...filters }, issues: [] })
})

test.each<[string, string[], string]>([
  ['a OR b', ['a', 'b'], ''],
  ['a b OR c', ['a b', 'c'], ''],
  ['x (a OR -tag:b) y', ['a', '-tag:b'], 'x y'],
  ['(a OR (b OR c))', ['a', '(b OR c)'], ''],
  ['(tag:a OR f(x)) "OR" AND or', ['tag:a', 'f(x)'], '"OR" or'],
  ['channel:a (channel:b OR channel:c)', ['channel:b', 'channel:c'], 'channel:a'],
])('the search %p has a group', (text, alternatives, rest) => {
  const { filters, issues } = parseSearch(text)
  expect(issues).toEqual([])
  expect(filters).toEqual({
    ...parseSearch(rest).filters,
    groups: [{ isExcluded: false, filters: alternatives.map(one => parseSearch(one).filters) }],
  })
})

test('an OR or a parenthesis without its counterpart is an issue that names its place', () => {
  const read = (text: string) =>
    parseSearch(text).issues.map(
      ({ problem, start, end }) => `${problem} ${text.slice(start, end)}`,
    )
  expect(read('a OR')).toEqual(['or OR'])
  expect(read('OR a')).toEqual(['or OR'])
  expect(read('x (a OR b')).toEqual(['open ('])
  expect(read('foo)')).toEqual(['close )'])
  expect(read('x ( ) y')).toEqual(['empty ( )'])
  expect(read('((((((a))))))')).toEqual(['depth ('])
  expect(read('(((((a)))))')).toEqual([])
  expect(read('tag:a after:x has:y')).toEqual(['time after:x', 'has has:y'])
  expect(read('tag:a -alike:"Order #1"')).toEqual(['removed -alike:"Order #1"'])
})

test('a time ago ends now', () => {
  const after = (text: string) => parseSearch(text, DAY).filters.after
  expect(after('after:2h')).toBe(DAY - 7_200_000)
  expect(after('-before:90S')).toBe(DAY - 90_000)
  expect(after('after:1w')).toBe(DAY - 604_800_000)
  expect(after('after:2y')).toBeNull()
})

test('an explanation says what is required, where it is missing, and what to try', () => {
  const explain = (text: string) => parseSearch(text).issues.map(one => explainIssue(text, one))
  expect(explain('x before:yesterday')).toEqual([
    'Must be a date, ISO 8601 with a time zone like 2026-11-20T09:30Z, or a time ago like 2h. Character 3: before:yesterday. Try before:2d',
  ])
  expect(explain('a'.repeat(501))).toEqual(['Must have at most 500 characters'])
})

test.each([
  ['after:2026-01-01T10:00', 'after:2026-01-01T10:00Z'],
  ['after:2026/01/02', 'after:2026-01-02'],
  ['-after:2026-01', '-after:2026-01-01'],
  ['before:"3 hours"', 'before:3h'],
  ['has:tag', 'has:tags'],
  ['has:desc', 'has:description'],
  ['has:unrelated', undefined],
  ['-level>=hihg', '-level>=high'],
  ['level:debug', undefined],
  ['level=high -level==hihg', 'level:high -level:high'],
  ['level>high level=>"high"', 'level>=high level>=high'],
  ['level<=high', undefined],
  ['-state:fireing', '-state:firing'],
  ['meta:plan:pro', 'meta:plan=pro'],
  ['meta:plan', undefined],
  ['(a OR b', '(a OR b)'],
  ['((a OR (b', '((a OR (b)))'],
  ['a ()) has:tag', 'a  has:tags'],
  ['a ()', 'a'],
  ['after:constructor', undefined],
])('the fix of %p is %p', (text, fixed) => {
  const fixes = parseSearch(text).issues.flatMap(issue => findFix(text, issue) ?? [])
  expect(fixes.length > 0 ? applyFixes(text, fixes) : undefined).toBe(fixed)
})

test('a misspelled name of a filter is found', () => {
  const find = (text: string) => findUnknownKeys(text, parseSearch(text)).map(one => one.text)
  expect(find('chanel:payments -tags:vip since:2h')).toEqual([
    'channel:payments',
    '-tag:vip',
    'after:2h',
  ])
  expect(find('http://x plan:pro "chanel:x" word constructor:x')).toEqual([])
})

test('any expression means the same as its parts, and the same after writing it anew', () => {
  const events = sampleEvents()
  fc.assert(
    fc.property(expression(3), ({ text, matches }) => {
      const { filters, issues } = parseSearch(text)
      fc.pre(!issues.some(({ code }) => code.startsWith('too_')))
      expect(issues).toEqual([])
      expect(parseSearch(toSearchText(filters)).filters).toEqual(filters)
      for (const event of events) {
        expect(matchesFilters(event, filters, new Map())).toBe(matches(event))
      }
    }),
    { numRuns: 300 },
  )
})

test('any text is parsed with bounded work, and its issues lie within it', () => {
  const piece = fc.oneof(
    fc.constantFrom('(', ')', '-(', ' OR ', ' ', 'a', '"', 'tag:', 'f(', '-', '\\', ':', '\n'),
    fc.constantFrom('after:1h', 'has:icon', 'channel:', 'USER:', 'foo:', 'after:2026-01-01T10:00Z'),
    fc.string({ unit: 'grapheme', maxLength: 6 }),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 120 }), pieces => {
      const text = pieces.join('')
      const { filters, issues, parts, terms } = parseSearch(text)
      for (const { start, end } of [...issues, ...parts, ...terms]) {
        expect(start).toBeGreaterThanOrEqual(0)
        expect(end).toBeGreaterThanOrEqual(start)
        expect(end).toBeLessThanOrEqual(text.length)
      }
      expect(countTerms(filters)).toBeLessThanOrEqual(20)
      for (const issue of issues) expect(explainIssue(text, issue)).not.toBe('')
      if (issues.length > 0) return
      const again = parseSearch(toSearchText(filters))
      // Written filters may have more quotes than the text: its limits apply to what people type.
      if (again.issues.length === 0) expect(again.filters).toEqual(filters)
      else expect(again.issues[0]?.code).toMatch(/^too_/)
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  ['before:yesterday', ['before invalid_format']],
  ['after:2026-02-30', ['after invalid_format']],
  ['after:2026-01-01T10:00', ['after invalid_format']],
  ['meta:plan meta:=x', ['meta invalid_format', 'meta invalid_format']],
  ['has:everything', ['has invalid_value']],
  ['state:open', ['state invalid_value']],
  ['level:x -level>=constructor', ['level invalid_value', 'level invalid_value']],
  ['level>high -LEVEL<"high"', ['level invalid_value', 'level invalid_value']],
  ['a \u0301 "\u0301 \u0302"', [' invalid_value', ' invalid_value']],
  ['-user:\u0301 user:"\u0301"', ['user invalid_value']],
  ['-has:toString before:x', ['has invalid_value', 'before invalid_format']],
  ['a '.repeat(21), [' too_many']],
  ['🦊'.repeat(501), [' too_long']],
])('the search %p has issues', (text, expected) => {
  const { issues } = parseSearch(text)
  expect(issues.map(({ path, code }) => `${path.join('.')} ${code}`)).toEqual(expected)
  for (const issue of issues) expect(explainIssue(text, issue)).not.toBe('')
})

test('500 characters and 20 terms are accepted', () => {
  expect(parseSearch('🦊'.repeat(500)).issues).toEqual([])
  expect(parseSearch('a '.repeat(20)).issues).toEqual([])
})

test.each([
  ['channel:a OR channel:b', 'channel:a channel:b'],
  ['user:a OR (user:"a b" OR user:a)', 'user:a user:"a b"'],
  ['(source:a) x', 'source:a x'],
  ['x level>=high', 'level:high level:critical x'],
  ['level:low OR level>=critical', 'level:low level:critical'],
  ['state:firing OR state:failed thread:"a b"', 'state:firing OR state:failed thread:"a b"'],
  ['thread:a OR thread:"b c"', 'thread:a thread:"b c"'],
  ['-(channel:a OR channel:b) -channel:a', '-channel:a -channel:b'],
  ['(channel:b OR channel:c) channel:a', 'channel:a (channel:b OR channel:c)'],
  ['-(channel:a OR tag:b)', '-(channel:a OR tag:b)'],
  ['  -tag:b   tag:a  x ', 'tag:a -tag:b x'],
  ['a OR has:x (has:y)', 'a'],
  ['x "y  z" channel:"a b" after:2026-01-01T00:00:00Z', 'channel:"a b" after:2026-01-01 "y  z" x'],
  ['before:2026-01-01T10:30:00.000+00:30', 'before:2026-01-01T10:00Z'],
  ['before:2026-01-01T10:30:01Z', 'before:2026-01-01T10:30:01Z'],
  ['meta:"a=\\"b\\""', 'meta:"a=\\"b\\""'],
  ['before:2026-01-01T10:30:00.001Z', 'before:2026-01-01T10:30:00.001Z'],
])('the search %p is written as %p', (text, written) => {
  expect(toSearchText(parseSearch(text).filters)).toBe(written)
})

function is<Value extends string>(...values: Value[]) {
  return { is: values, not: [] }
}

interface Expression {
  text: string
  matches(event: SentEvent): boolean
}

const LEVEL_NAMES = { a: 'low', b: 'normal', c: 'critical' }

/** Terms, beside each other or in groups, and what they mean. */
function expression(depth: number): fc.Arbitrary<Expression> {
  const leaf: fc.Arbitrary<Expression & { name: string; isNot: boolean }> = fc
    .record({
      name: fc.constantFrom('channel', 'source', 'level', 'tag', ''),
      value: fc.constantFrom('a', 'b', 'c'),
      isNot: fc.boolean(),
    })
    .map(({ name, value, isNot }) => {
      const text = `${name && `${name}:`}${name === 'level' ? LEVEL_NAMES[value] : value}`
      const { filters } = parseSearch(text)
      const matches = (event: SentEvent) => matchesFilters(event, filters, new Map()) !== isNot
      return { name, isNot, text: isNot ? `-${text}` : text, matches }
    })
  const group = fc
    .record({
      isNot: fc.boolean(),
      inner: depth === 0 ? leaf : fc.oneof(leaf, expression(depth - 1)),
    })
    .map(({ isNot, inner }) => ({
      ...{ name: 'group', isNot },
      text: `${isNot ? '-' : ''}(${inner.text})`,
      matches: (event: SentEvent) => inner.matches(event) !== isNot,
    }))
  // Channels beside each other are alternatives, and so are sources and levels.
  const isOneOf = ({ name, isNot }: { name: string; isNot: boolean }) =>
    ['channel', 'source', 'level'].includes(name) && !isNot
  const all = fc
    .array(fc.oneof({ weight: 2, arbitrary: leaf }, group), { minLength: 1, maxLength: 3 })
    .map(parts => ({
      text: parts.map(({ text }) => text).join(' '),
      matches: (event: SentEvent) =>
        parts.every(part =>
          isOneOf(part)
            ? parts.some(one => isOneOf(one) && one.name === part.name && one.matches(event))
            : part.matches(event),
        ),
    }))
  return fc.array(all, { minLength: 1, maxLength: 3 }).map(alternatives => ({
    text: alternatives.map(({ text }) => text).join(' OR '),
    matches: event => alternatives.some(one => one.matches(event)),
  }))
}

function sampleEvents(): SentEvent[] {
  const some = fc.constantFrom('a', 'b', 'c')
  const event = fc.record({
    ...{ channel: some, source: some, tags: fc.uniqueArray(some), title: some },
    level: fc.constantFrom(undefined, ...LEVELS),
  })
  return fc.sample(event, { numRuns: 12, seed: 7 }).map(({ channel, ...rest }) => ({
    ...{ seq: 1, channelName: channel, description: '', icon: undefined, metadata: {} },
    ...{ userId: null, timestamp: '2026-01-01', isDeleted: false },
    ...rest,
  }))
}

function countTerms({ groups, after, before, ...lists }: SearchFilters): number {
  const values = Object.values(lists).map(({ is, not }) => is.length + not.length)
  const nested = groups.flatMap(({ filters }) => filters.map(countTerms))
  return [...values, ...nested, after === null ? 0 : 1, before === null ? 0 : 1].reduce(
    (a, b) => a + b,
  )
}

const names = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 6 })

test('the closest candidate is the first of those that differ least, up to a third', () => {
  fc.assert(
    fc.property(names, fc.array(names, { maxLength: 10 }), (text, candidates) => {
      const toRank = (name: string) =>
        text.length > 1 && name.startsWith(text) ? 0.5 : countEdits(text, name)
      const most = Math.max(1, Math.floor(text.length / 3))
      const similar = candidates.filter(name => toRank(name) <= most)
      const [expected] = similar.toSorted((a, b) => toRank(a) - toRank(b))
      expect(findClosest(text, candidates)).toBe(expected)
    }),
    { numRuns: 300 },
  )
})

test('a text is compared with the first 200 candidates, by their first 32 characters', () => {
  const others = Array.from({ length: 200 }, (_, n) => `${n}`.repeat(9))
  expect(findClosest('pyaments', [...others.slice(1), 'payments'])).toBe('payments')
  expect(findClosest('pyaments', [...others, 'payments'])).toBeUndefined()
  const long = 'x'.repeat(32)
  expect(findClosest(`${long}abcdefghijklmnop`, [`${long}zyvutsrqponmlkji`])).toBeDefined()
})

/** Counts the characters to insert, delete, replace or swap with the next one, trying each way. */
function countEdits(from: string, to: string): number {
  if (from === '' || to === '') return from.length + to.length
  const [a, b] = [from.slice(1), to.slice(1)]
  if (from[0] === to[0]) return countEdits(a, b)
  const isSwapped = from.length > 1 && from[0] === to[1] && from[1] === to[0]
  return (
    1 +
    Math.min(
      ...[countEdits(a, to), countEdits(from, b), countEdits(a, b)],
      isSwapped ? countEdits(a.slice(1), b.slice(1)) : Infinity,
    )
  )
}
