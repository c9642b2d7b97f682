import { afterAll, beforeAll, expect, test } from 'bun:test'
import { newSignedInAccount, type SignedInAccount } from '../../support/worlds/signed-in-account.ts'
import { newSubscription } from '../../support/worlds/push.ts'
import { startReceiver, type Receiver } from '../../support/servers/receiver.ts'
import { boot, type Booted } from '../../support/servers/server.ts'

const ALL = '/api/push/subscriptions'

let server: Booted
let canary: Receiver
let account: SignedInAccount
beforeAll(async () => {
  canary = await startReceiver()
  // Host names of push services resolve to this machine.
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  server = await boot(
    {
      pushHosts: ['push.example.com:8443', '127.0.0.1:9443'],
      vapidSubject: 'mailto:ops@example.com',
    },
    { egress: { resolve } },
  )
  account = await newSignedInAccount(server)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await canary[Symbol.asyncDispose]()
})

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
])('case 22: the endpoint %p is refused when it is saved', async endpoint => {
  const { status, body } = await account.post(ALL, { ...newSubscription(), endpoint })
  expect([status, body.details[0].path]).toEqual([400, ['endpoint']])
  expect(canary.connections).toBe(0)
})

test.each([
  'https://fcm.googleapis.com/fcm/send/abc',
  'https://fcm.googleapis.com:443/wp/abc',
  'https://updates.push.services.mozilla.com/wpush/v2/abc',
  'https://web.push.apple.com/QABC',
  'https://wns2-par02p.notify.windows.com/w/?token=abc',
  'https://push.example.com:8443/abc',
])('delivery: the endpoint %p belongs to a known push service', async endpoint => {
  const someone = await newSignedInAccount(server)
  const { status } = await someone.post(ALL, { ...newSubscription(), endpoint })
  expect(status).toBe(200)
})

test('case 22: a push service that resolves to a private address is refused when sending', async () => {
  for (const [endpoint, reason] of [
    ['https://fcm.googleapis.com/send/x', 'does not resolve to public addresses'],
    ['https://127.0.0.1:9443/x', 'must lead to a public address'],
  ]) {
    const someone = await newSignedInAccount(server)
    await someone.post(ALL, { ...newSubscription(), endpoint })
    const tested = await someone.post('/api/push/test', {})
    expect(tested.body.data).toMatchObject({ isAccepted: false, status: null, body: null })
    expect(tested.body.data.reason).toContain(reason)
    expect(tested.text).not.toContain('127.0.0.1')
  }
  expect(canary.connections).toBe(0)
})

const point = () => Buffer.from(newSubscription().keys.p256dh, 'base64url')
const bend = (bytes: Buffer) => {
  bytes[64]! ^= 1
  return bytes
}

test.each([
  ['p256dh', bend(point()).toString('base64url'), 'off the curve'],
  ['p256dh', point().subarray(0, 64).toString('base64url'), 'too short'],
  ['p256dh', Buffer.concat([point(), Buffer.of(0)]).toString('base64url'), 'too long'],
  [
    'p256dh',
    Buffer.concat([Buffer.of(2), point().subarray(1, 33)]).toString('base64url'),
    'compressed',
  ],
  ['p256dh', Buffer.concat([Buffer.of(4), Buffer.alloc(64)]).toString('base64url'), 'zero'],
  [
    'p256dh',
    Buffer.concat([Buffer.of(4), Buffer.alloc(64, 0xff)]).toString('base64url'),
    'beyond the field',
  ],
  ['p256dh', Buffer.alloc(65).toString('base64url'), 'infinity'],
  ['p256dh', '', 'empty'],
  ['p256dh', 5, 'no text'],
  ['auth', Buffer.alloc(15).toString('base64url'), 'too short'],
  ['auth', Buffer.alloc(17).toString('base64url'), 'too long'],
  ['auth', 'AAAAAAAAAAAAAAAAAAAA+/', 'not base64url'],
  ['auth', null, 'no text'],
])('delivery: a key %s of %p, %s, is refused', async (name, value) => {
  const { endpoint, keys } = newSubscription()
  const { status, body } = await account.post(ALL, { endpoint, keys: { ...keys, [name]: value } })
  expect([status, body.details[0].path]).toEqual([400, ['keys', name]])
})

test('delivery: keys may be padded, as by some libraries', async () => {
  const someone = await newSignedInAccount(server)
  const { endpoint, keys } = newSubscription()
  const padded = { p256dh: `${keys.p256dh}=`, auth: `${keys.auth}==` }
  const { id } = (await someone.post(ALL, { endpoint, keys: padded })).body.data
  expect((await someone.post(ALL, { endpoint, keys })).body.data.id).toBe(id)
})

const NIGHT = { days: [5], from: '22:00', to: '07:00', timeZone: 'UTC' }

test.each([
  [{ label: '' }, ['label']],
  [{ label: 'x'.repeat(61) }, ['label']],
  [{ label: 'a\u0000b' }, ['label']],
  [{ isOn: 'yes' }, ['isOn']],
  [{ hasQuietSummary: 'yes' }, ['hasQuietSummary']],
  [{ quietHours: {} }, ['quietHours']],
  [{ quietHours: [{ ...NIGHT, days: [] }] }, ['quietHours', '0', 'days']],
  [{ quietHours: [{ ...NIGHT, days: [8] }] }, ['quietHours', '0', 'days', '0']],
  [{ quietHours: [NIGHT, { ...NIGHT, from: '24:00' }] }, ['quietHours', '1', 'from']],
  [{ quietHours: [{ ...NIGHT, to: '7:00' }] }, ['quietHours', '0', 'to']],
  [{ quietHours: [{ ...NIGHT, timeZone: 'Mars/Olympus' }] }, ['quietHours', '0', 'timeZone']],
  [{ quietHours: [{ ...NIGHT, timeZone: '+02:00' }] }, ['quietHours', '0', 'timeZone']],
  [{ quietHours: [{ ...NIGHT, timeZone: 'A'.repeat(10_000) }] }, ['quietHours', '0', 'timeZone']],
])('dashboard: invalid settings of a device are refused (%#)', async (edit, path) => {
  const someone = await newSignedInAccount(server)
  const { id } = (await someone.post(ALL, newSubscription())).body.data
  const { status, body } = await someone.patch(`${ALL}/${id}`, edit)
  expect([status, body.details[0].path]).toEqual([400, path])
})
