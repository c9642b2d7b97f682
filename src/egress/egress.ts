import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import { KEEPS_CONNECTIONS } from '../platform.ts'
import { createSlots } from '../slots.ts'
import { VERSION } from '../version.ts'
import { createAddressGuard } from './addresses.ts'
import { toEgressError, toMessage, type EgressError } from './failure.ts'
import { createLookup, REFUSED, resolveAllowed, systemResolver, type Resolver } from './lookup.ts'
import { NOT_PUBLIC, parseTarget, type Target } from './target.ts'

export interface EgressRequest {
  /** As a person wrote it. */
  url: string
  method?: 'GET' | 'POST'
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** For all of it, from the wait for other requests to the end of the answer. */
  timeoutMs: number
  /** Gives up: the result is `cancelled`. */
  signal?: AbortSignal | undefined
}

export interface EgressAnswer {
  status: number
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>
  /** At most the first 16 KiB, as they came: nothing is decompressed. */
  body: Uint8Array
  /** Until the headers were there. */
  latencyMs: number
}

export interface EgressFailure {
  error: EgressError
  /** A sentence for people, without a word about addresses. */
  message: string
  latencyMs: number
}

export type EgressResult = EgressAnswer | EgressFailure

type Ending = 'timeout' | 'cancelled'

export interface Egress {
  /** Sends one request and never throws. Redirects are answers like others. */
  send(request: EgressRequest): Promise<EgressResult>
  /** Why `url` would be refused, if it would be today: a name is resolved for it. */
  findProblem(url: string): Promise<string | undefined>
  /** Closes the connections that are kept. */
  close(): void
}

export interface EgressOptions {
  /** Networks that are open besides public addresses. */
  allowCidrs?: readonly string[]
  resolve?: Resolver
  /** Authorities to trust instead of the world's. */
  ca?: string | undefined
  /** How many requests may be under way to one host. */
  perHost?: number
}

const MAX_BODY_BYTES = 16 * 1024
/** Of «103 Early Hints» and the like, before the answer. */
const MAX_HINTS = 10
const PER_HOST = 32
/** The part of its time that a request may wait for others to the host: the rest is for an answer. */
const MAX_WAIT = 1 / 3
const IDLE_MS = 10_000

/**
 * The one client for addresses that people give us. It is node:http's, because fetch follows redirects, reads proxy
 * variables and opens files; it dials nothing but addresses that were judged.
 */
export function createEgress({
  allowCidrs = [],
  resolve = systemResolver,
  ca,
  perHost = PER_HOST,
}: EgressOptions = {}): Egress {
  const isAllowed = createAddressGuard(allowCidrs)
  const lookup = createLookup(resolve, isAllowed)
  const slots = createSlots(perHost)
  const settings = { keepAlive: KEEPS_CONNECTIONS, maxFreeSockets: perHost, timeout: IDLE_MS }
  const agents = { http: new http.Agent(settings), https: new https.Agent(settings) }

  async function send(request: EgressRequest): Promise<EgressResult> {
    const startMs = performance.now()
    const target = parseTarget(request.url, isAllowed)
    if ('problem' in target) return fail('refused', startMs, target.problem)
    const { signal } = request
    if (signal?.aborted) return fail('cancelled', startMs)
    const end = Promise.withResolvers<Ending>()
    const timer = setTimeout(() => end.resolve('timeout'), request.timeoutMs)
    const cancel = () => end.resolve('cancelled')
    signal?.addEventListener('abort', cancel)
    const patience = Promise.withResolvers<Ending>()
    const impatient = setTimeout(() => patience.resolve('timeout'), request.timeoutMs * MAX_WAIT)
    const waited = Promise.race([end.promise, patience.promise])
    const slot = await slots.take(target.url.host, waited)
    clearTimeout(impatient)
    try {
      if (!slot) return fail((await waited) === 'timeout' ? 'busy' : 'cancelled', startMs)
      const agent = target.isSecure ? agents.https : agents.http
      // A kept connection may have been closed just as we took it. Nobody has answered, so it is asked once more.
      return await exchange(target, request, end.promise, agent, () =>
        exchange(target, request, end.promise, false),
      )
    } finally {
      slot?.release()
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
    }
  }

  /** One request and its answer; `ifStale` instead, where it went over a connection that was closed already. */
  function exchange(
    { url, host, port, isSecure }: Target,
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
    // Once there are headers there is a verdict: what comes after them changes nothing.
    let toAnswer: (() => EgressAnswer) | undefined
    let hints = 0

    // On Deno a request that is destroyed may never tell: so the promise does not wait for it.
    const stop = (result: EgressResult) => {
      settle(result)
      sent.destroy()
      sent.socket?.destroy()
    }
    void isOver.then(ending => stop(toAnswer?.() ?? fail(ending, startMs)))

    sent.on('information', () => {
      if (++hints > MAX_HINTS) stop(fail('protocol', startMs))
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
      const target = parseTarget(text, isAllowed)
      if ('problem' in target) return target.problem
      if (isIP(target.host) !== 0) return undefined
      try {
        await resolveAllowed(target.host, resolve, isAllowed)
      } catch (error) {
        // A name that is not there yet may come: sending says so.
        return (error as { code?: string }).code === REFUSED ? NOT_PUBLIC : undefined
      }
      return undefined
    },
    close() {
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

function fail(error: EgressError, startMs: number, message = toMessage(error)): EgressFailure {
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
