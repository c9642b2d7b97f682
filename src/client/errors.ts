import type { Detail } from '../http/envelope.ts'

/** What an answer says about a failure, as far as it says it. */
export type Failure = {
  /** The HTTP status; undefined when there was no answer. */
  status?: number | undefined
  /** The answer's machine-readable cause, such as `not_found`; 400, 401, 429 and 500 have none. */
  code?: string | undefined
  /** Names the request in the server's log. */
  requestId?: string | undefined
  /** How long the server asks to wait before the next try, in milliseconds. */
  retryAfterMs?: number | undefined
}

/** Every failure of a call but an abort; by itself, one that no subclass names. Never holds the API key. */
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

/** 400: fields break the rules; `details` names at most 20 of them. */
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

/** 429: the key's requests of this minute are used up; `retryAfterMs` says for how long. */
export class RateLimitError extends TidingsError {
  override name = 'RateLimitError'
}

/** No whole answer arrived, so whether the server acted is unknown; `cause` says why. */
export class ConnectionError extends TidingsError {
  override name = 'ConnectionError'
  /** Whether it was our deadline that ended the attempt. */
  readonly timedOut: boolean

  constructor(message: string, timedOut: boolean, cause: unknown) {
    super(message, {}, { cause })
    this.timedOut = timedOut
  }
}
