import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import { CAN_REUSE_CONNECTIONS } from '../platform.ts'
import { createSemaphore } from '../semaphore.ts'
import { VERSION } from '../version.ts'
import { toEgressError, toEgressMessage, type EgressError } from './failure.ts'
import { parseEgressUrl, createAddressGuard, NOT_PUBLIC_MESSAGE, type CheckedUrl } from './guard.ts'
import {
  createLookup,
  LOOKUP_REFUSED,
  resolveAllowed,
  systemResolver,
  type Resolver,
} from './lookup.ts'

interface EgressRequest {
  /** As an admin or a browser supplied it. */
  url: string
  method?: 'GET' | 'POST'
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** Limits the whole request, including the wait for other requests to the same host. */
  timeoutMs: number
  /** Cancels the request. The result is then `cancelled`. */
  signal?: AbortSignal | undefined
}

export interface EgressResponse {
  status: number
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>
  /** At most the first 16 KiB, not decompressed. */
  body: Uint8Array
  /** The time until the headers arrived. */
  latencyMs: number
}

interface EgressFailure {
  error: EgressError
  /** A sentence for people. It contains no address. */
  message: string
  latencyMs: number
}

export type EgressResult = EgressResponse | EgressFailure

type Ending = 'timeout' | 'cancelled'

export interface Egress {
  /** Sends one request. It never throws, and does not follow redirects. */
  send(request: EgressRequest): Promise<EgressResult>
  /** Resolves the host of `url`, and returns why the URL is refused; undefined if it is allowed. */
  findProblem(url: string): Promise<string | undefined>
  /** Closes idle connections. */
  close(): void
}

export interface EgressOptions {
  /** Networks that are allowed in addition to public addresses. */
  allowCidrs?: readonly string[]
  resolve?: Resolver
  /** Certificate authorities to trust instead of those of the system. */
  ca?: string | undefined
  /** The most concurrent requests to one host. */
  perHost?: number
}

const MAX_BODY_BYTES = 16 * 1024
const MAX_TEXT_BYTES = 1024
/** The most informational responses, such as 103 Early Hints, before the final response. */
const MAX_INFORMATIONAL = 10
const PER_HOST = 32
/** The fraction of its timeout that a request may wait for others to the same host. */
const MAX_WAIT = 1 / 3
const IDLE_MS = 10_000

/**
 * Creates the only HTTP client for URLs from outside. It connects only to addresses that it has
 * checked. It uses node:http, because fetch follows redirects, reads proxy variables and opens
 * files.
 */
