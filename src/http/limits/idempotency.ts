import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../../base/errors.ts'
import type { Tx } from '../../database/sql.ts'
import { isRawNumber, toCanonicalNumber, toNumberText } from '../exact-json.ts'
import { invalidField } from '../validation.ts'
import { withTimeout } from '../../base/functions.ts'

/** A request to execute once: its Idempotency-Key and a fingerprint of the request. */
export interface IdempotencyClaim {
  key: string
  /** SHA-256 over method, path with query, and canonical body. */
  fingerprint: Buffer
}

/**
 * The outcome of a request with an Idempotency-Key. `reused` means that another request has used
 * the key.
 */
export type IdempotencyOutcome = 'done' | 'replayed' | 'reused'

const HEADER = 'Idempotency-Key'
const WAIT_MS = 300
const PAUSES_MS = [50, 100, 150]

/**
 * Returns the Idempotency-Key of a request without quotes, or undefined. Throws `InvalidRequest`,
 * also for two headers: they arrive as one, joined by a comma and a space.
 */
export function readIdempotencyKey(headers: Headers): string | undefined {
  const raw = headers.get(HEADER)
  if (raw === null) return undefined
  const key = /^"(.*)"$/.exec(raw)?.[1] ?? raw
  if (key.includes(', '))
    throw invalidField(
      HEADER,
      'invalid_format',
      'Must be sent once, and have no comma before a space',
    )
  if (key.length < 1) throw invalidField(HEADER, 'too_short', 'Must not be empty')
  if (key.length > 255) throw invalidField(HEADER, 'too_long', 'Must have at most 255 characters')
  if (!/^[\x20-\x7e]+$/.test(key))
    throw invalidField(HEADER, 'invalid_format', 'Must be printable ASCII')
  return key
}

/**
 * Returns the claim of a request. `body` is text, or a parsed JSON object that its schema has
 * accepted. `fields` are those of the schema, sorted; other fields of the body are ignored. The
 * order of JSON keys does not matter. A query counts as it was sent, unless it is empty.
 */
export function toIdempotencyClaim(
  key: string,
  { method, url }: Request,
  body: unknown,
  fields: readonly string[],
): IdempotencyClaim {
  const target = url.slice(url.indexOf('/', 8)).replace(/\?&*$/, '')
  const hash = (text: string) =>
    createHash('sha256').update(`${method} ${target}\n${text}`).digest()
  if (typeof body === 'string') return { key, fingerprint: hash(body) }
  const values = body as Readonly<Record<string, unknown>>
  const known = fields.filter(name => Object.hasOwn(values, name))
  return { key, fingerprint: hash(`{${known.map(name => toMember(name, values[name])).join()}}`) }
}

/** Returns JSON text with sorted keys and one spelling for equal numbers. */
function toCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toCanonical).join()}]`
  if (typeof value === 'number') return toCanonicalNumber(String(value))
  if (isRawNumber(value)) return toCanonicalNumber(toNumberText(value))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([name, item]) => toMember(name, item)).join()}}`
}

function toMember(name: string, value: unknown): string {
  return `${JSON.stringify(name)}:${toCanonical(value)}`
}

/** Thrown if another process is executing a request with the same key. */
export class StillRunning extends Error {}

/** The running requests with an Idempotency-Key in this process. */
export interface InFlightRequests {
  /** Returns whether a request with the same key is running in this process. */
  isRunning(project: string, claim: IdempotencyClaim): boolean
  /**
   * Runs `work`. If a request with the same key is running in this process, waits for it for up to
   * 300 ms, without a connection, and returns its result. `work` throws `StillRunning` if one is
   * running in another process. It is then retried for up to 300 ms. Throws
   * `idempotency_key_in_use` after that.
   */
  once<Result extends { outcome: IdempotencyOutcome }>(
    project: string,
    claim: IdempotencyClaim,
    work: () => Promise<Result>,
  ): Promise<Result>
}

/**
 * Runs `work`, which returns the body of the response, and stores it for the claim in the same
 * transaction; or returns the stored one. Throws `StillRunning`.
 */
export async function storeOnce(
  tx: Tx,
  { projectId, claim }: { projectId: string; claim: IdempotencyClaim | undefined },
  work: () => Promise<string>,
): Promise<{ outcome: IdempotencyOutcome; body: string }> {
  if (!claim) return { outcome: 'done', body: await work() }
  const { key } = claim
  const fingerprint = tx`decode(${claim.fingerprint.toString('hex')}, 'hex')`
  const [lock] = await tx<[{ isTaken: boolean }]>`
    select lock_idempotency_keys(array[${projectId}]::uuid[], array[${key}]) <> '{}' as "isTaken"
  `
  if (lock.isTaken) throw new StillRunning()
  const [seen] = await tx<{ isSame: boolean; body: string }[]>`
    select k.fingerprint = ${fingerprint} as "isSame", k.body
    from idempotency_keys k
    where k.project_id = ${projectId} and k.key = ${key} and k.expires_at > now()
  `
  if (seen) return { outcome: seen.isSame ? 'replayed' : 'reused', body: seen.body }
  const body = await work()
  await tx`
    insert into idempotency_keys as k (project_id, key, fingerprint, status, body, expires_at)
    values (${projectId}, ${key}, ${fingerprint}, 201, ${body}, now() + interval '24 hours')
    on conflict (project_id, key) do update set
      fingerprint = excluded.fingerprint, status = excluded.status, user_id = null, other_names = null,
      seq = null, body = excluded.body, expires_at = excluded.expires_at
  `
  return { outcome: 'done', body }
}

interface Running {
  fingerprint: Buffer
  result: Promise<{ outcome: IdempotencyOutcome }>
}

export function createInFlightRequests(waitMs = WAIT_MS): InFlightRequests {
  const running = new Map<string, Running>()
  return {
    isRunning: (project, { key }) => running.has(`${project} ${key}`),
    async once<Result extends { outcome: IdempotencyOutcome }>(
      project: string,
      claim: IdempotencyClaim,
      work: () => Promise<Result>,
    ): Promise<Result> {
      const name = `${project} ${claim.key}`
      const deadline = performance.now() + waitMs
      for (let other = running.get(name); other; other = running.get(name)) {
        const settled = other.result.catch(() => undefined)
        const result = await withTimeout(deadline - performance.now(), settled, () => {
          throw keyInUse()
        })
        if (result === undefined) continue // The other request failed, so the key is free.
        if (result.outcome === 'reused') break // The other request did not get the key either.
        const outcome = other.fingerprint.equals(claim.fingerprint) ? 'replayed' : 'reused'
        // The same fingerprint means the same route, and so the same type of result.
        return { ...(result as Result), outcome }
      }
      const result = retry(work)
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

/** Retries `work` while another process has the key. */
async function retry<Result>(work: () => Promise<Result>): Promise<Result> {
  for (const pauseMs of PAUSES_MS) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StillRunning)) throw error
    }
    await sleep(pauseMs)
  }
  throw keyInUse()
}

function keyInUse(): Fault {
  return new Fault(
    'idempotency_key_in_use',
    'A request with this Idempotency-Key is still running. Try again shortly.',
    { 'Retry-After': '1' },
  )
}
