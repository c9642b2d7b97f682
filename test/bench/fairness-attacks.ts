import { connect, type Socket } from 'node:net'
import { crc32 } from 'node:zlib'
import { newSecret } from '../../src/access/guard/secret.ts'
import { newToken } from '../../src/access/keys/token.ts'
import { toRequest } from '../support/clients/raw-http.ts'
import { toFrame } from '../support/clients/raw-feed.ts'
import type { Attacker } from './fairness-load.ts'

/** One kind of hostile load. `run` ends soon after `isOver`. */
export interface Attack {
  name: string
  run(hands: Hands): Promise<unknown>
}

/** The credentials of an attack, and connections whose responses are counted. */
export interface Hands extends Attacker {
  isOver(): boolean
  /** Resolves with the status of the response, or 0 if the connection ends. */
  send(connection: Connection, request: Sent): Promise<number>
  open(): Connection
}

interface Sent {
  method?: string
  path: string
  headers?: Record<string, string>
  body?: string
}

export interface Connection {
  socket: Socket
  /** Called with the status of each complete response. */
  onAnswer(status: number): void
}

const JSON_TYPE = { 'Content-Type': 'application/json' }
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` })
/** The limit of a default key, less a few. */
const MOST = 95
const CONNECTIONS = 64
/** Numbers are what takes the longest to parse. */
const LARGE_BODIES = [6_500, 52_000].map(count => JSON.stringify({ x: Array(count).fill(1.25) }))

/** A subscription takes 4 KiB. */
const COSTLY_FILTERS = {
  text: 'words '.repeat(20).trim(),
  any: Array.from({ length: 6 }, (_, part) => ({
    text: `ä${part} `.repeat(20).trim(),
    channels: Array.from({ length: 16 }, (_, n) => `Later Name ${16 * part + n}`),
  })),
}

export const ATTACKS: Attack[] = [
  { name: '95 identifies with hostile words', run: hands => burst(hands, MOST, toIdentify) },
  {
    name: '64 erasures',
    run: hands =>
      burst(hands, 64, ({ key, round }, n) => ({
        method: 'DELETE',
        path: `/v1/users/user_${64 * round + n}`,
        headers: bearer(key),
      })),
  },
  {
    name: '95 events of 256 KiB',
    run: hands =>
      burst(hands, MOST, ({ key }, n) =>
        toEvent(key, {
          title: `Large ${n}`,
          metadata: { numbers: Array.from({ length: 34_000 }, (_, i) => (i % 9000) + 0.5) },
        }),
      ),
  },
  {
    name: '95 events with hostile texts',
    run: hands =>
      burst(hands, MOST, ({ key }, n) =>
        toEvent(key, { title: `Text ${n}`, description: hostileText(n, 5_000) }),
      ),
  },
  {
    name: '95 events, each in a new channel',
    run: hands =>
      burst(hands, MOST, ({ key, round }, n) =>
        toEvent(key, { channelName: `channel ${round} ${n} ${Math.random()}` }),
      ),
  },
  {
    name: '95 events for 10 webhooks of a slow receiver',
    run: hands => burst(hands, MOST, ({ hooksKey }) => toEvent(hooksKey, {})),
  },
  {
    name: 'events over the limit of the key',
    run: hands => flood(hands, CONNECTIONS, ({ key }) => toEvent(key, {})),
  },
  {
    name: '90 searches by key',
    run: hands =>
      burst(hands, 90, ({ key }) => ({
        path: '/v1/events?text=alpha+omega+customers',
        headers: bearer(key),
      })),
  },
  {
    name: 'histograms, 8 by each of 2 viewers',
    run: hands => flood(hands, 16, viewer('histogram', '-meta:plan=free -zebra')),
  },
  {
    name: 'histograms of all channels',
    run: hands => flood(hands, 16, viewer('histogram', '', '&from=2026-01-01T00:00:07Z')),
  },
  {
    name: 'searches with common words',
    run: hands => flood(hands, 16, viewer('events', 'alpha omega -customer')),
  },
  {
    name: 'searches with meta: terms',
    run: hands =>
      flood(hands, 16, viewer('events', 'meta:field7=no meta:field8=no meta:field9=no')),
  },
  {
    name: 'searches with negated terms',
    run: hands => flood(hands, 16, viewer('events', '-alpha -word1 -tag:billing')),
  },
  {
    name: 'suggestions of similar values',
    run: hands =>
      flood(hands, 16, ({ project, cookies }, n) => ({
        path: `/api/projects/${project}/suggestions?field=meta&text=${'similar'.repeat(9)}`,
        headers: { Cookie: cookies[n % 2] ?? '' },
      })),
  },
  {
    name: 'pages of 100 large events',
    run: hands => flood(hands, 16, viewer('events', '', '&limit=100')),
  },
  {
    name: 'small reads of 2 viewers',
    run: hands =>
      flood(hands, CONNECTIONS, ({ cookies }, n) => ({
        path: '/api/me',
        headers: { Cookie: cookies[n % 2] ?? '' },
      })),
  },
  { name: 'sockets that replay the log', run: hands => floodSockets(hands, [{ after: 0 }]) },
  {
    name: 'subscriptions with many names and words',
    run: hands => floodSockets(hands, Array(19).fill({ filters: COSTLY_FILTERS })),
  },
  {
    name: 'unknown keys',
    run: hands =>
      flood(hands, CONNECTIONS, (_, n) => ({
        path: '/v1/events',
        headers: { ...bearer(newToken()), ...from(n) },
      })),
  },
  {
    name: 'keys of a wrong form',
    run: hands =>
      flood(hands, CONNECTIONS, (_, n) => ({
        path: '/v1/events',
        headers: { ...bearer(`tdg_${crc32(String(n))}`), ...from(n) },
      })),
  },
  {
    name: 'unknown cookies',
    run: hands =>
      flood(hands, CONNECTIONS, (_, n) => ({
        path: '/api/me',
        headers: { Cookie: `tidings=${newSecret(256)}`, ...from(n) },
      })),
  },
  {
    name: 'unknown cookies from many networks',
    run: hands =>
      flood(hands, CONNECTIONS, () => ({
        path: '/api/me',
        headers: { Cookie: `tidings=${newSecret(256)}`, ...fromAnywhere() },
      })),
  },
  {
    name: 'cookies of a wrong form',
    run: hands =>
      flood(hands, CONNECTIONS, (_, n) => ({
        path: '/api/me',
        headers: { Cookie: `tidings=${newSecret(128)}`, ...from(n) },
      })),
  },
  {
    name: 'failed sign-ins',
    run: hands =>
      flood(hands, CONNECTIONS, ({ url }, n) => ({
        method: 'POST',
        path: '/api/session',
        headers: { ...JSON_TYPE, Origin: url, ...fromAnywhere() },
        body: JSON.stringify({ email: `nobody${n}@example.com`, password: 'wrong password!' }),
      })),
  },
  {
    name: 'large bodies without credentials',
    run: hands =>
      flood(hands, CONNECTIONS, ({ url }, n) => ({
        method: 'POST',
        path: '/api/session',
        headers: { ...JSON_TYPE, Origin: url, ...fromAnywhere() },
        // A stranger may send 32 KiB.
        body: LARGE_BODIES[n % 2] ?? '',
      })),
  },
  { name: '95 slow bodies', run: holdBodies },
  { name: '1,000 connections without a request', run: holdConnections },
]

/** Sends `count` requests at once, each on its own connection. */
async function burst(
  hands: Hands,
  count: number,
  toRequestOf: (hands: Hands, n: number) => Sent,
): Promise<void> {
  const sent = Array.from({ length: count }, (_, n) => toRequestOf(hands, n))
  await Promise.all(sent.map(one => hands.send(hands.open(), one)))
}

/** Sends requests without a pause on `connections` connections. */
async function flood(
  hands: Hands,
  connections: number,
  toRequestOf: (hands: Hands, n: number) => Sent,
): Promise<void> {
  const run = async (n: number) => {
    let connection = hands.open()
    while (!hands.isOver())
      if ((await hands.send(connection, toRequestOf(hands, n))) === 0) connection = hands.open()
  }
  await Promise.all(Array.from({ length: connections }, (_, n) => run(n)))
}

function viewer(resource: string, search: string, more = '') {
  return ({ project, cookies }: Hands, n: number): Sent => ({
    path: `/api/projects/${project}/${resource}?q=${encodeURIComponent(search)}${more}`,
    headers: { Cookie: cookies[n % 2] ?? '' },
  })
}

function toEvent(key: string, event: object): Sent {
  return {
    method: 'POST',
    path: '/v1/events',
    headers: { ...bearer(key), ...JSON_TYPE },
    body: JSON.stringify({ channelName: 'payments', title: 'New payment', ...event }),
  }
}

/** Words that no other user has, and texts that are slow to parse. */
function toIdentify({ key, round }: Hands, n: number): Sent {
  const names = Array.from({ length: 50 }, (_, i) => `${round}.${n}.${i}-${hostileText(i, 200)}`)
  const words = Array.from({ length: 12_000 }, (_, i) => `w${round}x${n}x${i}`).join(' ')
  return {
    method: 'POST',
    path: '/v1/identify',
    headers: { ...bearer(key), ...JSON_TYPE },
    body: JSON.stringify({
      user_id: `hostile ${round} ${n}`,
      properties: { words, path: hostileText(n, 60_000) },
      aliases: names,
    }),
  }
}

/** Postgres' text parser tries at each mark to read an address or a path. */
function hostileText(n: number, length: number): string {
  return `${n}a/b-c.d_${n}@e`.repeat(length / 8).slice(0, length)
}

/** A client behind the proxy, in a network of few. */
function from(n: number): Record<string, string> {
  return { 'X-Forwarded-For': `198.51.100.${n % 4}` }
}

function fromAnywhere(): Record<string, string> {
  const part = () => Math.floor(Math.random() * 65_536).toString(16)
  return { 'X-Forwarded-For': `2001:db8:${part()}:${part()}::1` }
}

/** Opens as many sockets as two accounts may, subscribes on each, and opens them anew. */
async function floodSockets(
  { url, project, cookies, isOver }: Hands,
  subscriptions: object[],
): Promise<void> {
  const { host, hostname, port, origin } = new URL(url)
  const messages = Buffer.concat(
    subscriptions.map(one => toFrame(JSON.stringify({ type: 'subscribe', project, ...one }))),
  )
  while (!isOver()) {
    const sockets = Array.from({ length: 38 }, (_, n) => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.write(
        toRequest('GET /api/feed HTTP/1.1', [
          `Host: ${host}`,
          `Origin: ${origin}`,
          `Cookie: ${cookies[n % 2]}`,
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Version: 13',
          'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        ]),
      )
      socket.once('data', () => socket.write(messages))
      socket.on('data', () => {})
      return socket
    })
    await Bun.sleep(1_500)
    for (const socket of sockets) socket.destroy()
  }
}

/** Begins bodies of 200 kB, and continues each with a byte twice a second. */
async function holdBodies({ url, key, open, isOver }: Hands): Promise<void> {
  const lines = [
    `Host: ${new URL(url).host}`,
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    'Content-Length: 200000',
  ]
  const connections = Array.from({ length: MOST }, open)
  for (const { socket } of connections)
    socket.write(toRequest('POST /v1/events HTTP/1.1', lines, '{'))
  while (!isOver()) {
    await Bun.sleep(500)
    for (const { socket } of connections) socket.write(' ')
  }
}

async function holdConnections({ open, isOver }: Hands): Promise<void> {
  for (let n = 0; n < 1_000; n++) open().socket.write('POST /v1/events HTTP/1.1\r\nHost: a')
  while (!isOver()) await Bun.sleep(100)
}
