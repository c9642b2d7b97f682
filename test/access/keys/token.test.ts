import { describe, expect, test } from 'bun:test'
import { hasKeyInQuery, newToken } from '../../../src/access/keys/token.ts'
import { API_KEY, MANAGEMENT_TOKEN, readBearer } from '../../../src/base/token-form.ts'

// Computed once and kept: a change of the format would invalidate every key in use.
const TOKEN = 'tdg_0123456789ABCDEFGHIJKLMNOPQRSTUV1ggZdL'

describe('contract §7 the format of a key:', () => {
  test('tdg_, 32 random base62 characters and 6 of checksum', () => {
    for (let n = 0; n < 1_000; n++) {
      const token = newToken()
      expect(token).toMatch(/^tdg_[0-9A-Za-z]{38}$/)
      expect(API_KEY.isWellFormed(token)).toBe(true)
    }
  })

  test('the checksum is the base62 of the CRC32 of the random part', () => {
    expect(API_KEY.isWellFormed(TOKEN)).toBe(true)
  })

  test('keys are unique, and every character occurs in every place', () => {
    const tokens = Array.from({ length: 5_000 }, newToken)
    expect(new Set(tokens).size).toBe(tokens.length)
    for (let place = 4; place < 36; place++) {
      expect(new Set(tokens.map(token => token[place])).size).toBe(62)
    }
  })

  test('a changed, missing or added character is detected', () => {
    for (let place = 0; place < TOKEN.length; place++) {
      const other = TOKEN[place] === 'x' ? 'y' : 'x'
      expect(API_KEY.isWellFormed(TOKEN.slice(0, place) + other + TOKEN.slice(place + 1))).toBe(
        false,
      )
      expect(API_KEY.isWellFormed(TOKEN.slice(0, place) + TOKEN.slice(place + 1))).toBe(false)
      expect(API_KEY.isWellFormed(`${TOKEN.slice(0, place)}0${TOKEN.slice(place)}`)).toBe(false)
    }
    expect(API_KEY.isWellFormed(`${TOKEN}\n`)).toBe(false)
    expect(API_KEY.isWellFormed(TOKEN.toLowerCase())).toBe(false)
  })
})

describe('a management token', () => {
  const token = MANAGEMENT_TOKEN.newToken()

  test('has a prefix of its own and the same checksum', () => {
    expect(token).toMatch(/^tdm_[0-9A-Za-z]{38}$/)
    expect(MANAGEMENT_TOKEN.isWellFormed(token)).toBe(true)
    expect(MANAGEMENT_TOKEN.isWellFormed(TOKEN)).toBe(false)
    expect(API_KEY.isWellFormed(token)).toBe(false)
    // The checksum covers the random part alone, so the prefix tells the two apart.
    expect(API_KEY.isWellFormed(token.replace('tdm_', 'tdg_'))).toBe(true)
  })

  test('is found in a URL, so that it can be refused there', () => {
    expect(MANAGEMENT_TOKEN.isIn(`http://a/api/token?token=${token}`)).toBe(true)
    expect(MANAGEMENT_TOKEN.isIn(`http://a/api/token?token=${TOKEN}`)).toBe(false)
  })
})

test.each([
  [null, undefined],
  ['', undefined],
  ['Basic YTpi', undefined],
  ['Bearers x', undefined],
  ['Bearer', ''],
  ['Bearer ', ''],
  ['Bearer x y', ''],
  ['Bearer x, Bearer y', ''],
  ['bearer x', 'x'],
])('Authorization: %p has the bearer token %p', (header, token) => {
  expect(readBearer(header)).toBe(token)
})

test.each([
  [`http://a/v1/me?key=${TOKEN}`, true],
  [`http://a/v1/me?a=b&c=${TOKEN}&d=e`, true],
  [`http://a/v1/me?${TOKEN}`, true],
  [`http://a/v1/me?a=Bearer%20${TOKEN}`, true],
  [`http://a/v1/users/${TOKEN}`, false],
  [`http://a/v1/users/${TOKEN}?a=b`, false],
  ['http://a/v1/me?key=tdg_short', false],
  ['http://a/v1/me', false],
])('contract §1 a key is detected in the query of %p: %p', (url, isIn) => {
  expect(hasKeyInQuery(url)).toBe(isIn)
})
