import { expect, test } from 'bun:test'
import { scaled } from '../../support/until.ts'
import { createEgress } from '../../../src/http/egress/egress.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startReceiver } from '../../support/servers/receiver.ts'

const authority = createAuthority()

/** Returns a client for which every name resolves to loopback. */
function openEgress() {
  return createEgress({
    allowCidrs: ['127.0.0.0/8'],
    ca: authority.ca,
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
  })
}

test('delivery: 300 hanging endpoints do not delay a healthy one', async () => {
  await using receiver = await startReceiver()
  receiver.script('/hang', 'hang')
  const egress = openEgress()
  const stop = new AbortController()
  const hanging = Array.from({ length: 300 }, (_, n) =>
    egress.send({
      url: `http://h${n}.many.test:${receiver.port}/hang`,
      timeoutMs: scaled(60_000),
      signal: stop.signal,
    }),
  )
  await receiver.until(300, '/hang')
  let ended = 0
  for (const one of hanging) void one.then(() => ended++)
  const healthy = await egress.send({
    url: `http://healthy.test:${receiver.port}/`,
    timeoutMs: scaled(10_000),
  })
  expect(healthy).toMatchObject({ status: 200 })
  expect(ended).toBe(0)
  stop.abort()
  for (const result of await Promise.all(hanging)) {
    expect(result).toMatchObject({ error: 'cancelled' })
  }
  egress.close()
})

test('delivery: connections to 200 TLS hosts are kept', async () => {
  await using receiver = await startReceiver({ certificate: authority.issue(['*.many.test']) })
  const egress = openEgress()
  const round = async (requests: number) => {
    for (let n = 0; n < requests; n += 20) {
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          egress.send({
            url: `https://h${(n + at) % 200}.many.test:${receiver.port}/`,
            timeoutMs: scaled(30_000),
          }),
        ),
      )
      for (const result of results) expect(result).toMatchObject({ status: 200 })
    }
  }
  await round(400)
  const before = receiver.connections
  await round(2_000)
  expect(receiver.connections - before).toBeLessThan(20)
  egress.close()
})

test('case 23: a flood of failing endpoints leaves memory flat', async () => {
  await using receiver = await startReceiver()
  for (const fault of ['bomb', 'flood', 'endless headers', 'cut'] as const) {
    receiver.script(`/${fault.split(' ')[0]}`, fault)
  }
  const egress = openEgress()
  const round = async () => {
    await Promise.all(
      ['bomb', 'flood', 'endless', 'cut'].map(path =>
        egress.send({ url: `http://a.test:${receiver.port}/${path}`, timeoutMs: scaled(5_000) }),
      ),
    )
  }
  for (let n = 0; n < 5; n++) await round()
  const before = process.memoryUsage().rss
  for (let n = 0; n < 40; n++) await round()
  // The endpoints offered 40 times 150 MB.
  expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000)
  egress.close()
})
