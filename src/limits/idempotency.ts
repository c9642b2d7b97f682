import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../errors.ts'
import { isRawNumber, toNumberText } from '../http/exact-json.ts'
import { invalidField } from '../http/validation.ts'
import { withTimeout } from '../functions.ts'

/** A claim on doing something once: the caller's key, and what it was used for. */
export interface IdempotencyClaim {
  key: string
  /** SHA-256 over method, route and canonical body. */
  fingerprint: Buffer
}

/** What the database made of a keyed request: `reused` is the same key with another request. */
export type IdempotencyOutcome = 'done' | 'replayed' | 'reused'

const HEADER = 'Idempotency-Key'
const MAX_WAIT_MS = 300
const PAUSES_MS = [50, 100, 150]

/** The key in a request's headers, unquoted; undefined when there is none. Throws `InvalidRequest`. */
export function readIdempotencyKey(headers: Headers): string | undefined {
  const raw = headers.get(HEADER)
  if (raw === null) return undefined
  const key = /^"(.*)"$/.exec(raw)?.[1] ?? raw
  if (key.length < 1) throw invalidField(HEADER, 'too_short', 'Must not be empty')
  if (key.length > 255) throw invalidField(HEADER, 'too_long', 'Must have at most 255 characters')
  if (!/^[\x20-\x7e]+$/.test(key))
    throw invalidField(HEADER, 'invalid_format', 'Must be printable ASCII')
  return key
}

/** The claim of a request; `body` is parsed JSON, whose order of keys does not matter, or text, where all does. */
export function toIdempotencyClaim(
  key: string,
  method: string,
  path: string,
  body: unknown,
): IdempotencyClaim {
  const text = typeof body === 'string' ? body : toCanonical(body)
  return { key, fingerprint: createHash('sha256').update(`${method} ${path}\n${text}`).digest() }
}

/** JSON text with the keys of every object sorted, and one spelling for equal numbers. */
function toCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toCanonical).join()}]`
  if (typeof value === 'number') return toCanonicalNumber(String(value))
  if (isRawNumber(value)) return toCanonicalNumber(toNumberText(value))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${toCanonical(item)}`).join()}}`
}

/** The significant digits of a JSON number, and the power of ten of the last one: `-1.50` is `-15e-1`. */
function toCanonicalNumber(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const sign = mantissa.startsWith('-') ? '-' : ''
  const [whole = '', fraction = ''] = mantissa.slice(sign.length).split('.')
  const digits = whole + fraction
  let first = 0
  let end = digits.length
  while (digits[first] === '0') first++
  while (end > first && digits[end - 1] === '0') end--
  if (first === end) return `${sign}0`
  return `${sign}${digits.slice(first, end)}e${Number(exponent) - fraction.length + digits.length - end}`
}

/** Another process is at work on the same key. */
export class StillRunning extends Error {}

export interface InFlightRequests {
  /**
   * Runs `work`, or waits for the same key that is running, at most 300 ms and holding no connection. `work` throws
   * `StillRunning` when it runs in another process.
   */
  once<Result extends { outcome: IdempotencyOutcome }>(
    project: string,
    claim: IdempotencyClaim,
    work: () => Promise<Result>,
  ): Promise<Result>
}

interface Running {
  fingerprint: Buffer
  result: Promise<{ outcome: IdempotencyOutcome }>
}

export function createInFlightRequests(): InFlightRequests {
  const running = new Map<string, Running>()
  return {
    async once<Result extends { outcome: IdempotencyOutcome }>(
      project: string,
      claim: IdempotencyClaim,
      work: () => Promise<Result>,
    ): Promise<Result> {
      const name = `${project} ${claim.key}`
      const deadline = performance.now() + MAX_WAIT_MS
      for (let other = running.get(name); other; other = running.get(name)) {
        const settled = other.result.catch(() => undefined)
        const result = await withTimeout(deadline - performance.now(), settled, () => {
          throw inUse()
        })
        if (result === undefined) continue // It failed: the key is free for us.
        if (result.outcome === 'reused') break // It claimed nothing: ask the database, as it did.
        const outcome = other.fingerprint.equals(claim.fingerprint) ? 'replayed' : 'reused'
        // The same fingerprint means the same endpoint, hence the same kind of result.
        return { ...(result as Result), outcome }
      }
      const result = persist(work)
      const mine = { fingerprint: claim.fingerprint, result }
      running.set(name, mine)
      try {
        return await result
      } finally {
        if (running.get(name) === mine) running.delete(name)
      }
    },
  }
}

/** Tries again while another process has the key. */
async function persist<Result>(work: () => Promise<Result>): Promise<Result> {
  for (const pauseMs of PAUSES_MS) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StillRunning)) throw error
    }
    await sleep(pauseMs)
  }
  throw inUse()
}

function inUse(): Fault {
  return new Fault(
    'idempotency_key_in_use',
    'A request with this Idempotency-Key is still running',
    { 'Retry-After': '1' },
  )
}
