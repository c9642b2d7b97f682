import type { Socket } from 'node:net'
import { crc32 } from 'node:zlib'
import { newSecret } from '../../src/access/guard/secret.ts'
import { newToken } from '../../src/access/keys/token.ts'
import { toRequest } from '../support/clients/raw-http.ts'
import { toFrame, toHandshake } from '../support/clients/raw-feed.ts'
import { toBearer } from './server.ts'

/** The credentials of the other organization. Its keys have the default limit. */
export interface Attacker {
  url: string
  round: number
  project: string
  key: string
  hooksKey: string
  /** The sessions of two viewers. */
  cookies: string[]
}

/** The means of an attack. */
interface Hands extends Attacker {
  isOver(): boolean
  /** Resolves at the end of the response, which is counted, or of its connection. */
  send(request: Sent): Promise<void>
  /** Opens a connection. It is closed at the end of the attack. */
  open(): Socket
}

export interface Sent {
  method?: string
  path: string
  headers?: Record<string, string>
  body?: string
}

/** Runs a hostile load. It ends soon after `isOver`. */
type Attack = (hands: Hands) => Promise<unknown>
/** Returns the n-th request of an attack, or the next one of its n-th connection. */
type ToSent = (hands: Hands, n: number) => Sent

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

/** Kinds of hostile load, by name. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  '95 identifies with hostile words': burst(MOST, toIdentify),
  '64 erasures': burst(64, ({ key, round }, n) => ({
    method: 'DELETE',
    path: `/v1/users/user_${64 * round + n}`,
    headers: toBearer(key),
  })),
  '95 events of 256 KiB': burst(MOST, ({ key }, n) =>
    toEvent(key, {
      title: `Large ${n}`,
      metadata: { numbers: Array.from({ length: 34_000 }, (_, i) => (i % 9000) + 0.5) },
    }),
  ),
  '95 events with hostile texts': burst(MOST, ({ key }, n) =>
    toEvent(key, { title: `Text ${n}`, description: hostileText(n, 5_000) }),
  ),
  '95 events, each in a new channel': burst(MOST, ({ key, round }, n) =>
    toEvent(key, { channelName: `channel ${round} ${n} ${Math.random()}` }),
  ),
  '95 events for 10 webhooks of a slow receiver': burst(MOST, ({ hooksKey }) =>
    toEvent(hooksKey, {}),
  ),
  'events over the limit of the key': flood(CONNECTIONS, ({ key }) => toEvent(key, {})),
  '90 searches by key': burst(90, ({ key }) => ({
    path: '/v1/events?text=alpha+omega+customers',
    headers: toBearer(key),
  })),
  'histograms, 8 by each of 2 viewers': flood(16, asViewer('histogram', '-meta:plan=free -zebra')),
  'histograms of all channels': flood(16, asViewer('histogram', '', '&from=2026-01-01T00:00:07Z')),
  'searches with common words': flood(16, asViewer('events', 'alpha omega -customer')),
  'searches with meta: terms': flood(
    16,
    asViewer('events', 'meta:field7=no meta:field8=no meta:field9=no'),
  ),
  'searches with negated terms': flood(16, asViewer('events', '-alpha -word1 -tag:billing')),
  'suggestions of similar values': flood(16, ({ project, cookies }, n) => ({
    path: `/api/projects/${project}/suggestions?field=meta&text=${'similar'.repeat(9)}`,
    headers: { Cookie: cookies[n % 2] ?? '' },
  })),
  'pages of 100 large events': flood(16, asViewer('events', '', '&limit=100')),
  'small reads of 2 viewers': flood(CONNECTIONS, ({ cookies }, n) => ({
    path: '/api/me',
    headers: { Cookie: cookies[n % 2] ?? '' },
  })),
  'sockets that replay the log': floodSockets([{ after: 0 }]),
  'subscriptions with many names and words': floodSockets(
    Array(19).fill({ filters: COSTLY_FILTERS }),
  ),
  'unknown keys': flood(CONNECTIONS, (_, n) => ({
    path: '/v1/events',
    headers: { ...toBearer(newToken()), ...from(n) },
  })),
  'keys of a wrong form': flood(CONNECTIONS, (_, n) => ({
    path: '/v1/events',
    headers: { ...toBearer(`tdg_${crc32(String(n))}`), ...from(n) },
  })),
  'unknown cookies': flood(CONNECTIONS, (_, n) => toMe(256, from(n))),
  'unknown cookies from many networks': flood(CONNECTIONS, () => toMe(256, fromAnywhere())),
  'cookies of a wrong form': flood(CONNECTIONS, (_, n) => toMe(128, from(n))),
  'failed sign-ins': flood(CONNECTIONS, ({ url }, n) =>
    toSignIn(url, JSON.stringify({ email: `nobody${n}@example.com`, password: 'wrong password!' })),
  ),
  // A stranger may send 32 KiB.
  'large bodies without credentials': flood(CONNECTIONS, ({ url }, n) =>
    toSignIn(url, LARGE_BODIES[n % 2] ?? ''),
  ),
  '95 slow bodies': holdBodies,
  '1,000 connections without a request': holdConnections,
}

/** Sends `count` requests at once. */
function burst(count: number, toSent: ToSent): Attack {
  return hands =>
    Promise.all(Array.from({ length: count }, (_, n) => toSent(hands, n)).map(hands.send))
}

