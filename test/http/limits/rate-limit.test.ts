import { describe, expect, test } from 'bun:test'
import { toRateLimitResult } from '../../../src/http/limits/rate-limit.ts'
import {
  createFailedAuthentications,
  createFailureCounter,
  toNetwork,
} from '../../../src/http/limits/failed-authentications.ts'

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
      expect(toRateLimitResult({ ...window, used }, asked, nth)).toEqual({
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
    expect(toRateLimitResult({ ...window, used: 1, retryAfter }, 1, 1).retryAfter).toBe(seconds)
  })
})

describe('contract §6 failed authentications of an address:', () => {
  test('the 61st in a minute waits for the end of the minute', () => {
    const failures = createFailureCounter()
    for (let n = 0; n < 60; n++) expect(failures.count('192.0.2.1', 1_000 + n)).toBeUndefined()
    expect(failures.count('192.0.2.1', 2_000)).toBe(59)
    expect(failures.count('192.0.2.2', 2_000)).toBeUndefined()
    expect(failures.count('192.0.2.1', 60_999)).toBe(1)
    expect(failures.count('192.0.2.1', 61_000)).toBeUndefined()
  })

  test('refused ones do not extend the wait', () => {
    const failures = createFailureCounter()
    for (let n = 0; n < 1_000; n++) failures.count('192.0.2.1', n)
    expect(failures.count('192.0.2.1', 59_000)).toBe(1)
    for (let n = 0; n < 60; n++) expect(failures.count('192.0.2.1', 60_000)).toBeUndefined()
    expect(failures.count('192.0.2.1', 60_000)).toBe(60)
  })

  test('memory is bounded: the oldest of 10,000 addresses is forgotten', () => {
    const failures = createFailureCounter()
    for (let n = 0; n < 61; n++) failures.count('192.0.2.1', 0)
    for (let n = 0; n < 61; n++) failures.count('192.0.2.2', 0)
    for (let n = 0; n < 9_998; n++) failures.count(`10.0.${n >> 8}.${n & 255}`, 0)
    expect(failures.count('192.0.2.1', 0)).toBe(60)
    failures.count('198.51.100.1', 0)
    expect(failures.count('192.0.2.2', 0)).toBe(60)
    expect(failures.count('192.0.2.1', 0)).toBeUndefined()
  })
})

describe('contract §6 beyond 60 failures of an address', () => {
  const none = async () => undefined

  /** Records the results of look-ups, and the largest number of concurrent ones. */
  function createFinder() {
    let running = 0
    const seen = { most: 0, order: [] as string[] }
    return {
      seen,
      async find(hash: string) {
        seen.most = Math.max(seen.most, ++running)
        seen.order.push(hash)
        await new Promise(resolve => setImmediate(resolve))
        running--
        return hash.startsWith('alive') ? hash : undefined
      },
    }
  }

  async function failFrom(address: string) {
    const failed = createFailedAuthentications({ delayMs: 1 })
    for (let n = 0; n < 61; n++) await failed.lookUp(undefined, none, () => address)
    return failed
  }

  test('its unknown keys are looked up one at a time, and all of them are answered', async () => {
    const failed = await failFrom('192.0.2.1')
    const { find, seen } = createFinder()
    const hashes = Array.from({ length: 100 }, (_, n) =>
      n % 10 === 0 ? `alive ${n}` : `dead ${n}`,
    )
    const found = await Promise.all(
      hashes.map(hash => failed.lookUp(hash, find, () => '192.0.2.1')),
    )
    expect(found).toEqual(hashes.map(hash => (hash.startsWith('alive') ? hash : undefined)))
    expect(seen.most).toBe(1)
  })

  test('those of other addresses are not limited', async () => {
    const failed = await failFrom('192.0.2.1')
    const { find, seen } = createFinder()
    const hashes = Array.from({ length: 10 }, (_, n) => `alive ${n}`)
    await Promise.all(hashes.map(hash => failed.lookUp(hash, find, () => '192.0.2.2')))
    expect(seen.most).toBe(10)
  })

  test('a key known to be valid passes the waiting ones from any address', async () => {
    const failed = await failFrom('192.0.2.1')
    const { find, seen } = createFinder()
    await failed.lookUp('alive', find, () => '192.0.2.2')
    const guesses = Array.from({ length: 50 }, (_, n) =>
      failed.lookUp(`dead ${n}`, find, () => '192.0.2.1'),
    )
    await failed.lookUp('alive', find, () => '192.0.2.1')
    expect(seen.order.length).toBeLessThan(5)
    await Promise.all(guesses)
  })

  test('networks take turns, so that one with many guesses does not delay another', async () => {
    const failed = await failFrom('192.0.2.1')
    for (let n = 0; n < 61; n++) await failed.lookUp(undefined, none, () => '192.0.2.2')
    const { find, seen } = createFinder()
    const guesses = Array.from({ length: 50 }, (_, n) =>
      failed.lookUp(`dead ${n}`, find, () => '192.0.2.1'),
    )
    await failed.lookUp('alive', find, () => '192.0.2.2')
    expect(seen.order.indexOf('alive')).toBeLessThan(5)
    await Promise.all(guesses)
  })

  test('unknown keys and sessions are one share, and those that were found have their own', async () => {
    const failed = createFailedAuthentications()
    const shares: string[] = []
    const find = async (hash: string, share: string) => {
      shares.push(share)
      return hash === 'alive' ? hash : undefined
    }
    for (const hash of ['alive', 'dead', 'alive', 'gone'])
      await failed.find(hash, find, () => '192.0.2.1')
    expect(shares).toEqual(['unknown', 'unknown', 'alive', 'unknown'])
  })

  test('memory is bounded: beyond 250 waiting look-ups it is unavailable, which is no failure', async () => {
    const failed = await failFrom('192.0.2.1')
    const { find } = createFinder()
    const lookUps = Array.from({ length: 300 }, (_, n) =>
      failed.lookUp(`alive ${n}`, find, () => '192.0.2.1'),
    )
    const results = await Promise.allSettled(lookUps)
    const refused = results.filter(result => result.status === 'rejected')
    expect(refused).toHaveLength(49)
    expect(refused[0]?.reason).toMatchObject({ code: 'unavailable' })
  })

  test('a guess at a session or a link is refused with the seconds to wait', async () => {
    const failed = await failFrom('192.0.2.1')
    await expect(failed.countFailure('192.0.2.1')).rejects.toThrow(/Try again in (5[89]|60) s/)
    await failed.countFailure('192.0.2.2')
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
])('contract §6 %p and %p are in one network: %p', (a, b, areOne) => {
  expect(toNetwork(a) === toNetwork(b)).toBe(areOne)
})
