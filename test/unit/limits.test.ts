import { describe, expect, test } from 'bun:test'
import { toGrant, toHeaders } from '../../src/limits/rate-limit.ts'
import { createStrangers, toNetwork } from '../../src/limits/strangers.ts'

describe('contract §6 the window of a key:', () => {
  const window = { limit: 100, resetAt: 1_700_000_060, retryAfter: 59.2 }

  test.each([
    // used, asked, nth -> remaining, isAllowed
    [1, 1, 1, 99, true],
    [99, 1, 1, 1, true],
    [100, 1, 1, 0, true],
    [101, 1, 1, 0, false],
    [5_000, 1, 1, 0, false],
    [3, 3, 1, 99, true],
    [3, 3, 3, 97, true],
    [102, 4, 1, 1, true],
    [102, 4, 2, 0, true],
    [102, 4, 3, 0, false],
    [102, 4, 4, 0, false],
  ])(
    '%i used, number %i-%i of those together: %i remain, allowed: %p',
    (used, asked, nth, remaining, isAllowed) => {
      expect(toGrant({ ...window, used }, asked, nth)).toEqual({
        limit: 100,
        remaining,
        resetAt: 1_700_000_060,
        retryAfter: 60,
        isAllowed,
      })
    },
  )

  test.each([
    [59.001, 60],
    [1, 1],
    [0.2, 1],
    [0, 1],
    [-3, 1],
  ])('%d s before its end Retry-After is %i', (retryAfter, seconds) => {
    expect(toGrant({ ...window, used: 1, retryAfter }, 1, 1).retryAfter).toBe(seconds)
  })

  test('its headers are whole numbers', () => {
    expect(toHeaders(toGrant({ ...window, used: 8 }, 1, 1))).toEqual({
      'X-RateLimit-Limit': '100',
      'X-RateLimit-Remaining': '92',
      'X-RateLimit-Reset': '1700000060',
    })
  })
})

describe('contract §6 failed authentication of an address:', () => {
  test('the 61st in a minute has to wait for the end of the minute', () => {
    const strangers = createStrangers()
    for (let n = 0; n < 60; n++) expect(strangers.take('192.0.2.1', 1_000 + n)).toBeUndefined()
    expect(strangers.take('192.0.2.1', 2_000)).toBe(59)
    expect(strangers.take('192.0.2.2', 2_000)).toBeUndefined()
    expect(strangers.take('192.0.2.1', 60_999)).toBe(1)
    expect(strangers.take('192.0.2.1', 61_000)).toBeUndefined()
  })

  test('refused ones do not lengthen the wait', () => {
    const strangers = createStrangers()
    for (let n = 0; n < 1_000; n++) strangers.take('192.0.2.1', n)
    expect(strangers.take('192.0.2.1', 59_000)).toBe(1)
    for (let n = 0; n < 60; n++) expect(strangers.take('192.0.2.1', 60_000)).toBeUndefined()
    expect(strangers.take('192.0.2.1', 60_000)).toBe(60)
  })

  test('memory is bounded: the oldest of 10,000 addresses makes room', () => {
    const strangers = createStrangers()
    for (let n = 0; n < 61; n++) strangers.take('192.0.2.1', 0)
    for (let n = 0; n < 61; n++) strangers.take('192.0.2.2', 0)
    for (let n = 0; n < 9_998; n++) strangers.take(`10.0.${n >> 8}.${n & 255}`, 0)
    expect(strangers.take('192.0.2.1', 0)).toBe(60)
    strangers.take('198.51.100.1', 0)
    expect(strangers.take('192.0.2.2', 0)).toBe(60)
    expect(strangers.take('192.0.2.1', 0)).toBeUndefined()
  })
})

test.each([
  ['192.0.2.1', '::ffff:192.0.2.1', true],
  ['192.0.2.1', '192.0.2.2', false],
  ['2001:db8:0:1::1', '2001:0DB8:0000:0001:ffff::2', true],
  ['2001:db8:0:1::1', '2001:db8:0:2::1', false],
  ['::1', '::2', true],
  ['fe80::1%eth0', 'fe80::2', true],
  ['', 'unknown', false],
])('contract §6 %p and %p are of one network: %p', (a, b, areOne) => {
  expect(toNetwork(a) === toNetwork(b)).toBe(areOne)
})
