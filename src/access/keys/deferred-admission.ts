import { invalidKey } from '../../base/errors.ts'
import { setNewest } from '../../base/functions.ts'
import {
  toRateLimitHeaders,
  tooManyRequests,
  type RateLimitResult,
} from '../../http/limits/rate-limit.ts'
import type { Call } from '../../http/call.ts'
import type { Key } from './count-requests.ts'

const RECENT_MS = 60_000
const MAX_RECENT = 10_000

/**
 * The admission of a request whose key is checked in the transaction of its write. Until it is
 * settled, any failure of the request is preceded by an ordinary admission. So a 401 or 429 comes
 * before every other failure.
 */
export interface DeferredAdmission {
  /** SHA-256 of the key, in hex. */
  readonly hash: string
  /** True once the request was counted. */
  readonly isSettled: boolean
  /** Admits the request by itself, before its write. Throws `unauthorized` or `rate_limited`. */
  admit(): Promise<void>
  /**
   * Takes the outcome of the transaction that counted the request; undefined if no live key has
   * the hash. Throws `unauthorized` or `rate_limited`.
   */
  settle(rateLimit: RateLimitResult | undefined): void
}

interface Parts {
  hash: string
  call: Call
  admit(): Promise<RateLimitResult>
  /** Called with the outcome of `settle`. */
  onSettled(rateLimit: RateLimitResult | undefined): void
}

export function deferAdmission({ hash, call, admit, onSettled }: Parts): DeferredAdmission {
  let isSettled = false

  function apply(rateLimit: RateLimitResult): void {
    isSettled = true
    call.checkFirst = undefined
    call.headers = toRateLimitHeaders(rateLimit)
    if (!rateLimit.isAllowed) throw tooManyRequests(rateLimit.retryAfter)
  }
  const admission: DeferredAdmission = {
    hash,
    get isSettled() {
      return isSettled
    },
    async admit() {
      apply(await admit())
    },
    settle(rateLimit) {
      onSettled(rateLimit)
      if (rateLimit) return apply(rateLimit)
      isSettled = true
      call.checkFirst = undefined
      throw invalidKey()
    },
  }
  call.checkFirst = admission.admit
  return admission
}

/** Remembers keys for a minute after they were admitted. A hint: only the database decides. */
export function createRecentKeys() {
  const keys = new Map<string, { key: Key; untilMs: number }>()
  return {
    find(hash: string): Key | undefined {
      const entry = keys.get(hash)
      return entry && entry.untilMs > performance.now() ? entry.key : undefined
    },
    remember(hash: string, key: Key): void {
      setNewest(keys, hash, { key, untilMs: performance.now() + RECENT_MS }, MAX_RECENT)
    },
    forget: (hash: string) => void keys.delete(hash),
  }
}
