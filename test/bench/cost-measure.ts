import { once } from 'node:events'
import { toId } from '../../src/base/ids.ts'
import { APP_SECRET } from '../support/secret.ts'
import { until } from '../support/until.ts'
import { WATCHED, type World } from './cost-world.ts'
import { startLoad } from './feed-process.ts'
import { readRss } from './memory.ts'
import { startTidings, toBearer } from './server.ts'
import { sendSteadily } from './steady.ts'
import { load } from './wrk.ts'

/** The measurements of one round at one point. */
export interface Figures {
  /** Events per second at 64 connections. */
  ingest: number
  /** Milliseconds from the start of a POST to a socket, and to a webhook's receiver. */
  feedP50: number
  feedP99: number
  hookP50: number
  hookP99: number
  /** The server's memory in MB, after all measurements. */
  memory: number
}

/** The load for measuring delays: half of the events match the webhooks, too. */
export interface Offered {
  perSecond: number
  seconds: number
  /**
   * Measures ingest in a project without followers: no load generator keeps up with thousands of
   * sockets.
   */
  isElsewhere?: boolean
}

const CONNECTIONS = 64
const INGEST_SECONDS = 4
const WARM_SECONDS = 1
/** A socket follows at most ten projects. */
const STREAMS = 10
const ARRIVE_MS = 60_000
const INTENT = /"intent":"(\w+)"/

/** Records the arrival of events that were posted here. */
interface Stopwatch {
  sent: Map<string, number>
  feed: number[]
  hooks: number[]
}

/** A receiver that answers at once. */
export function startReceiver() {
  let watch: Stopwatch | undefined
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const arrivedMs = performance.now()
      note(watch?.sent, watch?.hooks, { text: await request.text(), arrivedMs })
      return new Response(null, { status: 204 })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    /** Records arrivals in this stopwatch from now on. */
    use: (used: Stopwatch) => void (watch = used),
    stop: () => server.stop(true),
  }
}

export type Receiver = ReturnType<typeof startReceiver>

/**
 * Starts a server on a world and measures it: first the delays at a low rate, then the maximum
 * rate.
 */
export async function measureWorld(
  world: World,
  { receiver, offered }: { receiver: Receiver; offered: Offered },
): Promise<Figures> {
  const { shape, databaseUrl, projects, other } = world
  const first = projects[0]?.token ?? ''
  const { child, url } = await startTidings(databaseUrl, first, 1, {
    APP_SECRET: APP_SECRET.toString('base64'),
    EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
  })
  const origin = new URL(url).origin
  const watch: Stopwatch = { sent: new Map(), feed: [], hooks: [] }
  receiver.use(watch)
  const crowd = await startCrowd(world, origin)
  const followers = await openFollowers(world, { origin, watch })
  try {
    for (const { seconds, isCounted } of [
      { seconds: WARM_SECONDS, isCounted: false },
      { seconds: offered.seconds, isCounted: true },
    ]) {
      watch.feed.length = 0
      watch.hooks.length = 0
      const events = await post(world, { origin, watch, offered: { ...offered, seconds } })
      const deliveries = (events / 2) * shape.endpoints
      await until(
        () => watch.feed.length >= events && watch.hooks.length >= deliveries,
        isCounted ? ARRIVE_MS : undefined,
      )
    }
    for (const socket of followers) socket.close()
    const { perSecond, failed } = await load({
      url,
      headers: offered.isElsewhere ? toBearer(other) : projects.map(({ token }) => toBearer(token)),
      channels: shape.channels,
      connections: CONNECTIONS,
      seconds: INGEST_SECONDS,
      keyed: 0.3,
    })
    if (failed > 0) throw new Error(`${failed} posts failed`)
    return {
      ingest: perSecond,
      feedP50: percentile(watch.feed, 0.5),
      feedP99: percentile(watch.feed, 0.99),
      hookP50: percentile(watch.hooks, 0.5),
      hookP99: percentile(watch.hooks, 0.99),
      memory: readRss(child.pid ?? 0),
    }
  } finally {
    await crowd?.stop()
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
  }
}

