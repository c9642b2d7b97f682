import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createEgress, type EgressResult } from '../../../src/http/egress/egress.ts'
import type { Resolver } from '../../../src/http/egress/lookup.ts'
import { createAuthority } from '../../support/certificates.ts'
import { makeFolder } from '../../support/scratch.ts'
import { startReceiver } from '../../support/servers/receiver.ts'
import { scaled } from '../../support/until.ts'
import { forFile } from '../../support/for-file.ts'

const EGRESS = join(import.meta.dir, '../../../src/http/egress/egress.ts')
const authority = createAuthority()
/** Every name resolves to loopback, which is allowed. */
const resolve: Resolver = async () => [{ address: '127.0.0.1', family: 4 }]
const open = createEgress({ allowCidrs: ['127.0.0.0/8'], resolve, ca: authority.ca })
afterAll(() => open.close())
const receiver = forFile(() => startReceiver())
const secure = forFile(() =>
  startReceiver({ certificate: authority.issue(['hook.test', '*.many.test']) }),
)

const toKind = (result: EgressResult) => ('error' in result ? result.error : result.status)
const send = async (url: string, egress = open, timeoutMs = 5_000) =>
  toKind(await egress.send({ url, body: '{}', timeoutMs }))

test('a request arrives unchanged, and its answer is returned', async () => {
  secure.script('/a', { status: 201, headers: { 'X-Info': 'yes' }, body: 'whole' })
  const result = await open.send({
    url: `https://hook.test:${secure.port}/a?b=%20c`,
    headers: { 'webhook-id': 'msg_1' },
    body: '{"é":1}',
    timeoutMs: scaled(5_000),
  })
  if ('error' in result) throw new Error(result.message)
  expect(result.status).toBe(201)
  expect(result.headers['x-info']).toBe('yes')
  expect(Buffer.from(result.body).toString()).toBe('whole')
  const request = secure.received.at(-1)!
  expect(request).toMatchObject({ method: 'POST', path: '/a?b=%20c', body: '{"é":1}' })
  expect(request.headers).toMatchObject({
    host: `hook.test:${secure.port}`,
    'webhook-id': 'msg_1',
    'accept-encoding': 'identity',
    'content-length': '8',
  })
  expect(request.headers['user-agent']).toMatch(/^Tidings\/\d/)
})

test('a name is reached at its next address when the first one refuses', async () => {
  const addresses = ['::1', '127.0.0.2', '127.0.0.1'].map(address => ({
    address,
    family: address.includes(':') ? 6 : 4,
  }))
  const allowCidrs = ['127.0.0.0/8', '::1/128']
  const egress = createEgress({ allowCidrs, resolve: async () => addresses })
  receiver.script('/next', { status: 204 })
  expect(await send(`http://hook.test:${receiver.port}/next`, egress)).toBe(204)
  egress.close()
})

describe('case 22: no connection reaches a private address', () => {
  const canary = forFile(() => startReceiver())

  /** Refuses private addresses; `answers` are successive answers of the resolver. */
  const closed = (...answers: string[][]) =>
    createEgress({
      resolve: async () => {
        const addresses = answers.length > 1 ? answers.shift() : answers[0]
        return (addresses ?? []).map(address => ({
          address,
          family: address.includes(':') ? 6 : 4,
        }))
      },
    })

  test('by a literal address in any spelling', async () => {
    const egress = closed(['8.8.8.8'])
    for (const host of ['127.0.0.1', '2130706433', '①②⑦.⓪.⓪.①', '[::ffff:7f00:1]']) {
      const result = await send(`http://${host}:${canary.port}/`, egress)
      expect([host, result]).toEqual([host, 'refused'])
    }
    expect(canary.connections).toBe(0)
  })

  test('by a name with one private address among others', async () => {
    for (const addresses of [['127.0.0.1'], ['8.8.8.8', '127.0.0.1'], ['2606:4700::1', '::1']]) {
      expect(await send(`http://a.test:${canary.port}/`, closed(addresses))).toBe('dns')
    }
    expect(canary.connections).toBe(0)
  })

  test('by a name from the hosts file', async () => {
    const egress = createEgress()
    for (const host of ['localhost', 'localhost.', 'LOCALHOST']) {
      expect([host, await send(`http://${host}:${canary.port}/`, egress)]).toEqual([host, 'dns'])
    }
    expect(canary.connections).toBe(0)
  })

  test('by a name whose second answer differs: the client connects to what it checked', async () => {
    const answers = ['127.0.0.1', '127.0.0.2']
    const egress = createEgress({
      allowCidrs: ['127.0.0.1/32'],
      resolve: async () => [{ address: answers.shift() ?? '127.0.0.2', family: 4 }],
    })
    expect(await send(`http://a.test:${receiver.port}/`, egress)).toBe(200)
    expect(answers).toEqual(['127.0.0.2'])
    expect(await send(`http://a.test:${canary.port}/`, egress)).toBe('dns')
    egress.close()
  })

  test('by a redirect', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      receiver.script('/r', { status, headers: { Location: `${canary.url}/` } })
      expect(await send(`http://a.test:${receiver.port}/r`)).toBe(status)
    }
    expect(canary.connections).toBe(0)
  })
})

