import fc, { type Arbitrary } from 'fast-check'
import type { Schema } from './operations.ts'

// One character of each kind that some layer may treat differently.
const UNITS = [
  ...'aZz09 ._-~:;,!?"\'`\\/|<>&%$#@*+=()[]{}^\t\n\r',
  ...'äßéñøİıſÅΩжשאع中日本語한글',
  ...'\u0001\u0008\u000b\u001b\u007f\u0085\u00a0\u00ad\u0301\u0344\u034f\u0958\u115f\u1e9b\u2000\u200b\u200d\u200e',
  ...'\u2028\u2029\u202e\u2066\u2126\u3000\u3164\ufb2c\ufdfa\ufe0f\ufeff\ufffd\uffff',
  ...'💰❤😀🇩🇪𝄞𝒳\u{1d15e}\u{2f800}\u{e0061}\u{10ffff}',
]
const SNIPPETS = [
  "'; drop table events; --",
  '{1,2,"NULL"}',
  '\\x00\\u0000%00&#0;',
  '<script>alert(1)</script>',
  '__proto__',
  'constructor',
  '$1 ${7*7} {{7*7}} %s',
  '👨‍👩‍👧‍👦🏳️‍⚧️1️⃣🏴󠁧󠁢󠁥󠁮󠁧󠁿',
  'x'.repeat(60),
  '  spaced   out  ',
  'null',
  '-0',
]
const EMOJI = ['💰', '❤️', '❤', '©', '1️⃣', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '👨‍👩‍👧‍👦', '🏳️‍⚧️', '🐦‍🔥', '🇩🇪', '👩🏽‍🚒', '🫆']
export const NO_EMOJI = [
  '1',
  '#',
  'a',
  ':no_such_code:',
  '💰💰',
  '🇽🇽',
  '🇩',
  '👨\u200d',
  'Z̷̢͔ͅ',
  '😀\u200d'.repeat(200),
]
export const NO_URL = [
  'https://',
  'http://[',
  'https://a b.test/',
  'https://a.test/\t',
  'ftp://a.test',
]
export const NO_MOMENT = [
  '',
  'now',
  '-1763650000',
  '20250101T000000',
  '2025-13-01T00:00:00Z',
  '2025-02-29T00:00:00Z',
  '2025-01-01T24:00:00Z',
  '2025-01-01T00:60:00Z',
  '2025-01-01T00:00:00+24:00',
  '+12025-01-01T00:00:00Z',
  '2025-01-01T00:00:00Z ',
  '2025-1-1T0:0:0Z',
]

/** Text that satisfies every rule of `schema`, including its pattern. */
export function textOf(schema: Schema): Arbitrary<string> {
  if (schema.format === 'emoji') return fc.constantFrom(...EMOJI)
  if (schema.format === 'date-time') return momentUpTo(9998, schema)
  if (schema.format === 'uuid') return fc.uuid()
  if (schema.format === 'uri') {
    return fc.webUrl({ withQueryParameters: true, withFragments: true })
  }
  const { minLength = 0, maxLength = 300 } = schema
  const pattern = toPattern(schema)
  const accepts = (text: string) => pattern?.test(`a${text}a`) ?? true
  const unit = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...UNITS.filter(accepts)) },
    { weight: 1, arbitrary: anyPoint.filter(accepts) },
  )
  const chunk = fc.oneof(
    { weight: 6, arbitrary: fc.array(unit, { minLength: 1, maxLength: 20 }) },
    { weight: 1, arbitrary: fc.constantFrom(...SNIPPETS.filter(accepts)).map(text => [...text]) },
  )
  return fc
    .tuple(chunk, lengthOf(minLength, maxLength))
    .map(([points, length]) => cycle(points, length))
    .filter(text => pattern?.test(text) ?? true)
}

/** Text of exactly `length` code points, as varied as the schema's pattern allows. */
export function textOfLength(schema: Schema, length: number): Arbitrary<string> {
  if (schema.format === 'uri') return fc.constant('https://a.test/'.padEnd(length, 'x'))
  const pattern = toPattern(schema)
  return fc
    .constantFrom('x', 'é', '中', '😀', 'a b')
    .map(points => cycle([...points], length).replace(/ $/, 'x'))
    .filter(text => pattern?.test(text) ?? true)
}

/** Text that breaks the pattern alone: refused characters are inside, for ends are trimmed. */
export function textAgainst(schema: Schema): Arbitrary<string> | undefined {
  const pattern = toPattern(schema)
  if (!pattern) return undefined
  const refused = UNITS.filter(unit => !pattern.test(`a${unit}a`))
  if (refused.length > 0) return fc.constantFrom(...refused).map(unit => `a${unit}a`)
  return fc
    .array(fc.constantFrom(' ', '\n', '\u3000', '\ufeff'), { minLength: 1, maxLength: 9 })
    .map(points => points.join(''))
    .filter(text => !pattern.test(text))
}

/** Dates and times of RFC 3339; no zone moves them out of the first and last year. */
export function momentUpTo(lastYear: number, schema: Schema = {}): Arbitrary<string> {
  const pattern = toPattern(schema)
  return fc
    .record({
      year: fc.oneof(fc.integer({ min: 101, max: lastYear }), fc.integer({ min: 2020, max: 2025 })),
      month: fc.integer({ min: 1, max: 12 }),
      day: fc.integer({ min: 1, max: 31 }),
      hour: fc.integer({ min: 0, max: 23 }),
      minute: fc.integer({ min: 0, max: 59 }),
      second: fc.integer({ min: 0, max: 59 }),
      fraction: fc.constantFrom('', '.0', '.5', '.123', '.999999999', '.000000000000000001'),
      zone: fc.constantFrom('Z', 'z', '+00:00', '-00:00', '+23:59', '-23:59', '+05:30', '-08:00'),
      mark: fc.constantFrom('T', 't'),
    })
    .filter(
      ({ year, month, day }) =>
        day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate(),
    )
    .map(({ year, month, day, hour, minute, second, fraction, zone, mark }) => {
      const [y, ...rest] = [year, month, day, hour, minute, second].map(n =>
        String(n).padStart(2, '0'),
      )
      const [mo, d, h, mi, s] = rest
      return `${y?.padStart(4, '0')}-${mo}-${d}${mark}${h}:${mi}:${s}${fraction}${zone}`
    })
    .filter(text => pattern?.test(text) ?? true)
}

const anyPoint = fc
  .oneof(fc.integer({ min: 1, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map(point => String.fromCodePoint(point))

function toPattern({ pattern }: Schema): RegExp | undefined {
  return pattern === undefined ? undefined : new RegExp(pattern, 'u')
}

/** A length within bounds; the bounds themselves are more likely. */
function lengthOf(min: number, max: number): Arbitrary<number> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min, max: Math.min(max, min + 30) }) },
    { weight: 1, arbitrary: fc.integer({ min, max }) },
    { weight: 1, arbitrary: fc.constant(max) },
    { weight: 1, arbitrary: fc.constant(min) },
  )
}

/** Repeats the points up to `length`. */
function cycle(points: readonly string[], length: number): string {
  const repeated: string[] = []
  while (repeated.length < length) repeated.push(...points)
  return repeated.slice(0, length).join('')
}
