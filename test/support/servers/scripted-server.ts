import { createServer } from 'node:http'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { listen } from '../loopback.ts'

/** One request as it arrived; `body` is its text. */
type Received = { method: string; url: string; headers: IncomingHttpHeaders; body: string }

/**
 * A status with a body (text as it is, anything else as JSON), or a fault. The connection is cut
 * before (`drop`) or within (`cut`) the answer, or left open before (`hang`) or within (`stall`)
 * it.
 */
export type Reply =
  | { status: number; headers?: Record<string, string>; body?: unknown }
  | 'drop'
  | 'cut'
  | 'hang'
  | 'stall'

export type ScriptedServer = {
  /** Without a trailing slash. */
  url: string
  /** Every request so far, in order of arrival. */
  received: Received[]
  /** How far its clock, as its header `Date` tells it, is ahead of ours. */
  aheadMs: number
  /** Resolves when `count` requests have arrived. */
  until(count: number): Promise<void>
  close(): Promise<void>
}

/**
 * Starts a real HTTP server on loopback that gives the n-th reply to its n-th request; the last one
 * repeats. A request of `/healthz` is always answered, and not counted.
 */
export async function startScriptedServer(...replies: Reply[]): Promise<ScriptedServer> {
  const received: Received[] = []
  const waiting: { count: number; resolve: () => void }[] = []

  const script = { aheadMs: 0 }
  const server = createServer(async (request, response) => {
    response.setHeader('Date', new Date(Date.now() + script.aheadMs).toUTCString())
    if (request.url === '/healthz') return send(response, { status: 200, body: { status: 'ok' } })
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url = '', headers } = request
    const reply = replies[Math.min(received.length, replies.length - 1)] ?? { status: 418 }
    received.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
    for (const { count, resolve } of waiting) if (received.length >= count) resolve()
    send(response, reply)
  })
  const port = await listen(server)

  return Object.assign(script, {
    url: `http://127.0.0.1:${port}`,
    received,
    until: (count: number) =>
      new Promise<void>(resolve => {
        if (received.length >= count) resolve()
        else waiting.push({ count, resolve })
      }),
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  })
}

function send(response: ServerResponse, reply: Reply): void {
  // Some clients reopen a dead kept connection on their own, which would count twice.
  response.setHeader('Connection', 'close')
  if (reply === 'hang') return
  if (reply === 'drop') {
    response.destroy()
    return
  }
  if (reply === 'stall' || reply === 'cut') {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '100' })
    response.write('{"success":', () => reply === 'cut' && response.destroy())
    return
  }
  const { status, headers = {}, body = '' } = reply
  const [type, text] =
    typeof body === 'string' ? ['text/html', body] : ['application/json', JSON.stringify(body)]
  response.writeHead(status, { 'Content-Type': type, ...headers }).end(text)
}
