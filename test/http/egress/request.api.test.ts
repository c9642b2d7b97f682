import { expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { VERSION } from '../../../src/base/version.ts'
import { createAuthority } from '../../support/certificates.ts'
import {
  decryptPush,
  newBrowserKeys,
  verifyVapid,
  parseBody,
} from '../../support/clients/push-crypto.ts'
import { startReceiver, type Received } from '../../support/servers/receiver.ts'
import { boot } from '../../support/servers/server.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const authority = createAuthority()
const certificate = authority.issue(['127.0.0.1'])
const DAY_S = 86_400

/** Expects exactly these header lines, in any order. */
function expectHead({ head, bytes }: Received, expected: Record<string, string | RegExp>): void {
  const lines = head.slice(1).map(line => line.split(/: (.*)/s).slice(0, 2))
  const all = { ...expected, 'Content-Length': String(bytes.length) }
  expect(lines.map(([name]) => name).sort()).toEqual(Object.keys(all).sort())
  for (const [name = '', value = ''] of lines) {
    expect(`${name}: ${value}`).toMatch(all[name as keyof typeof all] ?? '')
  }
}

test('RFC 9110, 9112, 8030, 8188, 8291, 8292, Standard Webhooks: the bytes of a push and of a webhook', async () => {
  await using service = await startReceiver({ certificate, reply: { status: 201 } })
  await using receiver = await startReceiver()
  await using server = await boot(
    {
      pushHosts: [`127.0.0.1:${service.port}`],
      egressAllowCidrs: ['127.0.0.0/8'],
      vapidSubject: 'mailto:ops@example.com',
    },
    { egress: { ca: authority.ca } },
  )
  const { account, path, send } = await newTenant(server)
  const keys = newBrowserKeys()
  await account.post('/api/push/subscriptions', {
    endpoint: `https://127.0.0.1:${service.port}/push/abc`,
    keys: { p256dh: keys.publicKey, auth: keys.auth },
  })
  const url = `http://127.0.0.1:${receiver.port}/hook?x=1`
  const webhook = await account.post(`${path}/webhooks`, { url })
  await send({ title: 'Grüße 💾' })
  await service.until(1)
  const push = service.received[0]!
  expect(push.head[0]).toBe('POST /push/abc HTTP/1.1')
  expectHead(push, {
    Host: /^Host: 127\.0\.0\.1:\d+$/,
    'User-Agent': `Tidings/${VERSION}`,
    'Accept-Encoding': 'identity',
    TTL: /^TTL: 86400$/,
    Urgency: /^Urgency: normal$/,
    Topic: /^Topic: [A-Za-z0-9_-]{32}$/,
    'Content-Type': 'application/octet-stream',
    'Content-Encoding': /^Content-Encoding: aes128gcm$/,
    Authorization: /^Authorization: vapid t=[\w-]+\.[\w-]+\.[\w-]+, k=[\w-]{87}$/,
  })
  expect(push.headers['host']).toBe(`127.0.0.1:${service.port}`)
  const { claims } = verifyVapid(push.headers['authorization'] ?? '')
  expect(claims).toEqual({
    aud: `https://127.0.0.1:${service.port}`,
    exp: expect.any(Number),
    sub: 'mailto:ops@example.com',
  })
  expect(claims.exp - Date.now() / 1000).toBeWithin(0, DAY_S)
  const { recordSize, keyId, content } = parseBody(push.bytes)
  expect(keyId).toHaveLength(65)
  expect(content.length).toBeLessThanOrEqual(recordSize)
  const { text, records } = decryptPush(push.bytes, keys)
  expect(records).toBe(1)
  expect(JSON.parse(text)).toMatchObject({ web_push: 8030, notification: { title: 'Grüße 💾' } })

  await receiver.until(1)
  const message = receiver.received[0]!
  expect(message.head[0]).toBe('POST /hook?x=1 HTTP/1.1')
  expectHead(message, {
    Host: /^Host: 127\.0\.0\.1:\d+$/,
    'User-Agent': `Tidings/${VERSION}`,
    'Accept-Encoding': 'identity',
    'Content-Type': /^Content-Type: application\/json$/,
    // A full stop separates the signed parts, so no id contains one.
    'webhook-id': /^webhook-id: msg_[a-z0-9_]+$/,
    'webhook-timestamp': /^webhook-timestamp: \d{10}$/,
    'webhook-signature': /^webhook-signature: v1,[A-Za-z0-9+/]{43}=$/,
  })
  expect(message.headers['host']).toBe(`127.0.0.1:${receiver.port}`)
  expect(
    new Webhook(webhook.body.data.secret).verify(message.bytes, message.headers),
  ).toMatchObject({
    data: { title: 'Grüße 💾' },
  })
})
