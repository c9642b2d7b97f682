import fc, { type Arbitrary } from 'fast-check'
import { valueOf, type Overlay } from './arbitraries.ts'
import type { Schema } from './operations.ts'
import { momentUpTo, textOf } from './texts.ts'
import type { Violation } from './violations.ts'

// Rules that the document states in words and not in its schemas: for valid and broken requests.

const USER_NAMES = ['ada', 'bob', 'ADA', 'a b/c?d#e', '%2F', 'é', '🦊'] as const
/** A user_id or alias out of a few, so that they repeat. */
const userName = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<string>(...USER_NAMES) },
  { weight: 1, arbitrary: textOf({ minLength: 1, maxLength: 255 }) },
)

/** No timestamp is in the future. */
const timestamp = fc.oneof(
  momentUpTo(2025),
  fc.integer({ min: 0, max: 1.7e9 }),
  fc.double({ min: 0, max: 1.7e9, noNaN: true }),
  fc.integer({ min: 1e11, max: 1.7e12 }),
)
const OVERLAYS: Record<string, Overlay> = {
  createEvent: {
    timestamp,
    userId: fc.option(userName, { freq: 6, nil: null }),
  },
  logEvent: {
    timestamp,
    user_id: userName,
  },
  identify: {
    user_id: userName,
    aliases: fc.uniqueArray(userName, { maxLength: 50, size: 'medium', selector: String }),
  },
}

/** The values of fields whose rules go beyond their schemas. */
export function overlayOf(id: string, { properties = {} }: Schema): Overlay {
  const channel = properties['channelName'] ?? properties['channel']
  const names = channel && composed(valueOf(channel))
  return { ...(names && { channelName: names, channel: names }), ...OVERLAYS[id] }
}

/** The values of a parameter. */
export function parameterOf(name: string, place: string, schema: Schema): Arbitrary<unknown> {
  if (name === 'userId') return place === 'path' ? userName.filter(fitsPath) : userName
  const value = valueOf(schema)
  if (place !== 'path') return value
  return (name === 'name' ? composed(value) : value).filter(text => fitsPath(String(text)))
}

/** The length of a channel name counts its composed form. */
function composed(names: Arbitrary<unknown>): Arbitrary<unknown> {
  return names.filter(name => [...String(name).normalize('NFC')].length <= 255)
}

/** Client or server resolve dot segments: no path can contain them. */
function fitsPath(text: string): boolean {
  return !/^(\.|%2e){1,2}$/i.test(text)
}

const seconds = fc.integer({ min: 310, max: 1e9 }).map(more => Math.floor(Date.now() / 1000) + more)
const future = fc.oneof(
  seconds,
  seconds.map(time => time * 1000),
  seconds.map(time => new Date(time * 1000).toISOString()),
)
const FIELDS: Record<string, [name: string, code: string, value: Arbitrary<unknown>][]> = {
  createEvent: [['timestamp', 'out_of_range', future]],
  logEvent: [['timestamp', 'out_of_range', future]],
}

/** Bodies that break one rule in words each. */
export function brokenInWords(id: string, schema: Schema): Arbitrary<Violation>[] {
  const valid = valueOf(schema, overlayOf(id, schema)) as Arbitrary<object>
  return (FIELDS[id] ?? []).map(([name, code, value]) =>
    fc.tuple(valid, value).map(([object, bad]) => ({
      rule: 'in words',
      path: [name],
      code,
      value: Object.fromEntries([...Object.entries(object), [name, bad]]),
    })),
  )
}

/** Text that is no valid event, with the violated field. */
export const BROKEN_TEXTS: Violation[] = [
  ['title', 'required', ''],
  ['title', 'required', ' \n\t\ufeff '],
  ['title', 'too_short', '\u200b'],
  ['title', 'too_long', `💾 ${'é'.repeat(501)}\nx`],
  ['title', 'too_long', '😀'.repeat(502)],
  ['description', 'too_long', `x\n${'😀'.repeat(5_001)}`],
  ['', 'invalid_encoding', 'a\u0000b'],
].map(([field, code = '', value]) => ({
  rule: 'text',
  path: field ? [field] : [],
  code,
  value,
}))

/** Text that looks like a cursor and is not one of the server. */
export const BROKEN_CURSORS = [
  'a',
  'PA',
  'PDE=',
  'PDE\n',
  'Pi0x',
  'PTE',
  'PDAx',
  'null',
  '💰',
  'PDk5OTk5OTk5OTk5OTk5OTk5OTk5',
]
