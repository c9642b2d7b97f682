import type { Detail } from './schema.ts'

/** The details of a failure, as far as the response has them. */
export type Failure = {
  /** The HTTP status. Undefined when there was no response. */
  status?: number | undefined
  /** The machine-readable cause, such as `not_found`. Undefined for 400, 401, 429 and 500. */
  code?: string | undefined
  /** Identifies the request in the server's log. */
  requestId?: string | undefined
  /** The wait before a retry that the server asks for, in milliseconds. */
  retryAfterMs?: number | undefined
}

/**
 * A failed call that was not aborted. Failures without a subclass are plain `TidingsError`s. It
 * never contains the API key.
 */
export class TidingsError extends Error {
  override name = 'TidingsError'
  readonly status: Failure['status']
  readonly code: Failure['code']
  readonly requestId: Failure['requestId']
  readonly retryAfterMs: Failure['retryAfterMs']

  constructor(message: string, failure: Failure = {}, options?: ErrorOptions) {
    super(message, options)
    this.status = failure.status
    this.code = failure.code
    this.requestId = failure.requestId
    this.retryAfterMs = failure.retryAfterMs
  }
}

/** 400: fields of the request are invalid. `details` lists at most 20 of them. */
export class ValidationError extends TidingsError {
  override name = 'ValidationError'
  readonly details: Detail[]

  constructor(message: string, failure: Failure, details: Detail[]) {
    const fields = details.map(detail => `; ${detail.path.join('.') || 'body'}: ${detail.message}`)
    super(message + fields.join(''), failure)
    this.details = details
  }
}

/** 401: the API key is unknown, expired or revoked. */
export class UnauthorizedError extends TidingsError {
  override name = 'UnauthorizedError'
}

/** 429: the key's requests of this minute are used up. Retry after `retryAfterMs`. */
export class RateLimitError extends TidingsError {
  override name = 'RateLimitError'
}

/**
 * No complete response arrived, so the server may or may not have acted. `cause` has the reason.
 */
export class ConnectionError extends TidingsError {
  override name = 'ConnectionError'
  /** True when the attempt took longer than `timeoutMs`. */
  readonly timedOut: boolean

  constructor(message: string, timedOut: boolean, cause: unknown) {
    super(message, {}, { cause })
    this.timedOut = timedOut
  }
}
