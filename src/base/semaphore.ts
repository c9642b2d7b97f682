import { Fault } from './errors.ts'
import { setNewest, startDeadline } from './functions.ts'

/** The time in which a key's cost counts half. */
const HALF_LIFE_MS = 2_000
const MAX_KNOWN_COSTS = 10_000
/** The cost of a heavy key. A key that always holds one slot has about three times as much. */
const HEAVY_COST_MS = 1_000
/** The time after which a key that takes no slot is no longer active. */
const ACTIVE_MS = 2_000

export interface SemaphoreOptions {
  /** The number of slots for all keys together. */
  total?: number
  /** The number of slots per key. */
  perKey?: number
  /**
   * The number of slots of a key that has held slots for long lately, while another key is active;
   * `perKey` by default.
   */
  perHeavyKey?: number
  /** The number of callers that may wait per key. */
  maxWaiting?: number
  /** The number of callers of all keys together that may wait. */
  maxWaitingTotal?: number
  /**
   * True if the newest of equal keys goes first, and a caller beyond `maxWaitingTotal` takes the
   * place of the one that would go last. So a crowd of new keys delays no later one.
   */
  isNewestFirst?: boolean
}

interface WaitOptions {
  maxWaitMs?: number
  /** Ends the wait when it aborts. */
  signal?: AbortSignal | undefined
}

interface Waiter {
  /** Gives the caller a slot. */
  start(): void
  /** Ends the wait without a slot. */
  giveUp(): void
}

/** A concurrency limit. Callers beyond it wait in a first-in, first-out queue per key. */
export interface Semaphore {
  /**
   * Takes a slot, and returns the function that releases it. Returns undefined if too many callers
   * wait for the key, or if the wait ends without a slot.
   */
  acquire(key: string, wait?: WaitOptions): Promise<(() => void) | undefined>
  /** Runs `work` in a slot. Throws `unavailable` if `acquire` returns undefined. */
  run<Result>(key: string, work: () => Promise<Result>, wait?: WaitOptions): Promise<Result>
  /** Returns whether a caller of the key would get a slot, or may wait for one. */
  hasRoom(key: string): boolean
  /** The number of taken slots. */
  readonly running: number
  /** The number of waiting callers. */
  readonly waiting: number
}

/**
 * Creates a semaphore. If keys compete for `total`, keys with fewer slots go first. Of keys with
 * equally many, the one that has held slots for less time lately goes first, and of equal ones the
 * oldest.
 */
