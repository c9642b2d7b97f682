import { expect, test } from 'bun:test'
import {
  toAppKey,
  createSecrets,
  rememberOpened,
  UnreadableSecret,
} from '../../../src/database/secrets/secrets.ts'

const KEY = toAppKey(Buffer.alloc(32, 1))
const OTHER = toAppKey(Buffer.alloc(32, 2))
const PLACE = { table: 'webhooks', column: 'secret', rowId: 'a' }
const secrets = createSecrets(() => [KEY])

/** Returns the reason why a sealed text does not open. */
function findReason(sealed: string, place = PLACE, from = secrets): string | undefined {
  try {
    from.open(sealed, place)
    return undefined
  } catch (error) {
    if (error instanceof UnreadableSecret) return error.reason
    throw error
  }
}

test('reliability §11 a sealed text is v1.<key>.<nonce>.<content>, opens again, and is never the same twice', () => {
  for (const text of ['', 'a', 'whsec_…', '💰'.repeat(1000)]) {
    const sealed = secrets.seal(text, PLACE)
    expect(sealed).toMatch(/^v1\.[\w-]{8}\.[\w-]{16}\.[\w-]{22,}$/)
    expect(secrets.open(sealed, PLACE)).toBe(text)
    expect(secrets.seal(text, PLACE)).not.toBe(sealed)
  }
})

test('reliability §11 a sealed text opens in its own row, column and table alone', () => {
  const sealed = secrets.seal('text', PLACE)
  expect(findReason(sealed, { ...PLACE, rowId: 'b' })).toBe('content')
  expect(findReason(sealed, { ...PLACE, column: 'url' })).toBe('content')
  expect(findReason(sealed, { ...PLACE, table: 'vapid_keys' })).toBe('content')
})

test('reliability §11 an opened text is remembered for its own cell alone', () => {
  let opened = 0
  const open = rememberOpened({ open: (sealed, cell) => (opened++, secrets.open(sealed, cell)) })
  const sealed = secrets.seal('text', PLACE)
  expect([open(sealed, PLACE), open(sealed, { ...PLACE }), opened]).toEqual(['text', 'text', 1])
  for (const other of [{ rowId: 'b' }, { column: 'url' }, { table: 'vapid_keys' }]) {
    expect(() => open(sealed, { ...PLACE, ...other })).toThrow(UnreadableSecret)
  }
  expect(open(secrets.seal('changed', PLACE), PLACE)).toBe('changed')
})

test('reliability §11 a change of any bit is detected', () => {
  const sealed = secrets.seal('some text', PLACE)
  const [version, key, nonce, content] = sealed.split('.') as [string, string, string, string]
  const flip = (text: string, at: number) => {
    const bytes = Buffer.from(text, 'base64url')
    bytes[at >> 3]! ^= 1 << (at & 7)
    return bytes.toString('base64url')
  }
  for (let at = 0; at < 12 * 8; at++) {
    expect(findReason([version, key, flip(nonce, at), content].join('.'))).toBe('content')
  }
  for (let at = 0; at < Buffer.from(content, 'base64url').length * 8; at++) {
    expect(findReason([version, key, nonce, flip(content, at)].join('.'))).toBe('content')
  }
  // A shorter tag would be easier to guess.
  const bytes = Buffer.from(content, 'base64url')
  for (const length of [16, bytes.length - 1]) {
    const cut = bytes.subarray(0, length).toString('base64url')
    expect(findReason([version, key, nonce, cut].join('.'))).toBe('content')
  }
})

test.each([
  '',
  'text',
  'v2.aaaaaaaa.aaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaa',
  'v1...',
  'v1.a.b.c',
])('reliability §11 %p is refused', text => {
  expect(findReason(text)).toBe('form')
})

test('reliability §11 several keys open, the first one seals', () => {
  const before = createSecrets(() => [OTHER]).seal('text', PLACE)
  expect(findReason(before)).toBe('key')
  const both = createSecrets(() => [KEY, OTHER])
  expect(both.open(before, PLACE)).toBe('text')
  expect(findReason(both.seal('text', PLACE))).toBeUndefined()
  expect(both.keyId).toBe(KEY.id)
})

test('reliability §11 a key with the id of another opens nothing', () => {
  const sealed = secrets.seal('text', PLACE)
  const impostor = createSecrets(() => [{ ...OTHER, id: KEY.id }])
  expect(findReason(sealed, PLACE, impostor)).toBe('content')
})

test('keys for different purposes differ', () => {
  const keys = [secrets.derive('a'), secrets.derive('b'), OTHER.derive('a'), KEY.encryption]
  expect(new Set(keys.map(key => key.toString('hex'))).size).toBe(4)
  expect(secrets.derive('a')).toEqual(secrets.derive('a'))
  expect(secrets.derive('a')).toHaveLength(32)
})
