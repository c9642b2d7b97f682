/** The `code` that answers carry beside `error`. */
export const FAILURE_CODES = [
  'insufficient_scope',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'idempotency_key_in_use',
  'idempotency_key_reused',
  'payload_too_large',
  'unsupported_media_type',
  'unavailable',
] as const

/** The codes that only the dashboard's /api answers with, besides those above. */
export const API_FAILURE_CODES = [
  'signed_out',
  'wrong_credentials',
  'forbidden',
  'cross_site',
  'verification_needed',
  'conflict',
  'wrong_host',
] as const

/** The expected failures; 401 and 429 have answers of their own form. Their HTTP form is in http/failures.ts. */
export type FaultCode = V1FaultCode | (typeof API_FAILURE_CODES)[number]
type V1FaultCode = (typeof FAILURE_CODES)[number] | 'unauthorized' | 'rate_limited'

/** An expected failure: its message is written for, and shown to, the caller. */
export class Fault extends Error {
  readonly code: FaultCode
  /** Extra response headers, such as `Allow` or `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>

  constructor(code: FaultCode, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.name = 'Fault'
    this.code = code
    this.headers = headers
  }
}

/** One answer for every reason why a key does not open the door, a project that is gone included. */
export function invalidKey(): Fault {
  return new Fault('unauthorized', 'Invalid or missing API key', { 'WWW-Authenticate': 'Bearer' })
}

/** Says what went wrong without the query, its parameters or a stack: fit for a log line. */
export function toReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof Fault) return error.message
  const { code, routine, constraint_name: constraint } = error as Error & Record<string, unknown>
  // What Postgres says may quote a value that a caller sent.
  if (routine !== undefined)
    return `Postgres ${code} in ${routine}${constraint ? ` (${constraint})` : ''}`
  return typeof code === 'string' && /^[A-Z_]+$/.test(code) && !error.message.includes(code)
    ? `${code} ${error.message}`
    : error.message
}