export function createSemaphore({
  total = Infinity,
  perKey = Infinity,
  perHeavyKey = perKey,
  maxWaiting = Infinity,
  maxWaitingTotal = Infinity,
  isNewestFirst = false,
}: SemaphoreOptions): Semaphore {
  const slots = new Map<string, number>()
  // Keys with waiting callers. A key moves to the end when a caller of it gets a slot.
  const queues = new Map<string, Set<Waiter>>()
  const costs = createCosts()
  // The two keys that took slots last.
  let newest = { key: '', atMs: -Infinity }
  let other = newest
  let running = 0
  let waiting = 0

  const count = (key: string) => slots.get(key) ?? 0

  function take(key: string): () => void {
    running++
    slots.set(key, count(key) + 1)
    const takenMs = performance.now()
    if (newest.key !== key) other = newest
    newest = { key, atMs: takenMs }
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      costs.add(key, takenMs)
      const wasFull = running === total
      running--
      if (count(key) === 1) slots.delete(key)
      else slots.set(key, count(key) - 1)
      // If `total` was not reached, callers of other keys wait for slots of their own key.
      if (wasFull) startNext(findNext())
      // The limit of the key may have risen since its callers began to wait.
      while (queues.has(key) && isFree(key)) startNext(key)
    }
  }

  /** Returns the number of slots that a key may have now. */
  function limitOf(key: string, nowMs: number): number {
    if (perHeavyKey === perKey) return perKey
    const { atMs } = newest.key === key ? other : newest
    const isShared = nowMs - atMs < ACTIVE_MS
    return isShared && costs.get(key, nowMs) > HEAVY_COST_MS ? perHeavyKey : perKey
  }

  /** Returns below 0 if `a` has fewer slots than `b`, or as many and a lower cost. */
  const compare = (a: string, b: string, nowMs: number) =>
    count(a) - count(b) || costs.get(a, nowMs) - costs.get(b, nowMs)

  /** Returns the key with waiting callers that has the fewest slots, and then the lowest cost. */
  function findNext(): string | undefined {
    if (queues.size === 0) return undefined
    const nowMs = performance.now()
    let best: string | undefined
    for (const key of queues.keys()) {
      if (count(key) >= limitOf(key, nowMs)) continue
      const order = best === undefined ? -1 : compare(key, best, nowMs)
      if (order < 0 || (isNewestFirst && order === 0)) best = key
    }
    return best
  }

  /** Ends the wait of the caller that would go last. */
  function refuseLast(): void {
    const nowMs = performance.now()
    const last = [...queues.keys()].reduce((a, b) => (compare(b, a, nowMs) > 0 ? b : a))
    for (const waiter of [...(queues.get(last) ?? [])].slice(0, 1)) waiter.giveUp()
  }

  function startNext(key: string | undefined): void {
    const queue = key === undefined ? undefined : queues.get(key)
    if (key === undefined || !queue) return
    const [waiter] = queue
    queues.delete(key)
    if (waiter && queue.delete(waiter)) {
      waiting--
      waiter.start()
    }
    if (queue.size > 0) queues.set(key, queue)
  }

  const isFree = (key: string) => running < total && count(key) < limitOf(key, performance.now())
  const canWait = (key: string) =>
    waiting < maxWaitingTotal && (queues.get(key)?.size ?? 0) < maxWaiting

  async function acquire(
    key: string,
    { maxWaitMs, signal }: WaitOptions = {},
  ): Promise<(() => void) | undefined> {
    if (isFree(key)) return take(key)
    if (isNewestFirst && waiting >= maxWaitingTotal) refuseLast()
    if (!canWait(key) || signal?.aborted) return undefined
    const queue = queues.get(key) ?? new Set()
    queues.set(key, queue)
    waiting++
    return new Promise(resolve => {
      const end = (release?: () => void) => {
        endDeadline?.()
        signal?.removeEventListener('abort', giveUp)
        resolve(release)
      }
      const start = () => end(take(key))
      const giveUp = () => {
        queue.delete(waiter)
        waiting--
        if (queue.size === 0) queues.delete(key)
        end()
      }
      const waiter = { start, giveUp }
      const endDeadline = maxWaitMs === undefined ? undefined : startDeadline(maxWaitMs, giveUp)
      signal?.addEventListener('abort', giveUp)
      queue.add(waiter)
    })
  }

  return {
    acquire,
    hasRoom: key => isFree(key) || canWait(key),
    async run(key, work, wait) {
      const release = await acquire(key, wait)
      if (!release) throw tooManyAtOnce()
      try {
        return await work()
      } finally {
        release()
      }
    },
    get running() {
      return running
    },
    get waiting() {
      return waiting
    },
  }
}

/** Returns the error for a caller that gets no slot. */
export function tooManyAtOnce(): Fault {
  return new Fault('unavailable', 'Too many requests at once. Try again shortly.')
}

/** The time that each key has held slots. Time long ago counts less. */
function createCosts() {
  // The times are those of `performance.now()`.
  const costs = new Map<string, { ms: number; atMs: number }>()

  function get(key: string, nowMs: number): number {
    const cost = costs.get(key)
    return cost ? cost.ms * 2 ** ((cost.atMs - nowMs) / HALF_LIFE_MS) : 0
  }

  return {
    get,
    /** Adds the cost of a slot that was taken at `takenMs`. */
    add(key: string, takenMs: number): void {
      const atMs = performance.now()
      setNewest(costs, key, { ms: get(key, atMs) + atMs - takenMs, atMs }, MAX_KNOWN_COSTS)
    },
  }
}
