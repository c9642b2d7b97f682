import { expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { encryptPush } from '../../../src/delivery/push/encrypt-and-send.ts'
import { createVapidTokenCache } from '../../../src/delivery/push/vapid.ts'
import {
  decryptPush,
  decryptRecords,
  newBrowserKeys,
  parseBody,
  toBytes,
  verifyVapid,
} from '../../support/clients/push-crypto.ts'
import { RFC8188, RFC8291, RFC8292 } from '../../support/vectors.ts'

test('RFC 8291 appendix A: decryption matches every intermediate value', () => {
  const body = toBytes(RFC8291.body)
  expect(body).toHaveLength(144)
  const { salt, recordSize, keyId } = parseBody(body)
  expect(salt.toString('base64url')).toBe(RFC8291.salt)
  expect(recordSize).toBe(4096)
  expect(keyId.toString('base64url')).toBe(RFC8291.server.publicKey)
  const { text, records, intermediates } = decryptPush(body, RFC8291.browser)
  expect([text, records]).toEqual([RFC8291.plaintext, 1])
  const { ecdh, ikm, cek, nonce } = RFC8291
  expect(intermediates).toEqual({ ecdh, ikm, cek, nonce })
})

test('RFC 8188 §3.1 and §3.2: messages of one and of two records', () => {
  for (const { body, ikm, text, records } of RFC8188) {
    expect(decryptRecords(toBytes(body), toBytes(ikm))).toMatchObject({ text, records })
  }
  const two = toBytes(RFC8188[1].body)
  expect(parseBody(two)).toMatchObject({ recordSize: 25, keyId: Buffer.from('a1') })
})

test('RFC 8292 §2.4: a token is verified by the key that comes with it', () => {
  const { token, key } = RFC8292
  expect(verifyVapid(`vapid t=${token}, k=${key}`)).toEqual({
    key,
    claims: RFC8292.claims,
  })
  const [header, claims, signature = ''] = token.split('.')
  const bent = `${header}.${claims}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
  expect(() => verifyVapid(`vapid t=${bent}, k=${key}`)).toThrow('signature')
  expect(() => verifyVapid(`vapid t=${token}, k=${RFC8291.server.publicKey}`)).toThrow('signature')
})

/** Returns a browser's keys, and the subscription that it sends. */
function newBrowser() {
  const keys = newBrowserKeys()
  const { publicKey, auth } = keys
  return { keys, address: { endpoint: 'https://push.example.net/x', p256dh: publicKey, auth } }
}

test('RFC 8291: only the own browser decrypts a message; each has a new key and salt', () => {
  const { keys, address } = newBrowser()
  const message = {
    payload: '{"title":"💰 New payment"}',
    topic: 'abc',
    urgency: 'normal',
  } as const
  const sent = Array.from({ length: 50 }, () => encryptPush(address, message, 86_400))
  for (const { headers, body } of sent) {
    expect(decryptPush(Buffer.from(body), keys).text).toBe(message.payload)
    expect(headers).toMatchObject({
      TTL: '86400',
      Urgency: 'normal',
      Topic: 'abc',
      'Content-Encoding': 'aes128gcm',
    })
    expect(headers).not.toHaveProperty('Authorization')
  }
  const parsed = sent.map(({ body }) => parseBody(Buffer.from(body)))
  expect(new Set(parsed.map(({ salt }) => salt.toString('hex'))).size).toBe(50)
  expect(new Set(parsed.map(({ keyId }) => keyId.toString('hex'))).size).toBe(50)
  const other = newBrowser().keys
  expect(() => decryptPush(Buffer.from(sent[0]!.body), other)).toThrow()
})

test('RFC 8291 §4: the longest message is one record, and fits the limit of Firefox on Android', () => {
  const { keys, address } = newBrowser()
  const { body } = encryptPush(
    address,
    { payload: 'x'.repeat(2_600), topic: 'a', urgency: 'high' },
    60,
  )
  expect(body.length).toBeLessThanOrEqual(2_744)
  expect(decryptPush(Buffer.from(body), keys).records).toBe(1)
})

test('RFC 8292: a token is valid for 12 hours, cached for 11, for one key and one push service', () => {
  const ecdh = createECDH('prime256v1')
  const publicKey = ecdh.generateKeys().toString('base64url')
  const privateKey = Buffer.concat([Buffer.alloc(32), ecdh.getPrivateKey()])
    .subarray(-32)
    .toString('base64url')
  const pair = { id: 'a', publicKey, privateKey }
  const tokens = createVapidTokenCache()
  const nowMs = Date.now()
  const origin = 'https://push.example.net'
  expect(tokens.find('a', origin, nowMs)).toBeUndefined()
  const header = tokens.make(pair, { origin, subject: 'mailto:ops@example.com', nowMs })
  expect(verifyVapid(header)).toEqual({
    key: publicKey,
    claims: { aud: origin, exp: Math.floor(nowMs / 1000) + 43_200, sub: 'mailto:ops@example.com' },
  })
  expect(tokens.find('a', origin, nowMs + 11 * 3_600_000 - 1)).toBe(header)
  expect(tokens.find('a', origin, nowMs + 11 * 3_600_000)).toBeUndefined()
  expect(tokens.find('b', origin, nowMs)).toBeUndefined()
  expect(tokens.find('a', 'https://other.example.net', nowMs)).toBeUndefined()
})
