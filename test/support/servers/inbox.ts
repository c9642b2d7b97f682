import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from '../loopback.ts'

/** One request that arrived. */
interface Receipt {
  /** The id of the delivery. */
  id: string
  eventId: string
  targetId: string
  attempt: number
  /** The arrival by performance.now(), in milliseconds. */
  atMs: number
  /** True if it was answered 2xx. */
  isAccepted: boolean
}

/** A real HTTP receiver for the delivery kind of delivery-kind.ts. */
export interface Inbox extends AsyncDisposable {
  url: string
  receipts: Receipt[]
  /** Counts requests answered 2xx, by `event target`. */
  counts(): Map<string, number>
  /** Sets the answer for a target; undefined is an immediate 200. */
  answer(targetId: string, respond?: Respond): void
}

type Respond = (response: ServerResponse, receipt: Receipt) => void

export async function startInbox(): Promise<Inbox> {
  const receipts: Receipt[] = []
  const accepted = new Map<string, number>()
  const scripts = new Map<string, Respond>()
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    request.resume()
    const read = (name: string) => String(request.headers[name] ?? '')
    const receipt = {
      id: read('delivery-id'),
      eventId: read('event-id'),
      targetId: read('target-id'),
      attempt: Number(read('attempt')),
      atMs: performance.now(),
      isAccepted: false,
    }
    receipts.push(receipt)
    response.on('finish', () => {
      if (response.statusCode >= 300) return
      receipt.isAccepted = true
      const name = `${receipt.eventId} ${receipt.targetId}`
      accepted.set(name, (accepted.get(name) ?? 0) + 1)
    })
    const script = scripts.get(receipt.targetId)
    if (script) script(response, receipt)
    else response.end()
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    receipts,
    counts: () => accepted,
    answer(targetId, respond) {
      if (respond) scripts.set(targetId, respond)
      else scripts.delete(targetId)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
