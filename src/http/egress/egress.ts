import type { ProxySettings } from '../../base/config/egress-proxy.ts'
import { startDeadline } from '../../base/functions.ts'
import { createSemaphore } from '../../base/semaphore.ts'
import type { Connection } from './connection.ts'
import { createConnections } from './connections.ts'
import { toEgressError, toEgressMessage, type EgressError } from './failure.ts'
import { parseEgressUrl, createAddressGuard, createOwnAddresses, type CheckedUrl } from './guard.ts'
import { createLookup, systemResolver, type Resolver } from './lookup.ts'
import { createProxy } from './proxy.ts'
import { toRequestBytes, type RequestParts } from './request.ts'
import { createResponseParser } from './response-parser.ts'

interface EgressRequest extends RequestParts {
  /** As an admin or a browser supplied it. */
  url: string
  /** The owner of the request, such as an organization. It has connections of its own to a host. */
  share?: string | undefined
  /** Limits the request from when it begins to connect, unless `isAwaited`. */
  timeoutMs: number
  /**
   * True if a person waits for the request. The timeout then includes the wait for a connection,
   * and the result is `busy` if it ends there.
   */
  isAwaited?: boolean | undefined
  /**
   * Called when the time of the request begins, and before each first byte. Nothing is sent if it
   * returns false. The result is then `cancelled`.
   */
  begin?: (() => boolean) | undefined
  /** How much of the response's body to keep; 16 KiB by default. */
  maxBodyBytes?: number
  /**
   * How long to wait for the body once the headers have arrived. Without it, the whole timeout. The
   * connection is closed then, and the response has what has arrived of its body.
   */
  maxBodyMs?: number
  /** Cancels the request. The result is then `cancelled`. */
  signal?: AbortSignal | undefined
}

