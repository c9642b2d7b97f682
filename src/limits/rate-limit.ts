import { Fault } from '../errors.ts'

/** The result of one request against the rate window of its key. */
export interface RateLimitResult {
  limit: number
  /** Requests left in the window after this one. */
  remaining: number
  /** Unix seconds at which the window ends. */
  resetAt: number
  /** Seconds until then, by the database's clock. */
  retryAfter: number
  isAllowed: boolean
}

/** A window after `used` requests of which the last `asked` came together. */
export interface RateWindow {
  limit: number
  used: number
  resetAt: number
  retryAfter: number
}

/** Deals the window's last requests out: the first of them took place `used - asked + 1`. */
export function toRateLimitResult(window: RateWindow, asked: number, nth: number): RateLimitResult {
  const place = window.used - asked + nth
  return {
    limit: window.limit,
    remaining: Math.max(0, window.limit - place),
    resetAt: window.resetAt,
    retryAfter: Math.max(1, Math.ceil(window.retryAfter)),
    isAllowed: place <= window.limit,
  }
}

/** The failure of a request that must wait. */
export function tooManyRequests(seconds: number): Fault {
  return new Fault('rate_limited', `Too many requests, try again in ${seconds} s`, {
    'Retry-After': String(seconds),
  })
}

export function toRateLimitHeaders(grant: RateLimitResult): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(grant.limit),
    'X-RateLimit-Remaining': String(grant.remaining),
    'X-RateLimit-Reset': String(grant.resetAt),
  }
}
