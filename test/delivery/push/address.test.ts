import { expect, test } from 'bun:test'
import { parseEndpoint } from '../../../src/delivery/push/address.ts'
import { NewSubscription } from '../../../src/delivery/push/subscription-schema.ts'
import { createValidator, InvalidRequest } from '../../../src/http/validation.ts'
import { newSubscription } from '../../support/worlds/push.ts'

const HOSTS = ['push.example.com:8443']

test.each([
  'file:///etc/passwd',
  'https://127.1:8443/',
  'https://169.254.169.254/latest/meta-data/',
  'https://localhost/x',
  'http://fcm.googleapis.com/fcm/send/x',
  'https://fcm.googleapis.com:8443/fcm/send/x',
  'https://user:password@fcm.googleapis.com/fcm/send/x',
  'https://fcm.googleapis.com./fcm/send/x',
  'https://fcm.googleapis.com.evil.test/x',
  'https://evil.test/fcm.googleapis.com',
  'https://evil.test\\@fcm.googleapis.com/x',
  'https://xpush.apple.com/x',
  'https://push.example.com/x',
  'https://push.example.com:8444/x',
  'https://sub.push.example.com:8443/x',
  'nonsense',
  `https://fcm.googleapis.com/${'x'.repeat(2048)}`,
  '',
])('case 22: the endpoint %p is refused', endpoint => {
  expect(parseEndpoint(endpoint, HOSTS)).toBeUndefined()
})

test.each([
  'https://fcm.googleapis.com/fcm/send/abc',
  'https://fcm.googleapis.com:443/wp/abc',
  'https://updates.push.services.mozilla.com/wpush/v2/abc',
  'https://web.push.apple.com/QABC',
  'https://wns2-par02p.notify.windows.com/w/?token=abc',
  'https://push.example.com:8443/abc',
])('delivery: the endpoint %p belongs to a known push service', endpoint => {
  expect(parseEndpoint(endpoint, HOSTS)?.href).toBe(new URL(endpoint).href)
})

const point = () => Buffer.from(newSubscription().keys.p256dh, 'base64url')
const bend = (bytes: Buffer) => {
  bytes[64]! ^= 1
  return bytes
}
const { parse } = createValidator(NewSubscription)

test.each<[name: 'p256dh' | 'auth', bytes: Uint8Array | string, problem: string]>([
  ['p256dh', bend(point()), 'off the curve'],
  ['p256dh', point().subarray(0, 64), 'too short'],
  ['p256dh', Buffer.concat([point(), Buffer.of(0)]), 'too long'],
  ['p256dh', Buffer.concat([Buffer.of(2), point().subarray(1, 33)]), 'compressed'],
  ['p256dh', Buffer.concat([Buffer.of(4), Buffer.alloc(64)]), 'zero'],
  ['p256dh', Buffer.concat([Buffer.of(4), Buffer.alloc(64, 0xff)]), 'beyond the field'],
  ['p256dh', Buffer.alloc(65), 'infinity'],
  ['p256dh', '', 'empty'],
  ['auth', Buffer.alloc(15), 'too short'],
  ['auth', Buffer.alloc(17), 'too long'],
  ['auth', 'AAAAAAAAAAAAAAAAAAAA+/', 'not base64url'],
])('delivery: a key %s of %p, %s, is refused', (name, bytes) => {
  const { endpoint, keys } = newSubscription()
  const key = typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('base64url')
  const read = () => parse({ endpoint, keys: { ...keys, [name]: key } })
  expect(read).toThrow(InvalidRequest)
  expect(parse({ endpoint, keys })).toEqual({ endpoint, keys })
})
