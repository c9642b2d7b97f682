// The two sides of the fairness bench, each in its own process: `bun fairness-load.ts victim
// '<json of Victim>'` or `bun fairness-load.ts attacker`. It prints READY, then answers each line
// of input with one line.
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { listen } from '../support/loopback.ts'
import { ATTACKS, toPost, type Attacker, type Sent } from './fairness-attacks.ts'
import { toBearer } from './server.ts'

/** The organization whose requests are measured. */
export interface Victim {
  url: string
  key: string
  cookie: string
  project: string
  email: string
  password: string
  /** A receiver at the host of the attacker's webhooks. It tells when an event has arrived. */
  receiver: string
}

/** The delays of one kind of request in ms, and the number of refused requests. */
export interface Timed {
  took: number[]
  refused: number
}

/** The requests per second of each kind that the victim makes. */
const RATES = {
  ...{ write: 20, read: 10, search: 5, subscribe: 5, 'sign-in': 2, me: 10, readyz: 5 },
} as const
/** So many that none sends more messages than it may. */
const SOCKETS = 8
type Kind = keyof typeof RATES
const TIMEOUT_MS = 15_000
/** The cookie of the browser that signs in. */
let browser = ''
/** The delay of a response of the slow receiver. */
const SLOW_MS = 5_000
/** The path of the receiver that answers at once. */
export const VICTIM_PATH = '/victim'
const MAX_DELIVERED = 1_000

if (import.meta.main) {
  const [role, json = ''] = process.argv.slice(2)
  if (role === 'victim') await runVictim(JSON.parse(json) as Victim)
  else await runAttacker()
}

async function runVictim(victim: Victim): Promise<void> {
  const feed = await follow(victim)
  console.log('READY')
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await measure(victim, feed, Number(line))))
  }
}

interface Feed {
  /** The arrivals of events, by their `intent`. */
  arrivals: Map<string, number>
  /** Subscribes anew. Resolves to false if no response comes. */
  subscribe(): Promise<boolean>
}

async function follow(victim: Victim): Promise<Feed> {
  const arrivals = new Map<string, number>()
  const starts = await Promise.all(Array.from({ length: SOCKETS }, () => open(victim, arrivals)))
  let next = 0
  return { arrivals, subscribe: () => starts[next++ % SOCKETS]!() }
}

