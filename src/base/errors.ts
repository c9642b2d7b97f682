/** Values of `code` in failure responses of /v1 and /api. */
export const FAILURE_CODES = [
  'insufficient_scope',
  'quota_exceeded',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'idempotency_key_in_use',
  'idempotency_key_reused',
  'payload_too_large',
  'unsupported_media_type',
  'unavailable',
] as const

/** Values of `code` that only /api has. */
export const API_FAILURE_CODES = [
  'signed_out',
  'other_account',
  'wrong_credentials',
  'forbidden',
  'cross_site',
  'verification_needed',
  'second_factor_needed',
  'conflict',
  'wrong_host',
  'gone',
] as const

/** The codes of expected failures. http/failures.ts converts them to responses. */
export type FaultCode = V1FaultCode | (typeof API_FAILURE_CODES)[number]
/** The codes of /v1. Its 401 and 429 responses have no `code`. */
type V1FaultCode = (typeof FAILURE_CODES)[number] | 'unauthorized' | 'rate_limited'

/** An expected failure. The caller sees its message. */
export class Fault extends Error {
  readonly code: FaultCode
  /** Extra response headers, such as `Allow` or `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>
  /** For programs, what the message says. */
  readonly details: object | undefined

  constructor(
    code: FaultCode,
    message: string,
    headers: Record<string, string> = {},
    details?: object,
  ) {
    super(message)
    this.name = 'Fault'
    this.code = code
    this.headers = headers
    this.details = details
  }
}

/** Returns the error for a key that is not accepted. It is the same for every reason. */
export function invalidKey(): Fault {
  return new Fault('unauthorized', 'Invalid or missing API key', { 'WWW-Authenticate': 'Bearer' })
}

/** Names damage of the files of Postgres, and its remedy. */
export const DAMAGED = 'The files of Postgres are damaged. Restore a backup into a new folder.'

/** Reports that Postgres read less than its files had, without an error. */
export class DamagedFiles extends Error {
  override readonly name = 'DamagedFiles'

  constructor(detail: string, options?: ErrorOptions) {
    super(`${DAMAGED} ${detail}`.trim(), options)
  }
}

/** Damaged data, and a damaged index. */
const DAMAGE_STATES = ['XX001', 'XX002']
/** States of damaged files that have other causes, too. */
const SUSPECT_STATES = ['XX000', '58P01', '58030', '22023']
const DAMAGE =
  /could not (read|open|access) .*("(base|global|pg_)|transaction)|invalid page|corrupt|invalid memory alloc|catalog is missing|valid data directory/

/** Returns true if this error tells of damaged files of Postgres. */
export function isDamage(error: unknown): boolean {
  if (error instanceof DamagedFiles) return true
  if (!(error instanceof Error)) return false
  const { code, routine } = error as Error & Record<string, unknown>
  if (typeof code !== 'string' || routine === undefined) return false
  return (
    DAMAGE_STATES.includes(code) || (SUSPECT_STATES.includes(code) && DAMAGE.test(error.message))
  )
}

/** Describes an error in one line for the log, without queries, their parameters or a stack. */
export function toReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof Fault) return error.message
  const { code, routine, constraint_name: constraint } = error as Error & Record<string, unknown>
  // Messages of Postgres can quote values that a caller sent.
  if (routine !== undefined) {
    const place = `Postgres ${code} in ${routine}${constraint ? ` (${constraint})` : ''}`
    return isDamage(error) ? `${DAMAGED} (${place})` : place
  }
  return typeof code === 'string' && /^[A-Z_]+$/.test(code) && !error.message.includes(code)
    ? `${code} ${error.message}`
    : error.message
}