export function createEgress({
  allowCidrs = [],
  resolve = systemResolver,
  ca,
  perHost = PER_HOST,
}: EgressOptions = {}): Egress {
  const isAllowed = createAddressGuard(allowCidrs)
  const lookup = createLookup(resolve, isAllowed)
  const slots = createSemaphore({ perKey: perHost })
  const settings = { keepAlive: CAN_REUSE_CONNECTIONS, maxFreeSockets: perHost, timeout: IDLE_MS }
  const agents = { http: new http.Agent(settings), https: new https.Agent(settings) }

  async function send(request: EgressRequest): Promise<EgressResult> {
    const startMs = performance.now()
    const target = parseEgressUrl(request.url, isAllowed)
    if ('problem' in target) return fail('refused', startMs, target.problem)
    const { signal } = request
    if (signal?.aborted) return fail('cancelled', startMs)
    const end = Promise.withResolvers<Ending>()
    const timer = setTimeout(() => end.resolve('timeout'), request.timeoutMs)
    const cancel = () => end.resolve('cancelled')
    signal?.addEventListener('abort', cancel)
    const maxWaitMs = request.timeoutMs * MAX_WAIT
    const release = await slots.acquire(target.url.host, { maxWaitMs, signal })
    try {
      if (!release) return fail(signal?.aborted ? 'cancelled' : 'busy', startMs)
      const agent = target.isSecure ? agents.https : agents.http
      // The server may have closed a kept connection just before it was reused. The request is sent
      // once more, on a new connection.
      return await exchange(target, request, end.promise, agent, () =>
        exchange(target, request, end.promise, false),
      )
    } finally {
      release?.()
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
    }
  }

  /** Sends one request. Runs `ifStale` instead if the reused connection was already closed. */
  function exchange(
    { url, host, port, isSecure }: CheckedUrl,
    { method = 'POST', headers, body = '' }: EgressRequest,
    isOver: Promise<Ending>,
    agent: http.Agent | false,
    ifStale?: () => Promise<EgressResult>,
  ): Promise<EgressResult> {
    const startMs = performance.now()
    const { promise, resolve: settle } = Promise.withResolvers<EgressResult>()
    const sent = (isSecure ? https : http).request({
      agent,
      hostname: host,
      port,
      path: url.pathname + url.search,
      method,
      lookup,
      headers: {
        'User-Agent': `Tidings/${VERSION}`,
        'Accept-Encoding': 'identity',
        ...headers,
        'Content-Length': String(Buffer.byteLength(body)),
      },
      ...(isSecure && { rejectUnauthorized: true, ...(ca !== undefined && { ca }) }),
      ...(isSecure && isIP(host) === 0 && { servername: host.replace(/\.$/, '') }),
    })
    // The headers decide the outcome. Errors after them have no effect.
    let toResponse: (() => EgressResponse) | undefined
    let hints = 0

    // On Deno a destroyed request may emit no event, so the promise is settled first.
    const stop = (result: EgressResult) => {
      settle(result)
      sent.destroy()
      sent.socket?.destroy()
    }
    void isOver.then(ending => stop(toResponse?.() ?? fail(ending, startMs)))

    sent.on('information', () => {
      if (++hints > MAX_INFORMATIONAL) stop(fail('protocol', startMs))
    })
    sent.on('upgrade', () => stop(fail('protocol', startMs)))
    sent.on('error', error => {
      const kind = toEgressError(error)
      const isStale = kind === 'reset' && sent.reusedSocket && !toResponse
      if (isStale && ifStale) settle(ifStale())
      else settle(toResponse?.() ?? fail(kind, startMs))
    })
    sent.on('response', response => {
      const latencyMs = Math.round(performance.now() - startMs)
      const chunks: Buffer[] = []
      let bytes = 0
      const readResponse = () => ({
        status: response.statusCode ?? 0,
        headers: toPlain(response.headers),
        body: Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES),
        latencyMs,
      })
      toResponse = readResponse
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes >= MAX_BODY_BYTES) stop(readResponse())
      })
      for (const event of ['end', 'error', 'close'])
        response.on(event, () => settle(readResponse()))
    })
    sent.end(body)
    return promise
  }

  return {
    send,
    async findProblem(text) {
      const target = parseEgressUrl(text, isAllowed)
      if ('problem' in target) return target.problem
      if (isIP(target.host) !== 0) return undefined
      try {
        await resolveAllowed(target.host, resolve, isAllowed)
      } catch (error) {
        // The name may not exist yet. Until it does, each attempt reports the error.
        return (error as { code?: string }).code === LOOKUP_REFUSED ? NOT_PUBLIC_MESSAGE : undefined
      }
      return undefined
    },
    close() {
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

function fail(
  error: EgressError,
  startMs: number,
  message = toEgressMessage(error),
): EgressFailure {
  return { error, message, latencyMs: Math.round(performance.now() - startMs) }
}

/** Returns the first 1 KiB of a response body, as text that Postgres can store. */
export function toBodyText(body: Uint8Array): string {
  // With `stream`, the decoder leaves out an incomplete last character.
  const text = new TextDecoder().decode(body.subarray(0, MAX_TEXT_BYTES), { stream: true })
  return text.replaceAll('\u0000', '\ufffd')
}

function toPlain(headers: http.IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join() : (value ?? ''),
    ]),
  )
}
