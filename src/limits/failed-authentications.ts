import ipaddr from 'ipaddr.js'
import { Fault } from '../errors.ts'
import { setNewest } from '../functions.ts'
import { createSemaphore } from '../semaphore.ts'
import { tooManyRequests } from './rate-limit.ts'

const WINDOW_MS = 60_000
const MAX_FAILURES = 60
const MAX_NETWORKS = 10_000
const MAX_RECENTLY_FOUND = 10_000
const MAX_WAITING = 2_000
const MAX_WAITING_OF_NETWORK = 250

export interface FailedAuthentications {
  /**
   * Looks a key or token up by its hash, which is undefined if none was sent. Returns undefined and
   * counts a failure if nothing is found. After 60 failures of the client's network within a
   * minute, unknown hashes are looked up one at a time. Hashes that were found within the last
   * minute are not delayed. Throws `unavailable` if too many callers wait.
   */
  lookUp<Found>(
    hash: string | undefined,
    find: (hash: string) => Promise<Found | undefined>,
    getAddress: () => string,
  ): Promise<Found | undefined>
  /** Counts a key that was found to be unknown without `lookUp`. */
  countUnknown(address: string): void
  /**
   * Counts a failed guess at a session or a link. Throws `rate_limited` after 60 failures of the
   * network in a minute.
   */
  countFailure(address: string): void
}

/** Limits the work that failed authentications cause in this process. */
export function createFailedAuthentications(): FailedAuthentications {
  const failures = createFailureCounter()
  // The time at which each hash was last found, the oldest first.
  const recentlyFound = new Map<string, number>()
  const lookups = createSemaphore({ total: 1, maxWaiting: MAX_WAITING_OF_NETWORK })

  function mustWait(hash: string, getAddress: () => string): boolean {
    const nowMs = performance.now()
    if (!failures.isAnyOver(nowMs)) return false
    if (nowMs - (recentlyFound.get(hash) ?? -Infinity) < WINDOW_MS) return false
    return failures.getWaitS(getAddress(), nowMs) !== undefined
  }

  function noteFound(hash: string): void {
    setNewest(recentlyFound, hash, performance.now(), MAX_RECENTLY_FOUND)
  }

  return {
    async lookUp(hash, find, getAddress) {
      if (hash !== undefined) {
        let found
        if (mustWait(hash, getAddress)) {
          if (lookups.waiting >= MAX_WAITING) {
            throw new Fault('unavailable', 'Too many requests at once. Try again shortly.')
          }
          found = await lookups.run(toNetwork(getAddress()), () => find(hash))
        } else found = await find(hash)
        if (found !== undefined) {
          noteFound(hash)
          return found
        }
        recentlyFound.delete(hash)
      }
      failures.count(getAddress(), performance.now())
      return undefined
    },
    countUnknown: address => void failures.count(address, performance.now()),
    countFailure(address) {
      const waitS = failures.count(address, performance.now())
      if (waitS !== undefined) throw tooManyRequests(waitS)
    },
  }
}

/**
 * Counts failures per network of clients, in windows of a minute. `nowMs` is `performance.now()`.
 */
export interface FailureCounter {
  /**
   * Counts a failure. Returns the seconds until the window ends if it has more than 60 failures,
   * else undefined.
   */
  count(address: string, nowMs: number): number | undefined
  /** Returns the same as `count`, without counting. */
  getWaitS(address: string, nowMs: number): number | undefined
  /** Returns whether any network has more than 60 failures in its window. */
  isAnyOver(nowMs: number): boolean
}

/** Creates a counter in memory. It keeps the 10,000 newest windows. */
export function createFailureCounter(): FailureCounter {
  const windows = new Map<string, { failures: number; endsAt: number }>()
  let anyOverUntil = -Infinity

  function toWaitS(window: { failures: number; endsAt: number } | undefined, nowMs: number) {
    if (!window || window.failures <= MAX_FAILURES || window.endsAt <= nowMs) return undefined
    return Math.max(1, Math.ceil((window.endsAt - nowMs) / 1000))
  }

  return {
    count(address, nowMs) {
      const network = toNetwork(address)
      let window = windows.get(network)
      if (!window || window.endsAt <= nowMs) {
        window = { failures: 0, endsAt: nowMs + WINDOW_MS }
        setNewest(windows, network, window, MAX_NETWORKS)
      }
      window.failures++
      if (window.failures > MAX_FAILURES) anyOverUntil = Math.max(anyOverUntil, window.endsAt)
      return toWaitS(window, nowMs)
    },
    getWaitS: (address, nowMs) => toWaitS(windows.get(toNetwork(address)), nowMs),
    isAnyOver: nowMs => nowMs < anyOverUntil,
  }
}

/** Returns the network of a client: an IPv4 address, or the /64 of an IPv6 address. */
export function toNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':')
}