/** Opens a socket. Returns a function that subscribes. */
async function open(
  { url, cookie, project }: Victim,
  arrivals: Map<string, number>,
): Promise<() => Promise<boolean>> {
  let onSubscribed = (_isDone: boolean) => {}
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/feed`, {
    headers: { cookie, origin: url },
  } as never)
  await new Promise<void>((resolve, reject) => {
    socket.onclose = () => reject(new Error('The socket was closed'))
    socket.onmessage = ({ data }) => {
      const text = String(data)
      if (text.startsWith('{"type":"hello"')) resolve()
      if (text.startsWith('{"type":"subscribed"')) onSubscribed(true)
      const intent = /"intent":"(\w+)"/.exec(text)?.[1]
      if (intent && !arrivals.has(intent)) arrivals.set(intent, performance.now())
    }
  })
  const start = () =>
    new Promise<boolean>(resolve => {
      onSubscribed = resolve
      setTimeout(() => resolve(false), TIMEOUT_MS)
      socket.send(JSON.stringify({ type: 'subscribe', project, after: null }))
    })
  await start()
  return start
}

/** Sends each kind of request at its rate, whatever the responses take. */
async function measure(
  victim: Victim,
  { arrivals, subscribe }: Feed,
  ms: number,
): Promise<Record<Kind | 'feed' | 'delivery', Timed>> {
  const kinds = Object.keys(RATES) as Kind[]
  const timed = Object.fromEntries(
    [...kinds, 'feed', 'delivery'].map(kind => [kind, { took: [], refused: 0 }]),
  ) as unknown as Record<Kind | 'feed' | 'delivery', Timed>
  const posts = new Map<string, number>()
  arrivals.clear()
  const startedMs = performance.now()
  const run = async (kind: Kind) => {
    let last = Promise.resolve()
    const pending: Promise<void>[] = []
    for (let n = 0; ; n++) {
      const dueMs = startedMs + ((n + Math.random()) * 1000) / RATES[kind]
      if (dueMs > startedMs + ms) break
      await Bun.sleep(Math.max(0, dueMs - performance.now()))
      const intent = crypto.randomUUID().replaceAll('-', '')
      const sentMs = performance.now()
      if (kind === 'write') posts.set(intent, sentMs)
      // Each sign-in gets the cookie of the browser that the next one sends.
      const asked =
        kind === 'subscribe'
          ? subscribe()
          : kind === 'sign-in'
            ? last.then(() => ask(victim, kind, intent))
            : ask(victim, kind, intent)
      last = asked.then(isDone => {
        timed[kind].took.push(performance.now() - sentMs)
        if (!isDone) timed[kind].refused++
      })
      pending.push(last)
    }
    await Promise.all(pending)
  }
  await Promise.all(kinds.map(run))
  const endMs = performance.now() + 5_000
  let delivered = new Map<string, number>()
  const isComplete = () =>
    [...posts.keys()].every(intent => arrivals.has(intent) && delivered.has(intent))
  while (performance.now() < endMs && !isComplete()) {
    await Bun.sleep(50)
    const times = (await (await fetch(victim.receiver)).json()) as [string, number][]
    delivered = new Map(times.map(([intent, at]) => [intent, at - performance.timeOrigin]))
  }
  for (const [intent, sentMs] of posts) {
    for (const [kind, at] of [
      ['feed', arrivals.get(intent)],
      ['delivery', delivered.get(intent)],
    ] as const) {
      timed[kind].took.push((at ?? performance.now()) - sentMs)
      if (at === undefined) timed[kind].refused++
    }
  }
  return timed
}

/** Resolves to false unless the request succeeds. */
async function ask(
  victim: Victim,
  kind: Exclude<Kind, 'subscribe'>,
  intent: string,
): Promise<boolean> {
  const { url, key, cookie, project, email, password } = victim
  const headers = { cookie }
  const event = { channelName: 'ops', title: 'New payment', metadata: { intent } }
  const requests: Record<typeof kind, Sent> = {
    write: toPost('/v1/events', toBearer(key), JSON.stringify(event)),
    read: { path: '/v1/events', headers: toBearer(key) },
    search: { path: `/api/projects/${project}/events?q=payment`, headers },
    'sign-in': toPost(
      '/api/session',
      { origin: url, cookie: browser },
      JSON.stringify({ email, password }),
    ),
    me: { path: '/api/me', headers },
    readyz: { path: '/readyz' },
  }
  const { path, ...request } = requests[kind]
  try {
    const response = await fetch(url + path, {
      ...request,
      headers: { ...request.headers, 'x-forwarded-for': '192.0.2.1' },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    await response.arrayBuffer()
    const kept = response.headers.getSetCookie().find(one => one.startsWith('tidings-device='))
    if (kept) [browser = ''] = kept.split(';')
    return response.ok
  } catch {
    return false
  }
}

async function runAttacker(): Promise<void> {
  const delivered: [intent: string, atMs: number][] = []
  const receiver = createServer(async (request, response) => {
    if (request.method === 'GET') return response.end(JSON.stringify(delivered))
    const body = Buffer.concat(await request.toArray()).toString()
    if (request.url !== VICTIM_PATH) return setTimeout(() => response.end(), SLOW_MS)
    const intent = /"intent":"(\w+)"/.exec(body)?.[1]
    if (intent) delivered.push([intent, performance.timeOrigin + performance.now()])
    // The victim asks for its newest events.
    if (delivered.length > MAX_DELIVERED) delivered.shift()
    return response.end()
  })
  console.log(`READY http://127.0.0.1:${await listen(receiver)}`)
  let stop = async () => {}
  for await (const line of createInterface({ input: process.stdin })) {
    await stop()
    stop = async () => {}
    if (line === 'stop') continue
    const { name, attacker } = JSON.parse(line) as { name: string; attacker: Attacker }
    stop = startAttack(name, attacker)
    console.log('GO')
  }
}

/** Starts an attack. The returned function ends it, and prints the number of each status. */
function startAttack(name: string, attacker: Attacker): () => Promise<void> {
  const statuses: Record<number, number> = {}
  const sockets = new Set<Socket>()
  const over = new AbortController()
  const { signal } = over
  const { hostname, port } = new URL(attacker.url)
  const running = ATTACKS[name]?.({
    ...attacker,
    isOver: () => signal.aborted,
    open() {
      const socket = connect(Number(port), hostname).on('error', () => {})
      sockets.add(socket)
      return socket
    },
    async send({ path, ...request }) {
      const status = await fetch(attacker.url + path, { ...request, signal })
        .then(response => response.arrayBuffer().then(() => response.status))
        // The connection has ended.
        .catch(() => 0)
      statuses[status] = (statuses[status] ?? 0) + 1
    },
  })
  return async () => {
    over.abort()
    for (const socket of sockets) socket.destroy()
    await running
    console.log(JSON.stringify(statuses))
  }
}