test('a name without addresses is `dns`, a closed port is `connect`', async () => {
  const nothing = createEgress({ resolve: async () => [] })
  expect(await send('http://a.test/', nothing)).toBe('dns')
  const broken = createEgress({ resolve: () => Promise.reject(new Error('ENOTFOUND')) })
  expect(await send('http://a.test/', broken)).toBe('dns')
  const gone = await startReceiver()
  await gone.close()
  expect(await send(`http://a.test:${gone.port}/`)).toBe('connect')
})

test('case 23: TLS certificates that are expired, for another name or of an unknown authority are refused', async () => {
  await using expired = await startReceiver({
    certificate: authority.issue(['hook.test'], { isExpired: true }),
  })
  await using unknown = await startReceiver({ certificate: createAuthority().issue(['hook.test']) })
  expect(await send(`https://hook.test:${expired.port}/`)).toBe('tls')
  expect(await send(`https://hook.test:${unknown.port}/`)).toBe('tls')
  expect(await send(`https://evil.test:${secure.port}/`)).toBe('tls')
  expect(await send(`https://127.0.0.1:${secure.port}/`)).toBe('tls')
  for (const { received } of [expired, unknown]) expect(received).toEqual([])
})

test('many hosts that hang delay no other, and their requests end at once when they are aborted', async () => {
  receiver.script('/hang', 'hang')
  const stop = new AbortController()
  let ended = 0
  const hang = async (n: number) => {
    const url = `http://hang${n}.test:${receiver.port}/hang`
    const result = await open.send({ url, body: '{}', timeoutMs: 600_000, signal: stop.signal })
    ended++
    return toKind(result)
  }
  const hanging = Array.from({ length: 40 }, (_, n) => hang(n))
  await receiver.until(40, '/hang')
  expect(await send(`http://healthy.test:${receiver.port}/healthy`, open, 60_000)).toBe(200)
  expect(ended).toBe(0)
  stop.abort()
  expect(new Set(await Promise.all([...hanging, hang(0)]))).toEqual(new Set(['cancelled']))
  expect(receiver.received.filter(({ path }) => path === '/hang')).toHaveLength(40)
})

test('a kept connection that the server closed is not a failure', async () => {
  await using closing = await startReceiver()
  closing.script('/', { status: 200 }, 'reset', { status: 200 })
  const url = `http://stale.test:${closing.port}/`
  expect(await send(url)).toBe(200)
  // The server closed the kept connection: the request is sent once more, on a new one.
  expect(await send(url)).toBe(200)
  expect(closing.connections).toBe(2)
  // On a new connection a reset is a failure.
  closing.script('/', 'reset')
  expect(await send(`http://other.test:${closing.port}/`)).toBe('reset')
})

test('requests over the limit of a share wait for its own, and their time begins afterwards', async () => {
  await using host = await startReceiver({ reply: 'hang' })
  host.script('/quick', { status: 200 })
  const narrow = createEgress({ allowCidrs: ['127.0.0.0/8'], resolve, perHost: 2 })
  let begun = 0
  const ask = async (share: string, path: string, timeoutMs: number, signal?: AbortSignal) => {
    const begin = () => ++begun > 0
    const url = `http://busy.test:${host.port}/${path}`
    return toKind(await narrow.send({ url, timeoutMs, share, signal, begin }))
  }
  const [end, stop] = [new AbortController(), new AbortController()]
  const held = [1, 2].map(() => ask('one', 'hang', 600_000, end.signal))
  await host.until(2)
  const before = begun
  const waiting = ask('one', 'quick', 500)
  const stopped = ask('one', 'quick', 500, stop.signal)
  stop.abort()
  expect(await stopped).toBe('cancelled')
  expect(begun).toBe(before)
  // Its time is over while the others wait.
  expect(await ask('two', 'hang', 500)).toBe('timeout')
  end.abort()
  expect(await Promise.all([...held, waiting])).toEqual(['cancelled', 'cancelled', 200])
  narrow.close()
})

