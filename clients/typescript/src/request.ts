import { parseResponse } from './response.ts'
import type { ResponseInfo } from './response.ts'
import { ConnectionError, TidingsError } from './errors.ts'
import type { EventInput } from './schema.ts'
import { isForgotten, readMoment } from './time.ts'

/** The server, the API key, and the timeouts and retries of every call. */
export type ClientOptions = {
  /** The server's `http` or `https` URL, with its base path if it has one. */
  baseUrl: string
  /** `tdg_…`. A secret: keep it on your server, never in a public web page. */
  apiKey: string
  /** The timeout of one attempt, response body included. Default 10,000. */
  timeoutMs?: number
  /** How many times a failed attempt of a call is retried. Default 3. `queue` has no such limit. */
  retries?: number
  /**
   * The longest wait before the first retry. It doubles with each retry, up to 8,000. Default 250.
   */
  retryBaseMs?: number
  /** How many events `queue` holds, those that are being sent included. Default 1,000. */
  queueLimit?: number
  /** How many bytes of JSON these events may have together. Default 16 MiB. */
  queueLimitBytes?: number
  /**
   * Called with each queued event that is not sent: the queue was full, the server rejected the
   * event, or it failed for 23 hours. Default: a warning on the console, at most one a second. Its
   * errors become warnings.
   */
  onDrop?: (event: EventInput, error: Error) => void
  /**
   * Makes a value of a number in `metadata` or `properties`, from its JSON text. Called for numbers
   * that JavaScript would write differently, such as `1.10` or 20 digits. Default: a number if that
   * has the same value, else a bigint for an integer, and text for any other.
   */
  parseNumber?: (text: string) => unknown
  /** Replaces the global `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

/** Options of every call. */
export type CallOptions = {
  /** Aborts the call with its waits and retries. The call rejects with the signal's reason. */
  signal?: AbortSignal
  /** Called with the metadata of a successful response. Its errors become warnings. */
  onResponse?: (info: ResponseInfo) => void
}

/** Options of a call that writes. */
export type WriteOptions = CallOptions & {
  /**
   * 1..255 printable ASCII characters. For 24 hours, calls with the same key and input have one
   * effect. Default: a new UUID.
   */
  idempotencyKey?: string
}

type Method = 'GET' | 'POST' | 'DELETE'
type RequestOptions = WriteOptions & {
  /** JSON text. */
  body?: string
  /** Default: that of the client. */
  retries?: number
  /** How long the server may wait. The timeout of an attempt is longer by this. */
  waitMs?: number
}

/** Sends one request, with retries. Resolves to the `data` of the response. */
export type Call = <T>(method: Method, path: string, options?: RequestOptions) => Promise<T>

/** The server's clock, by the `Date` header of its responses. */
export type ServerClock = {
  /** Unix milliseconds; undefined before a response has told it. */
  now(): number | undefined
  /** Asks the server. Rejects with a ConnectionError when it does not respond. */
  ask(): Promise<void>
}

const MAX_BACKOFF_MS = 8_000
const MAX_RETRY_AFTER_MS = 60_000
export const MAX_TIMER_MS = 2 ** 31 - 1
/** Smaller differences of the clocks may be the time that a response took. */
const MAX_SKEW_MS = 60_000

/** Creates the function that every method calls. Throws a TypeError for an invalid option. */
export function createCall(options: ClientOptions): { call: Call; clock: ServerClock } {
  const { apiKey, timeoutMs = 10_000, retryBaseMs = 250, parseNumber } = options
  // The global is read at each call, so that tests can replace it later.
  const send = options.fetch ?? ((url, init) => fetch(url, init))
  const base = toBase(options.baseUrl)
  // A platform may quote an invalid header in its error, and this one is a secret.
  if (!/^[!-~]+$/.test(apiKey ?? '')) {
    throw new TypeError('apiKey is required, without spaces or line breaks')
  }
  /** How far the server's clock is ahead; undefined before the first response. */
  let skewMs: number | undefined

  async function call<T>(
    method: Method,
    path: string,
    {
      body,
      signal,
      idempotencyKey,
      onResponse,
      retries = options.retries ?? 3,
      waitMs = 0,
    }: RequestOptions = {},
  ): Promise<T> {
    const since = readMoment()
    const headers = new Headers({ Accept: 'application/json', Authorization: `Bearer ${apiKey}` })
    // A followed redirect would turn POST into GET, which lists events instead of creating one.
    const init: RequestInit = { method, headers, redirect: 'manual' }
    if (method === 'POST') {
      headers.set('Content-Type', 'application/json')
      headers.set('Idempotency-Key', idempotencyKey ?? newUuid())
      init.body = body ?? null
    }
    for (let failed = 0; ; failed++) {
      const outcome = await attempt(base + path, init, signal, timeoutMs + waitMs)
      if (!(outcome instanceof TidingsError)) {
        callSafely('onResponse', () => onResponse?.(outcome.info))
        // The server's schemas guarantee the shape.
        return outcome.data as T
      }
      if (failed >= retries || !mayRetry(outcome)) throw outcome
      const backoffMs = Math.min(retryBaseMs * 2 ** failed, MAX_BACKOFF_MS)
      await pause((outcome.retryAfterMs ?? 0) + Math.random() * backoffMs, signal)
      // The machine may have slept.
      if (method === 'POST' && isForgotten(since)) throw outcome
    }
  }

  async function attempt(
    url: string,
    init: RequestInit,
    signal: AbortSignal | undefined,
    limitMs: number,
  ) {
    const deadline = new AbortController()
    const clear = after(limitMs, signal, () => deadline.abort())
    const startedMs = Date.now()
    let response: Response, text: string
    try {
      response = await send(url, { ...init, signal: deadline.signal })
      learn(response.headers.get('date'), startedMs)
      text = await response.text()
    } catch (cause) {
      signal?.throwIfAborted()
      return deadline.signal.aborted
        ? new ConnectionError(`No response from ${base} within ${limitMs} ms`, true, cause)
        : new ConnectionError(`No response from ${base}`, false, cause)
    } finally {
      clear()
    }
    return parseResponse(response, text, parseNumber)
  }

  function learn(date: string | null, startedMs: number): void {
    const nowMs = Date.now()
    // Browsers hide the header of another origin.
    if (date === null) skewMs ??= 0
    // After a longer attempt, the machine may have slept since the server wrote the header.
    else if (nowMs - startedMs < MAX_SKEW_MS) {
      const aheadMs = Date.parse(date) - nowMs
      skewMs = Math.abs(aheadMs) > MAX_SKEW_MS ? aheadMs : 0
    }
  }

  const clock: ServerClock = {
    now: () => (skewMs === undefined ? undefined : Date.now() + skewMs),
    async ask() {
      // It needs no key and costs no request of the rate limit.
      const outcome = await attempt(`${base}/healthz`, { redirect: 'manual' }, undefined, timeoutMs)
      if (outcome instanceof ConnectionError) throw outcome
    },
  }
  return { call, clock }
}

/** Calls a function of the program. Its errors become warnings. */
export function callSafely(name: string, work: () => unknown): void {
  const warn = (error: unknown) => console.warn(`Tidings: ${name} failed.`, error)
  try {
    // A rejected promise that nobody handles ends Node.
    Promise.resolve(work()).catch(warn)
  } catch (error) {
    warn(error)
  }
}

function toBase(baseUrl: string): string {
  let href = ''
  try {
    href = new URL(baseUrl).href
  } catch {}
  // `fetch` refuses a URL with a user name or password.
  if (!/^https?:\/\/[^/?#@]+\/[^?#]*$/.test(href)) {
    throw new TypeError('baseUrl must be an http or https URL without user, query or fragment')
  }
  return href.replace(/\/+$/, '')
}

function mayRetry(error: TidingsError): boolean {
  return isTransient(error) && (error.retryAfterMs ?? 0) <= MAX_RETRY_AFTER_MS
}

/** Returns true for a failure after which the same request may succeed. */
export function isTransient(error: unknown): error is TidingsError {
  if (!(error instanceof TidingsError)) return false
  const { status = 0, code } = error
  return (
    error instanceof ConnectionError ||
    status >= 500 ||
    status === 408 ||
    status === 429 ||
    code === 'idempotency_key_in_use'
  )
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => after(ms, signal, resolve))
}

/** Runs `then` once, after `ms` or when `signal` aborts. Returns a function that cancels it. */
export function after(ms: number, signal: AbortSignal | undefined, then: () => void): () => void {
  const timer = setTimeout(end, Math.min(ms, MAX_TIMER_MS))
  signal?.addEventListener('abort', end)
  if (signal?.aborted) end()
  return clear

  function end() {
    clear()
    then()
  }
  function clear() {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

/** Returns a UUID, version 4. */
export function newUuid(): string {
  // Pages on plain HTTP have no randomUUID. The key must be unique, not secret.
  return (
    globalThis.crypto?.randomUUID?.() ??
    '********-****-4***-8***-************'.replace(/\*/g, () =>
      Math.floor(Math.random() * 16).toString(16),
    )
  )
}