export interface EgressResponse {
  status: number
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>
  /** At most the first `maxBodyBytes`, not decompressed. */
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

/** The request of one exchange, the limit of its response, and its end. */
interface Exchanged {
  request: string | Uint8Array
  maxBodyBytes: number
  maxBodyMs: number | undefined
  begin: () => boolean
  isOver: Promise<Ending>
}

export interface Egress {
  /**
   * Sends one request. It does not follow redirects, and never throws for what a server does. It
   * throws a TypeError for invalid headers, and for those that frame the request.
   */
  send(request: EgressRequest): Promise<EgressResult>
  /**
   * Returns why a URL is refused; undefined if it may be requested. A host name is not resolved: it
   * may not exist yet, and the result must not reveal what it resolves to.
   */
  findProblem(url: string): string | undefined
  /** Closes idle connections. */
  close(): void
}

export interface EgressOptions {
  /** Networks that are allowed in addition to public addresses. */
  allowCidrs?: readonly string[]
  resolve?: Resolver
  /** Lists the addresses of this machine. */
  listOwnAddresses?: (() => string[]) | undefined
  /** Certificate authorities to trust instead of those of the system. */
  ca?: string | undefined
  proxy?: ProxySettings | undefined
  /** The most concurrent requests of one share to one host. */
  perHost?: number
}

const MAX_BODY_BYTES = 16 * 1024
const MAX_TEXT_BYTES = 1024
const PER_HOST = 32
/** The most requests of one share to all hosts, including those that wait for a connection. */
const PER_SHARE = 512
const IDLE_MS = 10_000

/**
 * Creates the only HTTP client for URLs from outside. It connects only to addresses that it has
 * checked. It speaks HTTP/1.1 on sockets of its own, because fetch follows redirects, reads proxy
 * variables and opens files, and node:http takes five times as long for a small request.
 */
export function createEgress({
  allowCidrs = [],
  resolve = systemResolver,
  listOwnAddresses,
  ca,
  proxy,
  perHost = PER_HOST,
}: EgressOptions = {}): Egress {
  const isAllowed = createAddressGuard(allowCidrs, createOwnAddresses(listOwnAddresses))
  const lookup = createLookup(resolve, isAllowed)
  const shares = createSemaphore({ perKey: PER_SHARE, maxWaiting: 0 })
  const slots = createSemaphore({ perKey: perHost })
  const connections = createConnections({
    lookup,
    ca,
    proxy: proxy && createProxy(proxy),
    maxIdle: perHost,
    idleMs: IDLE_MS,
  })
  async function send(request: EgressRequest): Promise<EgressResult> {
    const startMs = performance.now()
    const target = parseEgressUrl(request.url, isAllowed)
    const { signal, share = '', timeoutMs, isAwaited = false, begin = () => true } = request
    if ('problem' in target) {
      begin()
      return fail('refused', startMs, target.problem)
    }
    const bytes = toRequestBytes(target.url, request)
    const leave = await shares.acquire(share)
    if (!leave) return fail('busy', startMs)
    const wait = isAwaited ? { signal, maxWaitMs: timeoutMs } : { signal }
    const release = await slots.acquire(`${share} ${target.url.host}`, wait)
    const waitedMs = isAwaited ? performance.now() - startMs : 0
    const end = Promise.withResolvers<Ending>()
    const cancel = () => end.resolve('cancelled')
    let endDeadline: (() => void) | undefined
    try {
      if (!release && !signal?.aborted) return fail('busy', startMs)
      if (signal?.aborted || !begin()) return fail('cancelled', startMs)
      signal?.addEventListener('abort', cancel)
      endDeadline = startDeadline(Math.max(timeoutMs - waitedMs, 0), () => end.resolve('timeout'))
      const { maxBodyBytes = MAX_BODY_BYTES, maxBodyMs } = request
      const exchanged = { request: bytes, maxBodyBytes, maxBodyMs, begin, isOver: end.promise }
      return await exchange(target, exchanged, connections.take(target))
    } finally {
      endDeadline?.()
      release?.()
      leave()
      signal?.removeEventListener('abort', cancel)
    }
  }

  /**
   * Sends one request on a connection. The server may have closed a kept connection just before it
   * was reused. The request is then sent once more, on a new connection.
   */
  function exchange(
    target: CheckedUrl,
    exchanged: Exchanged,
    connection: Connection,
  ): Promise<EgressResult> {
    const { request, maxBodyBytes, maxBodyMs, begin, isOver } = exchanged
    const startMs = performance.now()
    const { promise, resolve: settle } = Promise.withResolvers<EgressResult>()
    const parser = createResponseParser(maxBodyBytes)
    let latencyMs: number | undefined
    let endBody: (() => void) | undefined
    let hasBytes = false
    let hasEnded = false

    /** Ends the exchange. Once the head has arrived, an error has no effect. */
    function end(error: EgressError): void {
      hasEnded = true
      endBody?.()
      const { head } = parser
      settle(
        head && latencyMs !== undefined
          ? { ...head, body: parser.body, latencyMs }
          : fail(error, startMs),
      )
      if (parser.canReuse) connection.keep()
      else connection.destroy()
    }

    void isOver.then(ending => {
      if (!hasEnded) end(ending)
    })
    connection.send(request, {
      onReady() {
        // Names were resolved and TLS was set up meanwhile, or the process stood still.
        const isSent = begin()
        if (!isSent) end('cancelled')
        return isSent
      },
      onData(bytes) {
        hasBytes = true
        const state = parser.push(bytes)
        if (parser.head) latencyMs ??= toLatencyMs(startMs)
        if (state !== 'head' && state !== 'body') end('protocol')
        else if (state === 'body' && maxBodyMs !== undefined)
          endBody ??= startDeadline(maxBodyMs, () => end('timeout'))
      },
      onClose(error) {
        const kind = toEgressError(error)
        if (connection.isReused && !hasBytes && kind === 'reset') {
          hasEnded = true
          settle(exchange(target, exchanged, connections.open(target)))
        } else end(kind)
      },
    })
    return promise
  }

  return {
    send,
    findProblem(text) {
      const target = parseEgressUrl(text, isAllowed)
      return 'problem' in target ? target.problem : undefined
    },
    close: connections.close,
  }
}

function fail(
  error: EgressError,
  startMs: number,
  message = toEgressMessage(error),
): EgressFailure {
  return { error, message, latencyMs: toLatencyMs(startMs) }
}

function toLatencyMs(startMs: number): number {
  return Math.round(performance.now() - startMs)
}

/** Returns the first 1 KiB of a response body, as text that Postgres can store. */
export function toBodyText(body: Uint8Array): string {
  // With `stream`, the decoder leaves out an incomplete last character.
  const text = new TextDecoder().decode(body.subarray(0, MAX_TEXT_BYTES), { stream: true })
  return text.replaceAll('\u0000', '\ufffd')
}
