import { Fault } from '../../base/errors.ts'

/** The effect of one request on the rate window of its key. */
export interface RateLimitResult {
  /** Requests allowed per window. */
  limit: number
  /** Requests left in the window after this one. */
  remaining: number
  /** Unix seconds at which the window ends. */
  resetAt: number
  /** Seconds until the window ends, by the database's clock. */
  retryAfter: number
  isAllowed: boolean
}

/** A rate window after the requests of a batch were counted. */
export interface RateWindow {
  limit: number
  used: number
  /** Unix seconds at which the window ends. */
  resetAt: number
  /** Seconds until the window ends, by the database's clock. */
  retryAfter: number
}

/**
 * Returns the result of the `nth` request (from 1) in a batch of `batchSize` requests with one key.
 */
export function toRateLimitResult(
  window: RateWindow,
  batchSize: number,
  nth: number,
): RateLimitResult {
  const position = window.used - batchSize + nth
  return {
    limit: window.limit,
    remaining: Math.max(0, window.limit - position),
    resetAt: window.resetAt,
    retryAfter: Math.max(1, Math.ceil(window.retryAfter)),
    isAllowed: position <= window.limit,
  }
}

/** Returns the error for a request that must wait for `seconds`. */
export function tooManyRequests(seconds: number): Fault {
  return new Fault('rate_limited', `Too many requests. Try again in ${seconds} s.`, {
    'Retry-After': String(seconds),
  })
}

/** Returns the rate limit headers of a response. */
export function toRateLimitHeaders(result: RateLimitResult): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(result.limit),
    'X-RateLimit-Remaining': String(result.remaining),
    'X-RateLimit-Reset': String(result.resetAt),
  }
}
