import { toOutcome } from './answer.ts'
import type { Answer } from './answer.ts'
import { ConnectionError, TidingsError } from './errors.ts'

/** Where the server is, and how patient to be with it. */
export type ClientOptions = {
  /** The server's address, `http` or `https`, with a base path where it has one. */
  baseUrl: string
  /** `tdg_…`; a secret of your server, not for a page that strangers open. */
  apiKey: string
  /** How long one attempt may take, its body included; default 10,000. */
  timeoutMs?: number
  /** How many times a failed attempt is repeated; default 3. */
  retries?: number
  /** The longest first wait between attempts; doubles with each, up to 8,000. Default 250. */
  retryBaseMs?: number
  /** Used instead of the global `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

/** What may be said about any call. */
export type CallOptions = {
  /** Aborts the call, its waits and retries included; it rejects with the signal's reason. */
  signal?: AbortSignal
  /** Hears what the server said about a call that succeeded. */
  onAnswer?: (answer: Answer) => void
}

/** What may be said about a call that writes. */
export type WriteOptions = CallOptions & {
  /** 1..255 printable ASCII; the same key with the same input has one effect in 24 hours. Default: a new uuid. */
  idempotencyKey?: string
}

type Method = 'GET' | 'POST' | 'DELETE'
type RequestOptions = WriteOptions & { body?: unknown }

/** Sends one request and resolves to the `data` of its answer. */
export type Call = <T>(method: Method, path: string, options?: RequestOptions) => Promise<T>

const LONGEST_BACKOFF_MS = 8_000
const LONGEST_RETRY_AFTER_MS = 60_000
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Makes the function that every method calls; throws a TypeError when an option cannot be used. */
export function createCall(options: ClientOptions): Call {
  const { apiKey, timeoutMs = 10_000, retries = 3, retryBaseMs = 250 } = options
  // The global is looked up at each call, so that a test may replace it after this.
  const send = options.fetch ?? ((url, init) => fetch(url, init))
  const base = toBase(options.baseUrl)
  // Checked here because a platform that refuses a header may quote it, and this one is a secret.
  if (!/^[!-~]+$/.test(apiKey ?? '')) {
    throw new TypeError('apiKey must be given, without spaces or line breaks')
  }

  return async function call<T>(
    method: Method,
    path: string,
    { body, signal, idempotencyKey, onAnswer }: RequestOptions = {},
  ): Promise<T> {
    const headers = new Headers({ Accept: 'application/json', Authorization: `Bearer ${apiKey}` })
    // A followed redirect turns POST into GET, and an event into a list.
    const init: RequestInit = { method, headers, redirect: 'manual' }
    if (method === 'POST') {
      headers.set('Content-Type', 'application/json')
      headers.set('Idempotency-Key', idempotencyKey ?? newUuid())
      init.body = JSON.stringify(body)
    }
    for (let failed = 0; ; failed++) {
      const outcome = await attempt(base + path, init, signal)
      if (!(outcome instanceof TidingsError)) {
        onAnswer?.(outcome.answer)
        // The server's schemas guarantee the shape.
        return outcome.data as T
      }
      if (failed >= retries || !mayRetry(outcome)) throw outcome
      const backoffMs = Math.min(retryBaseMs * 2 ** failed, LONGEST_BACKOFF_MS)
      await pause((outcome.retryAfterMs ?? 0) + Math.random() * backoffMs, signal)
    }
  }

  async function attempt(url: string, init: RequestInit, signal: AbortSignal | undefined) {
    const deadline = new AbortController()
    const clear = after(timeoutMs, signal, () => deadline.abort())
    let response: Response, text: string
    try {
      response = await send(url, { ...init, signal: deadline.signal })
      text = await response.text()
    } catch (cause) {
      signal?.throwIfAborted()
      return deadline.signal.aborted
        ? new ConnectionError(`No answer from ${base} within ${timeoutMs} ms`, true, cause)
        : new ConnectionError(`No answer from ${base}`, false, cause)
    } finally {
      clear()
    }
    return toOutcome(response, text)
  }
}

function toBase(baseUrl: string): string {
  let href = ''
  try {
    href = new URL(baseUrl).href
  } catch {}
  // `fetch` refuses a name or password in an address.
  if (!/^https?:\/\/[^/?#@]+\/[^?#]*$/.test(href)) {
    throw new TypeError('baseUrl must be an http or https address without user, query or fragment')
  }
  return href.replace(/\/+$/, '')
}

function mayRetry({ status = 500, code, retryAfterMs = 0 }: TidingsError): boolean {
  const passing = status >= 500 || status === 429 || code === 'idempotency_key_in_use'
  return passing && retryAfterMs <= LONGEST_RETRY_AFTER_MS
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => after(ms, signal, resolve))
}

// Runs `then` once, when `ms` have passed or `signal` aborts; what it returns calls that off.
function after(ms: number, signal: AbortSignal | undefined, then: () => void): () => void {
  const timer = setTimeout(end, Math.min(ms, LONGEST_TIMER_MS))
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

// Node 18 and pages on plain http have no randomUUID. The key must be unique, not secret.
function newUuid(): string {
  return (
    globalThis.crypto?.randomUUID?.() ??
    '********-****-4***-8***-************'.replace(/\*/g, () =>
      Math.floor(Math.random() * 16).toString(16),
    )
  )
}
