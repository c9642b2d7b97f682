import ipaddr from 'ipaddr.js'
import { Fault } from '../errors.ts'
import { createSemaphore } from '../semaphore.ts'
import { tooManyRequests } from './rate-limit.ts'

const WINDOW_MS = 60_000
const MAX_FAILURES = 60
const MAX_NETWORKS = 10_000
const MAX_ALIVE = 10_000
const MAX_WAITING = 2_000
const MAX_WAITING_OF_NETWORK = 250

export interface FailedAuthentications {
  /**
   * Finds what a key or token opens by its hash, which is undefined where none was sent. Beyond 60 failures a minute of
   * the client's network, hashes that were not alive within the last minute wait for each other: one is looked up at a
   * time. Returns undefined for a failure, which counts. Throws `unavailable` when too many wait.
   */
  lookUp<Found>(
    hash: string | undefined,
    find: (hash: string) => Promise<Found | undefined>,
    getAddress: () => string,
  ): Promise<Found | undefined>
  /** Counts a failed guess at a session or a link. Throws `rate_limited` beyond 60 failures a minute of the network. */
  countFailure(address: string): void
}

/** Bounds what failed authentications cost this process. */
export function createFailedAuthentications(): FailedAuthentications {
  const failures = createFailureCounter()
  // Hashes by when they were last seen alive, the oldest first.
  const alive = new Map<string, number>()
  const lane = createSemaphore({ total: 1, maxWaiting: MAX_WAITING_OF_NETWORK })

  function mustWait(hash: string, getAddress: () => string): boolean {
    const nowMs = performance.now()
    if (!failures.isAnyOver(nowMs)) return false
    if (nowMs - (alive.get(hash) ?? -Infinity) < WINDOW_MS) return false
    return failures.getWaitS(getAddress(), nowMs) !== undefined
  }

  function noteAlive(hash: string): void {
    alive.delete(hash)
    alive.set(hash, performance.now())
    if (alive.size > MAX_ALIVE) alive.delete(alive.keys().next().value ?? '')
  }

  return {
    async lookUp(hash, find, getAddress) {
      if (hash !== undefined) {
        let found
        if (mustWait(hash, getAddress)) {
          if (lane.waiting >= MAX_WAITING) {
            throw new Fault('unavailable', 'Too many requests at once. Try again shortly.')
          }
          found = await lane.run(toNetwork(getAddress()), () => find(hash))
        } else found = await find(hash)
        if (found !== undefined) {
          noteAlive(hash)
          return found
        }
        alive.delete(hash)
      }
      failures.count(getAddress(), performance.now())
      return undefined
    },
    countFailure(address) {
      const waitS = failures.count(address, performance.now())
      if (waitS !== undefined) throw tooManyRequests(waitS)
    },
  }
}

/** Counts failures per network of client addresses in windows of a minute. Times are of performance.now. */
export interface FailureCounter {
  /** Counts a failure. Returns the seconds until the window ends once there were more than 60, else undefined. */
  count(address: string, nowMs: number): number | undefined
  /** Returns the same without counting. */
  getWaitS(address: string, nowMs: number): number | undefined
  /** Whether any network has had more than 60 failures. */
  isAnyOver(nowMs: number): boolean
}

/** Keeps the counts in memory. The oldest of 10,000 networks makes room for a new one. */
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
        windows.delete(network)
        if (windows.size >= MAX_NETWORKS) windows.delete(windows.keys().next().value ?? '')
        window = { failures: 0, endsAt: nowMs + WINDOW_MS }
        windows.set(network, window)
      }
      window.failures++
      if (window.failures > MAX_FAILURES) anyOverUntil = Math.max(anyOverUntil, window.endsAt)
      return toWaitS(window, nowMs)
    },
    getWaitS: (address, nowMs) => toWaitS(windows.get(toNetwork(address)), nowMs),
    isAnyOver: nowMs => nowMs < anyOverUntil,
  }
}

/** The network of a client: an IPv4 address, or the /64 of an IPv6 one. */
export function toNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':')
}
