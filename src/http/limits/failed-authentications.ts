import { setTimeout as sleep } from 'node:timers/promises'
import ipaddr from 'ipaddr.js'
import { setNewest } from '../../base/functions.ts'
import { createSemaphore, tooManyAtOnce } from '../../base/semaphore.ts'
import { tooManyRequests } from './rate-limit.ts'

const WINDOW_MS = 60_000
const MAX_FAILURES = 60
const MAX_NETWORKS = 10_000
const MAX_KNOWN = 10_000
const MAX_WAITING = 2_000
/** The delay of responses to failures over the limit, so that a stranger costs little time. */
const DELAY_MS = 1_000
const MAX_WAITING_OF_NETWORK = 250

export interface FailedAuthentications {
  /**
   * Looks up the key of a request by its hash, which is undefined if it has none of the right form.
   * Returns undefined and counts a failure if nothing is found. Otherwise works like `find`.
   */
  lookUp<Found>(
    hash: string | undefined,
    find: Find<Found>,
    getAddress: () => string,
  ): Promise<Found | undefined>
  /** Counts a key that was found to be unknown without `lookUp`. */
  countUnknown(address: string): void
  /**
   * Looks up a session or a link by its hash, and counts no failure. After 60 failures of the
   * client's network within a minute, unknown hashes are looked up one at a time. Hashes that were
   * found lately are not delayed. Throws `unavailable` if too many callers wait.
   */
  find<Found>(hash: string, find: Find<Found>, getAddress: () => string): Promise<Found | undefined>
  /**
   * Counts a failed guess at a session or a link. Rejects with `rate_limited` after 60 failures of
   * the network in a minute.
   */
  countFailure(address: string): Promise<void>
  /** Takes back a failure that was counted before an attempt, which has succeeded. */
  uncountFailure(address: string): void
}

/**
 * Finds what has a hash. `share` is the hash if it was found lately, else that of all strangers.
 */
type Find<Found> = (hash: string, share: string) => Promise<Found | undefined>

/** The share of all hashes that are not among the 10,000 that were found last. */
const UNKNOWN = 'unknown'

/** Limits the work that failed authentications cause in this process. */
export function createFailedAuthentications({ delayMs = DELAY_MS } = {}): FailedAuthentications {
  const failures = createFailureCounter()
  // The hashes that were found last, the oldest first.
  const known = new Map<string, true>()
  const lookups = createSemaphore({
    total: 1,
    maxWaiting: MAX_WAITING_OF_NETWORK,
    maxWaitingTotal: MAX_WAITING,
  })

  const isOver = (address: string) => failures.getWaitS(address, performance.now()) !== undefined

  async function find<Found>(
    hash: string,
    find: Find<Found>,
    getAddress: () => string,
  ): Promise<Found | undefined> {
    const isKnown = known.has(hash)
    const found =
      !isKnown && isOver(getAddress())
        ? await findInTurn(() => find(hash, UNKNOWN), toNetwork(getAddress()))
        : await find(hash, isKnown ? hash : UNKNOWN)
    if (found === undefined) known.delete(hash)
    else setNewest(known, hash, true, MAX_KNOWN)
    return found
  }

  async function findInTurn<Found>(work: () => Promise<Found>, network: string): Promise<Found> {
    const release = await lookups.acquire(network)
    if (!release) {
      await sleep(delayMs)
      throw tooManyAtOnce()
    }
    try {
      return await work()
    } finally {
      release()
    }
  }

  /** Counts a failure. Returns the seconds to wait, after a delay, if there were too many. */
  async function count(address: string): Promise<number | undefined> {
    const waitS = failures.count(address, performance.now())
    if (waitS !== undefined) await sleep(delayMs)
    return waitS
  }

  return {
    find,
    async lookUp(hash, lookUp, getAddress) {
      const found = hash === undefined ? undefined : await find(hash, lookUp, getAddress)
      if (found === undefined) await count(getAddress())
      return found
    },
    countUnknown: address => void failures.count(address, performance.now()),
    async countFailure(address) {
      const waitS = await count(address)
      if (waitS !== undefined) throw tooManyRequests(waitS)
    },
    uncountFailure: failures.uncount,
  }
}

/**
 * Creates a counter of failures for each network of clients, in windows of a minute. It keeps the
 * 10,000 newest windows in memory. `nowMs` is `performance.now()`.
 */
export function createFailureCounter() {
  const windows = new Map<string, { failures: number; endsAt: number }>()

  /** Returns the seconds until the window ends if it has more than 60 failures, else undefined. */
  function getWaitS(address: string, nowMs: number): number | undefined {
    const window = windows.get(toNetwork(address))
    if (!window || window.failures <= MAX_FAILURES || window.endsAt <= nowMs) return undefined
    return Math.max(1, Math.ceil((window.endsAt - nowMs) / 1000))
  }

  return {
    getWaitS,
    /** Counts a failure. Returns the same as `getWaitS`. */
    count(address: string, nowMs: number): number | undefined {
      const network = toNetwork(address)
      let window = windows.get(network)
      if (!window || window.endsAt <= nowMs) {
        window = { failures: 0, endsAt: nowMs + WINDOW_MS }
        setNewest(windows, network, window, MAX_NETWORKS)
      }
      window.failures++
      return getWaitS(address, nowMs)
    },
    /** Takes back a failure, unless its window has ended. */
    uncount(address: string): void {
      const window = windows.get(toNetwork(address))
      if (window && window.failures > 0) window.failures--
    },
  }
}

/**
 * Returns the network of a client: an IPv4 address, or the /64 of an IPv6 address; with `prefix` 48
 * its /48.
 */
export function toNetwork(address: string, prefix: 48 | 64 = 64): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return (parsed as ipaddr.IPv6).parts.slice(0, prefix / 16).join(':')
}
