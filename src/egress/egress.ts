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
  /** As a person wrote it. */
  url: string
  method?: 'GET' | 'POST'
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** From the wait for other requests to the end of the answer. */
  timeoutMs: number
  /** Cancels the request: the result is `cancelled`. */
  signal?: AbortSignal | undefined
}

export interface EgressResponse {
  status: number
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>
  /** The first 16 KiB at most; nothing is decompressed. */
  body: Uint8Array
  /** Until the headers arrived. */
  latencyMs: number
}

interface EgressFailure {
  error: EgressError
  /** A sentence for people, which names no address. */
  message: string
  latencyMs: number
}

export type EgressResult = EgressResponse | EgressFailure

type Ending = 'timeout' | 'cancelled'

export interface Egress {
  /** Sends one request and never throws. A redirect is an answer, and is not followed. */
  send(request: EgressRequest): Promise<EgressResult>
  /** Why `url` would be refused now, if it would be; resolves its host name. */
  findProblem(url: string): Promise<string | undefined>
  /** Closes idle connections. */
  close(): void
}

export interface EgressOptions {
  /** Networks that are allowed besides public addresses. */
  allowCidrs?: readonly string[]
  resolve?: Resolver
  /** Certificate authorities to trust instead of the system's. */
  ca?: string | undefined
  /** Requests at a time to one host. */
  perHost?: number
}

const MAX_BODY_BYTES = 16 * 1024
/** Informational responses, such as 103 Early Hints, before the answer. */
const MAX_INFORMATIONAL = 10
const PER_HOST = 32
/** The part of its time that a request may wait for others to the host. */
const MAX_WAIT = 1 / 3
const IDLE_MS = 10_000

/**
 * The one client for URLs that people enter. It dials only addresses that were checked. It is built on node:http, because
 * fetch follows redirects, reads proxy variables and opens files.
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
      // A kept connection may have been closed just as it was reused. The request is sent once more on a new one.
      return await exchange(target, request, end.promise, agent, () =>
        exchange(target, request, end.promise, false),
      )
    } finally {
      release?.()
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
    }
  }

  /** Sends one request; runs `ifStale` instead where the reused connection was closed already. */
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
    // The headers decide: what comes after them changes nothing.
    let toAnswer: (() => EgressResponse) | undefined
    let hints = 0

    // On Deno a destroyed request may emit nothing, so the promise is settled first.
    const stop = (result: EgressResult) => {
      settle(result)
      sent.destroy()
      sent.socket?.destroy()
    }
    void isOver.then(ending => stop(toAnswer?.() ?? fail(ending, startMs)))

    sent.on('information', () => {
      if (++hints > MAX_INFORMATIONAL) stop(fail('protocol', startMs))
    })
    sent.on('upgrade', () => stop(fail('protocol', startMs)))
    sent.on('error', error => {
      const kind = toEgressError(error)
      const isStale = kind === 'reset' && sent.reusedSocket && !toAnswer
      if (isStale && ifStale) settle(ifStale())
      else settle(toAnswer?.() ?? fail(kind, startMs))
    })
    sent.on('response', response => {
      const latencyMs = Math.round(performance.now() - startMs)
      const chunks: Buffer[] = []
      let bytes = 0
      const answer = () => ({
        status: response.statusCode ?? 0,
        headers: toPlain(response.headers),
        body: Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES),
        latencyMs,
      })
      toAnswer = answer
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes >= MAX_BODY_BYTES) stop(answer())
      })
      for (const event of ['end', 'error', 'close']) response.on(event, () => settle(answer()))
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
        // The name may exist later. Sending reports it until then.
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

function toPlain(headers: http.IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join() : (value ?? ''),
    ]),
  )
}