test('a request that somebody waits for ends in its time, also in the queue of its host', async () => {
  await using host = await startReceiver({ reply: 'hang' })
  const narrow = createEgress({ allowCidrs: ['127.0.0.0/8'], resolve, perHost: 1 })
  const end = new AbortController()
  const url = `http://awaited.test:${host.port}/`
  const held = narrow.send({ url, timeoutMs: 600_000, signal: end.signal })
  await host.until(1)
  const awaited = await narrow.send({ url, timeoutMs: 200, isAwaited: true })
  expect(awaited).toMatchObject({ error: 'busy', message: expect.stringContaining('in progress') })
  expect(host.received).toHaveLength(1)
  end.abort()
  await held
  narrow.close()
})

test('no request is written once it may not begin any more', async () => {
  await using host = await startReceiver()
  const url = `http://late.test:${host.port}/`
  for (const allowed of [0, 1]) {
    let asked = 0
    const begin = () => asked++ < allowed
    expect(toKind(await open.send({ url, timeoutMs: scaled(5_000), begin }))).toBe('cancelled')
  }
  expect(host.received).toEqual([])
})

/** Answers each request after it has told of it. */
const ANSWERER = `
  require('node:net').createServer(socket => {
    socket.on('error', () => {}).on('data', () => {
      process.stdout.write('asked\\n')
      setTimeout(() => socket.write('HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok'), 100)
    })
  }).listen(0, '127.0.0.1', function () { process.stdout.write(this.address().port + '\\n') })
`

test('an answer that arrives while the process stands still is read', async () => {
  await using answerer = Bun.spawn([process.execPath, '-e', ANSWERER], { stdout: 'pipe' })
  const lines = answerer.stdout.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
  const port = Number((await lines.next()).value)
  const sending = open.send({ url: `http://still.test:${port}/`, timeoutMs: 1_500 })
  expect((await lines.next()).value).toBe('asked\n')
  Bun.sleepSync(3_000)
  expect(toKind(await sending)).toBe(200)
})

test('delivery: connections to 200 TLS hosts are kept', async () => {
  const round = async (requests: number) => {
    for (let n = 0; n < requests; n += 20) {
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          open.send({
            url: `https://h${(n + at) % 200}.many.test:${secure.port}/`,
            timeoutMs: scaled(30_000),
          }),
        ),
      )
      for (const result of results) expect(result).toMatchObject({ status: 200 })
    }
  }
  await round(200)
  const before = secure.connections
  await round(400)
  expect(secure.connections - before).toBeLessThan(20)
})

test('case 23: a flood of failing endpoints leaves memory flat', async () => {
  await using flooding = await startReceiver()
  for (const fault of ['bomb', 'flood', 'endless headers', 'cut'] as const) {
    flooding.script(`/${fault.split(' ')[0]}`, fault)
  }
  const round = async () => {
    await Promise.all(
      ['bomb', 'flood', 'endless', 'cut'].map(path =>
        open.send({ url: `http://a.test:${flooding.port}/${path}`, timeoutMs: scaled(5_000) }),
      ),
    )
  }
  for (let n = 0; n < 5; n++) await round()
  const before = process.memoryUsage().rss
  for (let n = 0; n < 10; n++) await round()
  // The endpoints offered 10 times 150 MB.
  expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000)
})

/** Sends a request to the URL in its argument. Prints the status, or why there was none. */
const SENDER = `
  const { createEgress } = await import(${JSON.stringify(EGRESS)})
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  const egress = createEgress({ allowCidrs: ['127.0.0.0/8'], resolve })
  const result = await egress.send({ url: process.argv[1], timeoutMs: 60_000 })
  console.log('error' in result ? result.error : result.status)
  process.exit(0)
`

/** Runs a request in a process with these variables. */
async function sendInProcess(url: string, env: Record<string, string>): Promise<string> {
  await using child = Bun.spawn([process.execPath, '-e', SENDER, url], {
    env: { PATH: process.env['PATH'], ...env },
  })
  return (await new Response(child.stdout).text()).trim()
}

test.each([
  ['nothing', undefined, 'tls'],
  ['NODE_EXTRA_CA_CERTS', 'NODE_EXTRA_CA_CERTS', '200'],
  ['SSL_CERT_FILE', 'SSL_CERT_FILE', '200'],
])('the certificate of a private authority, with %s', async (_, variable, outcome) => {
  const file = join(makeFolder(), 'authority.pem')
  writeFileSync(file, authority.ca)
  const url = `https://hook.test:${secure.port}/`
  expect(await sendInProcess(url, variable === undefined ? {} : { [variable]: file })).toBe(outcome)
})
