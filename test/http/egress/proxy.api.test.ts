import { expect, test } from 'bun:test'
import { parseConfig } from '../../../src/base/config.ts'
import { createEgress, type EgressOptions } from '../../../src/http/egress/egress.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startConnectProxy } from '../../support/servers/connect-proxy.ts'
import { startReceiver } from '../../support/servers/receiver.ts'
import { boot } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { forFile } from '../../support/for-file.ts'

const authority = createAuthority()
const receiver = forFile(() => startReceiver())
const secure = forFile(() =>
  startReceiver({ certificate: authority.issue(['hook.test', '127.0.0.1']) }),
)

interface Through {
  port: number
  noProxy?: string
  resolvesNames?: boolean
  user?: string
}

/** Returns a client behind a proxy; `addresses` are those of every name. */
function openEgress(
  { port, noProxy = '', resolvesNames = false, user = '' }: Through,
  { addresses = ['127.0.0.1'], ...options }: EgressOptions & { addresses?: string[] } = {},
) {
  return createEgress({
    allowCidrs: ['127.0.0.0/8'],
    ca: authority.ca,
    resolve: async () =>
      addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
    proxy: { url: `http://${user}127.0.0.1:${port}`, noProxy, resolvesNames },
    ...options,
  })
}

async function send(egress: ReturnType<typeof openEgress>, url: string, timeoutMs = 20_000) {
  const result = await egress.send({ url, body: '{}', timeoutMs })
  return 'error' in result ? result.error : result.status
}

test('requests use tunnels to addresses that were checked, and keep them', async () => {
  await using proxy = await startConnectProxy()
  const egress = openEgress(proxy, {
    addresses: ['::1', '127.0.0.1'],
    allowCidrs: ['127.0.0.0/8', '::1/128'],
  })
  for (const url of [`https://hook.test:${secure.port}/a`, `http://hook.test:${receiver.port}/a`]) {
    for (let n = 0; n < 3; n++) expect([url, await send(egress, url)]).toEqual([url, 200])
  }
  expect(await send(egress, `https://127.0.0.1:${secure.port}/`)).toBe(200)
  expect(proxy.destinations).toEqual([
    `127.0.0.1:${secure.port}`,
    `127.0.0.1:${receiver.port}`,
    `127.0.0.1:${secure.port}`,
  ])
  expect(secure.received[0]).toMatchObject({
    path: '/a',
    headers: { host: `hook.test:${secure.port}` },
  })
  expect(secure.received[0]!.headers).not.toHaveProperty('proxy-authorization')
  egress.close()
  await until(() => proxy.open === 0)
})

test('a proxy gets no request for an address that the guard refuses', async () => {
  await using proxy = await startConnectProxy()
  const closed = { allowCidrs: [] }
  for (const addresses of [['127.0.0.1'], ['10.0.0.1'], ['8.8.8.8', '169.254.169.254'], []]) {
    expect(await send(openEgress(proxy, { ...closed, addresses }), 'https://a.test/')).toBe('dns')
  }
  const resolving = openEgress({ ...proxy, resolvesNames: true }, closed)
  for (const host of ['127.0.0.1', '10.0.0.1', '[::1]', '2130706433']) {
    expect(await send(resolving, `https://${host}/`)).toBe('refused')
  }
  for (const host of ['localhost', 'a.localhost', 'localhost.']) {
    expect(await send(resolving, `https://${host}/`)).toBe('dns')
  }
  expect(proxy.destinations).toEqual([])
})

test('a proxy that resolves names gets the name', async () => {
  await using proxy = await startConnectProxy()
  const egress = openEgress({ ...proxy, resolvesNames: true }, { addresses: [] })
  expect(await send(egress, `https://hook.test:${secure.port}/`)).toBe(200)
  expect(proxy.destinations).toEqual([`hook.test:${secure.port}`])
  egress.close()
})

test('the certificate in a tunnel is that of the target', async () => {
  await using proxy = await startConnectProxy()
  const before = secure.received.length
  expect(await send(openEgress(proxy), `https://evil.test:${secure.port}/`)).toBe('tls')
  const strangers = openEgress(proxy, { ca: createAuthority().ca })
  expect(await send(strangers, `https://hook.test:${secure.port}/`)).toBe('tls')
  expect(secure.received.length).toBe(before)
})

test('credentials are sent to the proxy; without them it refuses this server', async () => {
  const token = Buffer.from('tidings:p@ss:word').toString('base64')
  await using proxy = await startConnectProxy({ authorization: `Basic ${token}` })
  const url = `https://hook.test:${secure.port}/`
  const egress = openEgress({ ...proxy, user: 'tidings:p%40ss%3Aword@' })
  expect(await send(egress, url)).toBe(200)
  expect(await send(openEgress(proxy), url)).toBe('proxy')
  egress.close()
})

test('a proxy that is away is `proxy`, a destination that it cannot reach is `connect`', async () => {
  const url = `https://hook.test:${secure.port}/`
  await using refusing = await startConnectProxy({ status: 403 })
  expect(await send(openEgress(refusing), url)).toBe('connect')
  const gone = await startReceiver()
  await gone.close()
  expect(await send(openEgress(gone), url)).toBe('proxy')
  await using proxy = await startConnectProxy()
  expect(await send(openEgress(proxy), `https://hook.test:${gone.port}/`)).toBe('connect')
  for (const reply of ['garbage', 'reset', 'endless headers'] as const) {
    await using broken = await startReceiver({ reply })
    expect([reply, await send(openEgress(broken), url)]).toEqual([reply, 'proxy'])
  }
})

test('NO_PROXY names hosts, domains, addresses and networks', async () => {
  await using proxy = await startConnectProxy()
  const url = `http://a.hook.test:${receiver.port}/`
  const count = async (noProxy: string, to = url) => {
    const before = proxy.destinations.length
    const egress = openEgress({ ...proxy, noProxy })
    expect(await send(egress, to)).toBe(200)
    egress.close()
    return proxy.destinations.length - before
  }
  for (const direct of ['*', 'hook.test', '.hook.test', '*.hook.test', 'x.test, A.Hook.TEST']) {
    expect([direct, await count(direct)]).toEqual([direct, 0])
  }
  expect(await count(`hook.test:${receiver.port}`)).toBe(0)
  for (const other of ['', 'ook.test', 'b.hook.test', 'hook.test:1', '10.0.0.0/8', '[::1]:80']) {
    expect([other, await count(other)]).toEqual([other, 1])
  }
  const literal = `http://127.0.0.1:${receiver.port}/`
  expect(await count('127.0.0.0/8', literal)).toBe(0)
  expect(await count('127.0.0.1', literal)).toBe(0)
  expect(await count('10.0.0.0/8, 127.0.0.2', literal)).toBe(1)
})

test('delivery: a server with EGRESS_PROXY sends its webhooks through the proxy', async () => {
  await using proxy = await startConnectProxy()
  const url = `http://127.0.0.1:${proxy.port}`
  const { egressProxy } = parseConfig({ EGRESS_PROXY: url }, () => '')
  await using server = await boot({ egressAllowCidrs: ['127.0.0.0/8'], egressProxy })
  const tenant = await newTenant(server)
  const path = `/${crypto.randomUUID()}`
  const made = await tenant.account.post(`${tenant.path}/webhooks`, {
    url: `${receiver.url}${path}`,
  })
  expect(made.status).toBe(201)
  await tenant.send({ title: 'Through the proxy' })
  await receiver.until(1, path)
  expect(proxy.destinations).toEqual([`127.0.0.1:${receiver.port}`])
})
