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
import { startTargetBehindNginx } from '../../support/servers/http-target.ts'
import { startReceiver, type Received } from '../../support/servers/receiver.ts'
import { boot } from '../../support/servers/server.ts'
import { hasTool } from '../../support/tools.ts'
import { until } from '../../support/until.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

const authority = createAuthority()
const certificate = authority.issue(['127.0.0.1'])
const DAY_S = 86_400

/** A server, and a push service and a receiver on loopback that it may reach. */
async function openWorld(targets: { service: { port: number }; receiver: { port: number } }) {
  const { service, receiver } = targets
  const server = await boot(
    {
      pushHosts: [`127.0.0.1:${service.port}`],
      egressAllowCidrs: ['127.0.0.0/8'],
      vapidSubject: 'mailto:ops@example.com',
    },
    { egress: { ca: authority.ca } },
  )
  const tenant = await newTenant(server)
  const keys = newBrowserKeys()
  await tenant.account.post('/api/push/subscriptions', {
    endpoint: `https://127.0.0.1:${service.port}/push/abc`,
    keys: { p256dh: keys.publicKey, auth: keys.auth },
  })
  const url = `http://127.0.0.1:${receiver.port}/hook?x=1`
  const created = await tenant.account.post(`${tenant.path}/webhooks`, { url })
  return {
    tenant,
    keys,
    secret: created.body.data.secret as string,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Resolves with the states of an event's deliveries by kind, once all of them have ended. */
async function untilEnded(tenant: TestTenant, event: { id: string }) {
  const path = `${tenant.path}/events/${event.id}/deliveries`
  const read = async () => (await tenant.account.get(path)).body.data.items
  await until(async () => {
    const items = await read()
    return items.length === 2 && items.every((item: any) => item.state !== 'pending')
  })
  return Object.fromEntries((await read()).map((item: any) => [item.kind, item.state]))
}

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
  await using world = await openWorld({ service, receiver })
  await world.tenant.send({ title: 'Grüße 💾' })
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
  const { text, records } = decryptPush(push.bytes, world.keys)
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
  expect(new Webhook(world.secret).verify(message.bytes, message.headers)).toMatchObject({
    data: { title: 'Grüße 💾' },
  })
})

test.skipIf(!hasTool('node') || !hasTool('nginx'))(
  'delivery: nginx in front of Node accepts pushes and webhooks',
  async () => {
    await using service = await startTargetBehindNginx(certificate)
    await using receiver = await startTargetBehindNginx()
    await using world = await openWorld({ service, receiver })
    const { tenant, keys, secret } = world
    // The second event uses the connection of the first one.
    for (const title of ['First', 'Second']) {
      const event = await tenant.send({ title })
      expect(await untilEnded(tenant, event)).toEqual({ push: 'delivered', webhook: 'delivered' })
    }
    const pushes = service.received.map(({ headers, body }) => {
      expect(headers['content-length']).toBe(String(Buffer.from(body, 'base64').length))
      expect(headers['host']).toBe(`127.0.0.1:${service.port}`)
      return JSON.parse(decryptPush(Buffer.from(body, 'base64'), keys).text).notification.title
    })
    const hooks = receiver.received.map(({ headers, body }) => {
      expect(headers['host']).toBe(`127.0.0.1:${receiver.port}`)
      return (new Webhook(secret).verify(Buffer.from(body, 'base64'), headers) as any).data.title
    })
    expect([pushes, hooks]).toEqual([
      ['First', 'Second'],
      ['First', 'Second'],
    ])
  },
)
