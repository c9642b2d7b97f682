import fc, { type Arbitrary } from 'fast-check'
import { gzipSync } from 'node:zlib'

/** A change of the bytes of a body. */
export interface Mutation {
  name: string
  apply(bytes: Buffer): Buffer
}

// Tokens that parsers often mishandle.
const TOKENS = [
  ...'{ } [ ] " , : \\ \\u \\ud800 \\u0000 \\x41 /**/ // \' null undefined True'.split(' '),
  ...'1e400 -1e400 1e131071 -0 00 +1 .5 1. 0x10 NaN Infinity - 1e308 9007199254740993'.split(' '),
  ...['12345678901234567890', '1'.repeat(400), '"__proto__":', '{"__proto__":{"title":1}}'],
  ...['"constructor":{"prototype":1},', '"length":4000000000,', '"title":"again",'],
  ...['"channelName":7,', '"tags":["x"],', '"metadata":{"a":1},', '"user_id":"eve",'],
  ...['\u2028', '\u00a0', '\ufeff', '\u0000', '\u001f', '\n', ' '.repeat(5_000)],
].map(text => Buffer.from(text))
const BAD_BYTES = [
  [0xff],
  [0xfe, 0xff],
  [0xc0, 0x80],
  [0xed, 0xa0, 0x80],
  [0xf5, 0x80, 0x80, 0x80],
  [0xe2, 0x82],
  [0x80],
  [0xf0, 0x9f],
].map(bytes => Buffer.from(bytes))

/** Changes parts of a body: bits flipped, ranges removed, repeated or cut off, tokens inserted. */
const edit: Arbitrary<Mutation> = fc
  .record({
    kind: fc.constantFrom('flip', 'set', 'remove', 'repeat', 'truncate', 'token', 'bad', 'swap'),
    place: fc.double({ min: 0, max: 1, noNaN: true }),
    size: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 200 })),
    byte: fc.integer({ min: 0, max: 255 }),
    token: fc.nat(),
  })
  .map(({ kind, place, size, byte, token }) => ({
    name: `${kind} at ${place} (${size}, ${byte}, ${token})`,
    apply(bytes) {
      const at = Math.floor(place * bytes.length)
      const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)]
      const insert = (more: Uint8Array) => Buffer.concat([before, more, after])
      switch (kind) {
        case 'flip':
          return Buffer.concat([
            before,
            Buffer.from(after.subarray(0, 1).map(b => b ^ (1 << (byte % 8)))),
            after.subarray(1),
          ])
        case 'set':
          return Buffer.concat([before, Buffer.of(byte), after.subarray(1)])
        case 'remove':
          return Buffer.concat([before, after.subarray(size)])
        case 'repeat':
          return insert(Buffer.concat(Array<Buffer>((byte % 3) + 1).fill(after.subarray(0, size))))
        case 'truncate':
          return Buffer.from(before)
        case 'token':
          return insert(TOKENS[token % TOKENS.length]!)
        case 'bad':
          return insert(BAD_BYTES[token % BAD_BYTES.length]!)
        default:
          return Buffer.concat([after, before])
      }
    },
  }))

const edits: Arbitrary<Mutation> = fc.array(edit, { minLength: 1, maxLength: 4 }).map(several => ({
  name: several.map(({ name }) => name).join(', '),
  apply: bytes => several.reduce((current, { apply }) => apply(current), bytes),
}))

const text = (change: (text: string) => string) => (bytes: Buffer) =>
  Buffer.from(change(bytes.toString()))
const nested = (depth: number, open: string, close = '') =>
  text(body => body.replace(/}\s*$/, `,"x":${open.repeat(depth)}${close.repeat(depth)}}`))

/** Changes of a whole body. */
const WHOLE: Mutation[] = [
  { name: 'BOM', apply: bytes => Buffer.concat([Buffer.from('\ufeff'), bytes]) },
  { name: 'two BOMs', apply: bytes => Buffer.concat([Buffer.from('\ufeff\ufeff'), bytes]) },
  { name: 'UTF-16', apply: bytes => Buffer.from(bytes.toString(), 'utf16le') },
  { name: 'UTF-16 with BOM', apply: bytes => Buffer.from(`\ufeff${bytes.toString()}`, 'utf16le') },
  { name: 'Latin-1', apply: bytes => Buffer.from(bytes.toString(), 'latin1') },
  { name: 'gzip', apply: bytes => gzipSync(bytes) },
  { name: 'nothing', apply: () => Buffer.alloc(0) },
  { name: 'NUL', apply: bytes => Buffer.concat([bytes, Buffer.alloc(1)]) },
  { name: 'NULs', apply: bytes => Buffer.alloc(bytes.length) },
  { name: 'twice', apply: bytes => Buffer.concat([bytes, bytes]) },
  { name: 'a list of it', apply: text(body => `[${body}]`) },
  { name: 'JSON of its text', apply: text(body => JSON.stringify(body)) },
  { name: 'JSONP', apply: text(body => `callback(${body})`) },
  { name: 'form', apply: text(body => `body=${encodeURIComponent(body)}`) },
  { name: 'over the limit', apply: text(body => body + ' '.repeat(256 * 1024)) },
  { name: 'up to the limit', apply: text(body => body.padEnd(256 * 1024, ' ')) },
  { name: '64 levels', apply: nested(63, '[', ']') },
  { name: '65 levels', apply: nested(64, '[', ']') },
  { name: 'open without end', apply: nested(100_000, '[') },
  { name: 'objects without end', apply: nested(40_000, '{"a":') },
  { name: 'every key twice', apply: text(body => body.replace(/^\s*\{/, `$&${inner(body)},`)) },
  { name: 'surrogates', apply: text(body => body.replace(/:\s*"/, '$&\\udc00\\ud800')) },
  { name: 'escaped NUL', apply: text(body => body.replace(/:\s*"/, '$&\\u0000')) },
  { name: 'raw NUL', apply: text(body => body.replace(/:\s*"/, '$&\u0000')) },
  { name: 'huge numbers', apply: text(body => body.replaceAll(/\b\d+\b/g, '$&e999')) },
  {
    name: 'many digits',
    apply: text(body => body.replaceAll(/\b\d+\b/g, '$&00000000000000000001')),
  },
  { name: 'no quotes', apply: text(body => body.replaceAll('"', '')) },
  { name: 'upper case', apply: text(body => body.toUpperCase()) },
]

function inner(body: string): string {
  return body.trim().slice(1, -1) || '"x":1'
}

export const mutation: Arbitrary<Mutation> = fc.oneof(
  { weight: 4, arbitrary: edits },
  { weight: 1, arbitrary: fc.constantFrom(...WHOLE) },
)
