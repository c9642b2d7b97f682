import { startLoad, startLineProcess, type Job } from './feed-process.ts'
import { installPeers } from './peers.ts'

/** A server with sockets that sends a number of messages to each. */
export interface Sender {
  job: Job
  messages: number
  send(): unknown
  stop(): Promise<void>
}

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
      load.say(String(messages * sockets))
      await load.hear()
      await send()
      const { ms = NaN, received = 0 } = JSON.parse(await load.hear()) as Record<string, number>
      if (received !== messages * sockets)
        throw new Error(`${name} sent ${messages * sockets} messages, and ${received} arrived`)
      perSecond = received / (ms / 1000)
    }
    return perSecond
  } finally {
    await load.stop()
  }
}

function toUrl(ready: string): string {
  return `http://127.0.0.1:${ready.split(' ')[1]}`
}
