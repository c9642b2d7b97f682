import { expect, test } from 'bun:test'
import { findTotpStep, toTotpUri } from '../../../src/access/second-factor/totp.ts'

// The secret of RFC 6238, appendix B, in base32.
const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

test('the codes are those of RFC 6238', () => {
  for (const [seconds, code] of [
    [59, '287082'],
    [1_111_111_109, '081804'],
    [20_000_000_000, '353130'],
  ] as const) {
    const step = findTotpStep(SECRET, { code, lastStep: 0, nowMs: seconds * 1000 })
    expect(step).toBe(Math.floor(seconds / 30))
  }
})

test('a code is valid for one step around its own, and never again', () => {
  const find = (nowS: number, lastStep = 0) =>
    findTotpStep(SECRET, { code: '081804', lastStep, nowMs: nowS * 1000 })
  const step = Math.floor(1_111_111_109 / 30)
  const startS = step * 30
  expect([startS - 31, startS - 30, startS + 59, startS + 60].map(nowS => find(nowS))).toEqual([
    undefined,
    step,
    step,
    undefined,
  ])
  expect(find(startS, step)).toBeUndefined()
  expect(find(startS, step - 1)).toBe(step)
})

test('the link of the QR code names the server and the account', () => {
  expect(toTotpUri(SECRET, 'ada@example.com')).toBe(
    `otpauth://totp/Tidings:ada%40example.com?issuer=Tidings&secret=${SECRET}&algorithm=SHA1&digits=6&period=30`,
  )
})