/** Opens all sockets of the project but one, in a separate process. */
async function startCrowd({ shape, projects, cookies }: World, url: string) {
  if (shape.sockets === 1) return undefined
  const project = toId('prj', projects[0]?.uuid ?? '')
  return startLoad({
    url,
    path: '/api/feed',
    sockets: shape.sockets - 1,
    cookies,
    script: [{ after: '{"type":"hello"', say: JSON.stringify({ type: 'subscribe', project }) }],
    ready: '{"type":"subscribed"',
  })
}

/** Opens sockets that together follow every project, each once. */
async function openFollowers(
  { projects, cookies }: World,
  { origin, watch }: { origin: string; watch: Stopwatch },
): Promise<WebSocket[]> {
  const sockets: WebSocket[] = []
  for (let from = 0; from < projects.length; from += STREAMS) {
    const ids = projects.slice(from, from + STREAMS).map(({ uuid }) => toId('prj', uuid))
    const cookie = cookies[Math.floor(from / 100)] ?? ''
    sockets.push(await openFollower(origin, { cookie, ids, watch }))
  }
  return sockets
}

async function openFollower(
  origin: string,
  { cookie, ids, watch }: { cookie: string; ids: string[]; watch: Stopwatch },
): Promise<WebSocket> {
  // Bun accepts headers, which its browser types do not declare.
  const options = { headers: { cookie, origin } } as never
  const socket = new WebSocket(`${origin.replace('http', 'ws')}/api/feed`, options)
  let subscribed = 0
  await new Promise<void>((resolve, reject) => {
    socket.onclose = ({ code }) => reject(new Error(`The socket was closed with ${code}`))
    socket.onmessage = ({ data }) => {
      const [text, arrivedMs] = [String(data), performance.now()]
      if (text.startsWith('{"type":"hello"'))
        for (const project of ids) socket.send(JSON.stringify({ type: 'subscribe', project }))
      else if (text.startsWith('{"type":"subscribed"') && ++subscribed === ids.length) resolve()
      else if (text.startsWith('{"type":"event"')) note(watch.sent, watch.feed, { text, arrivedMs })
    }
  })
  return socket
}

/**
 * Posts an even number of events at a fixed rate, regardless of answer times; every other one
 * matches the webhooks. Returns the number.
 */
async function post(
  world: World,
  { origin, watch, offered }: { origin: string; watch: Stopwatch; offered: Offered },
): Promise<number> {
  const { projects, shape } = world
  const { perSecond, seconds } = offered
  const total = Math.max(2, 2 * Math.round((perSecond * seconds) / 2))
  watch.sent.clear()
  await sendSteadily({ origin, perSecond, total }, async (client, nth) => {
    const pair = nth >> 1
    watch.sent.set(`n${nth}`, performance.now())
    const { status } = await client.request('POST', '/v1/events', {
      headers: {
        authorization: `Bearer ${projects[pair % projects.length]?.token}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({
        channelName: nth % 2 === 0 ? WATCHED : `channel ${pair % shape.channels}`,
        title: `New payment ${nth}`,
        description: 'A customer paid for a plan',
        tags: ['billing', 'plan'],
        userId: `user_${nth % 100}`,
        metadata: { intent: `n${nth}`, plan: 'pro', currency: 'EUR' },
      }),
    })
    if (status !== 201) throw new Error(`A post was answered ${status}`)
  })
  return total
}

function note(
  sent: Map<string, number> | undefined,
  delays: number[] | undefined,
  { text, arrivedMs }: { text: string; arrivedMs: number },
): void {
  const sentMs = sent?.get(INTENT.exec(text)?.[1] ?? '')
  if (sentMs !== undefined) delays?.push(arrivedMs - sentMs)
}

function percentile(values: number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(share * (values.length - 1))] ?? NaN
}
