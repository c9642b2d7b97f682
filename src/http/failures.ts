import { Fault, isDamage, toReason, type FaultCode } from '../base/errors.ts'
import { limitLines, logger } from '../base/log.ts'
import { httpErrors } from '../base/metrics.ts'
import { describeUnavailable, isUnavailable, sqlState } from '../database/sql.ts'
import type { Detail } from './envelope.ts'
import { InvalidRequest } from './validation.ts'

const log = logger('http')
/** Logs the first refusal of a second at once, and the number of the others at its end. */
const warn = limitLines<string>((reason, count, requestId) => {
  if (count === 1) log.warning('Request refused: {reason}', { requestId, reason })
  else log.warning('{count} more requests refused: {reason}', { count: count - 1, reason })
})

// A caller can repeat a request that meets a bug.
const reportBug = limitLines<{ requestId: string; stack: string | undefined }>(
  (reason, count, details) => {
    if (count === 1) log.error('Request failed: {reason}', { reason, ...details })
    else log.error('{count} more requests failed: {reason}', { count: count - 1, reason })
  },
)

const STATUS: Record<FaultCode, number> = {
  unauthorized: 401,
  signed_out: 401,
  other_account: 401,
  wrong_credentials: 401,
  insufficient_scope: 403,
  quota_exceeded: 403,
  forbidden: 403,
  cross_site: 403,
  verification_needed: 403,
  second_factor_needed: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  conflict: 409,
  idempotency_key_in_use: 409,
  gone: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  wrong_host: 421,
  idempotency_key_reused: 422,
  rate_limited: 429,
  unavailable: 503,
}

/** The parts of a response that is not built yet. */
export interface ResponseParts {
  status: number
  body: string
  headers?: Readonly<Record<string, string>>
  /** Values of Set-Cookie. */
  cookies?: string[]
}

/**
 * Converts any thrown value to a response. Unexpected errors are bugs: they are logged here, once.
 */
export function toFailure(error: unknown, requestId: string): ResponseParts {
  if (error instanceof InvalidRequest) {
    httpErrors.inc({ reason: 'invalid_request' })
    return answer(400, {
      success: false,
      error: 'Validation error',
      details: error.details,
      requestId,
    })
  }
  const fault =
    isUnavailable(error) && !(error instanceof Fault)
      ? new Fault(
          'unavailable',
          `${describeUnavailable(error)}.${isDamage(error) ? '' : ' Try again shortly.'}`,
        )
      : error
  if (fault instanceof Fault) {
    httpErrors.inc({ reason: fault === error ? fault.code : 'database_unavailable' })
    if (fault.code === 'unavailable') {
      warn(toReason(error), requestId)
    }
    return toAnswer(fault, requestId)
  }
  httpErrors.inc({ reason: 'internal_error' })
  reportBug(describeBug(error), { requestId, stack: toStack(error) })
  return answer(500, { success: false, error: 'Internal server error', requestId })
}

/** Returns the status of the response to a thrown value. */
export function toStatus(error: unknown): number {
  if (error instanceof Fault) return STATUS[error.code]
  if (error instanceof InvalidRequest) return 400
  return isUnavailable(error) ? 503 : 500
}

/** Returns the body of a failure in words. */
export function toWords(body: string): string {
  const { error, message = error, details = [] } = JSON.parse(body)
  const issues = details.map(({ path, message }: Detail) => [...path, message].join(': '))
  return issues.length > 0 ? issues.join('; ') : message
}

function toAnswer({ code, message, headers, details }: Fault, requestId: string): ResponseParts {
  if (code === 'unauthorized') return answer(401, { error: 'Unauthorized', message }, headers)
  if (code === 'rate_limited') {
    return answer(
      429,
      { success: false, error: 'Rate limit exceeded', message, requestId },
      headers,
    )
  }
  const retry = code === 'unavailable' ? { 'Retry-After': '1' } : {}
  return answer(
    STATUS[code],
    { success: false, error: message, code, ...(details && { details }), requestId },
    { ...retry, ...headers },
  )
}

function answer(
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): ResponseParts {
  return { status, body: JSON.stringify(body), headers: { ...headers } }
}

/**
 * Describes a bug for the log. Only messages of the runtime itself cannot quote what a caller sent.
 */
function describeBug(error: unknown): string {
  if (
    error instanceof TypeError ||
    error instanceof ReferenceError ||
    error instanceof RangeError
  ) {
    return error.message
  }
  if (error instanceof Error && !sqlState(error)) return error.name
  return toReason(error)
}

/** Returns the stack without the message, which may quote what a caller sent. */
function toStack(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return error.stack
    ?.split('\n')
    .filter(line => /^\s+at /.test(line))
    .slice(0, 8)
    .join('\n')
}