/** Sends requests without a pause on `connections` connections. */
function flood(connections: number, toSent: ToSent): Attack {
  return hands => {
    const run = async (n: number) => {
      while (!hands.isOver()) await hands.send(toSent(hands, n))
    }
    return Promise.all(Array.from({ length: connections }, (_, n) => run(n)))
  }
}

function asViewer(resource: string, search: string, more = ''): ToSent {
  return ({ project, cookies }, n) => ({
    path: `/api/projects/${project}/${resource}?q=${encodeURIComponent(search)}${more}`,
    headers: { Cookie: cookies[n % 2] ?? '' },
  })
}

export function toPost(path: string, headers: Record<string, string>, body: string): Sent {
  return { method: 'POST', path, headers: { ...headers, 'Content-Type': 'application/json' }, body }
}

function toEvent(key: string, event: object): Sent {
  const body = JSON.stringify({ channelName: 'payments', title: 'New payment', ...event })
  return toPost('/v1/events', toBearer(key), body)
}

function toSignIn(url: string, body: string): Sent {
  return toPost('/api/session', { Origin: url, ...fromAnywhere() }, body)
}

/** A request with the cookie of no session. */
function toMe(bits: 128 | 256, address: Record<string, string>): Sent {
  return { path: '/api/me', headers: { Cookie: `tidings=${newSecret(bits)}`, ...address } }
}

/** Words that no other user has, and texts that are slow to parse. */
function toIdentify({ key, round }: Hands, n: number): Sent {
  const aliases = Array.from({ length: 50 }, (_, i) => `${round}.${n}.${i}-${hostileText(i, 200)}`)
  const words = Array.from({ length: 12_000 }, (_, i) => `w${round}x${n}x${i}`).join(' ')
  const properties = { words, path: hostileText(n, 60_000) }
  const body = JSON.stringify({ user_id: `hostile ${round} ${n}`, properties, aliases })
  return toPost('/v1/identify', toBearer(key), body)
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
function floodSockets(subscriptions: object[]): Attack {
  return async ({ url, project, cookies, isOver, open }) => {
    const messages = Buffer.concat(
      subscriptions.map(one => toFrame(JSON.stringify({ type: 'subscribe', project, ...one }))),
    )
    while (!isOver()) {
      const sockets = Array.from({ length: 38 }, (_, n) => {
        const socket = open()
        socket.write(toHandshake(url, '/api/feed', cookies[n % 2]))
        socket.once('data', () => socket.write(messages))
        return socket.resume()
      })
      await Bun.sleep(1_500)
      for (const socket of sockets) socket.destroy()
    }
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
  const sockets = Array.from({ length: MOST }, open)
  for (const socket of sockets) socket.write(toRequest('POST /v1/events HTTP/1.1', lines, '{'))
  while (!isOver()) {
    await Bun.sleep(500)
    for (const socket of sockets) socket.write(' ')
  }
}

async function holdConnections({ open, isOver }: Hands): Promise<void> {
  for (let n = 0; n < 1_000; n++) open().write('POST /v1/events HTTP/1.1\r\nHost: a')
  while (!isOver()) await Bun.sleep(100)
}
