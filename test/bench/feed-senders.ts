import { createEmptyDatabase } from '../support/servers/postgres.ts'
import { ask, readFigures, startLoad, startLineProcess, type Job } from './feed-process.ts'
import { SHARE } from './table.ts'
import { findNode, installPeers } from './peers.ts'
import { PARSE_HEADERS, PARSE_PATH } from './server.ts'

/** A server with sockets that sends a number of messages to each. */
export interface Sender {
  job: Job
  messages: number
  send(): unknown
  stop(): Promise<void>
}

/**
 * Fewer than for the others: its rate takes seconds to measure and does not change with a longer
 * run.
 */
const LIVE_QUERY_MESSAGES = 40
const BARE = { path: '/', cookies: [], script: [], ready: '' }

/** Bun's own publish of a text, with nothing around it. */
export async function startPublish(messages: number, text: string): Promise<Sender> {
  const { ready, say, stop } = await startLineProcess('feed-candidate.ts', ['publish'])
  return {
    job: { ...BARE, url: toUrl(ready) },
    messages,
    send: () => say(`${messages} ${text}`),
    stop,
  }
}

/** socket.io's broadcast of a text as JSON. */
export async function startSocketIo(messages: number, text: string): Promise<Sender> {
  installPeers()
  const { ready, say, stop } = await startLineProcess('feed-candidate.ts', ['socket.io'])
  return {
    job: {
      ...BARE,
      url: toUrl(ready),
      path: '/socket.io/?EIO=4&transport=websocket',
      script: [{ after: '0{', say: '40' }],
      ready: '40{',
    },
    messages,
    send: () => say(`${messages} ${text}`),
    stop,
  }
}

/** parse-server notifies each socket of every object it creates, by a subscription to its class. */
export async function startLiveQuery(): Promise<Sender> {
  installPeers()
  const { ready, say, stop } = await startLineProcess(
    'parse-server.mjs',
    [await createEmptyDatabase(), 'live'],
    findNode(),
  )
  const query = { className: 'Event', where: {} }
  return {
    job: {
      ...BARE,
      url: toUrl(ready),
      greeting: JSON.stringify({ op: 'connect', applicationId: 'bench' }),
      script: [
        {
          after: '{"op":"connected"',
          say: JSON.stringify({ op: 'subscribe', requestId: 1, query }),
        },
      ],
      ready: '{"op":"subscribed"',
      post: { path: PARSE_PATH, headers: PARSE_HEADERS },
    },
    messages: LIVE_QUERY_MESSAGES,
    send: () => say(String(LIVE_QUERY_MESSAGES)),
    stop,
  }
}

/**
 * Returns deliveries per second of a second run: the first one warms up. Throws unless every
 * message arrives once.
 */
export async function sendToAll(
  name: string,
  { job, messages, send }: Sender,
  sockets: number,
): Promise<number> {
  const load = await startLoad({ ...job, sockets })
  try {
    let perSecond = 0
    for (let time = 1; time <= 2; time++) {
      load.say(`expect ${messages * sockets}`)
      await load.hear()
      await send()
      const { ms = NaN, received = 0 } = readFigures(await load.hear())
      if (received !== messages * sockets)
        throw new Error(`${name} sent ${messages * sockets} messages, and ${received} arrived`)
      perSecond = received / (ms / 1000)
    }
    return perSecond
  } finally {
    await load.stop()
  }
}

/**
 * Returns the milliseconds from a POST to the event at a socket. Throws unless every event arrives.
 */
export async function measureDelay(job: Job, perSecond: number) {
  const load = await startLoad({ ...job, sockets: 1, isTimed: true })
  try {
    // Warms up.
    await ask(load, `post ${perSecond} 5`)
    const {
      p50 = NaN,
      p99 = NaN,
      lost,
      failed,
    } = await ask(load, `post ${perSecond} ${Math.ceil(8 * SHARE)}`)
    if (lost !== 0 || failed !== 0)
      throw new Error(`Of the events sent to ${job.url}, ${failed} failed and ${lost} were lost`)
    return { p50, p99 }
  } finally {
    await load.stop()
  }
}

function toUrl(ready: string): string {
  return `http://127.0.0.1:${ready.split(' ')[1]}`
}
