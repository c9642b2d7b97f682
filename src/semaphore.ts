import { Fault } from './errors.ts'

export interface SemaphoreOptions {
  /** The number of slots for all keys together. */
  total?: number
  /** The number of slots per key. */
  perKey?: number
  /** The number of callers that may wait per key. */
  maxWaiting?: number
}

interface WaitOptions {
  maxWaitMs?: number
  /** Ends the wait when it aborts. */
  signal?: AbortSignal | undefined
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
  /** The number of taken slots. */
  readonly running: number
  /** The number of waiting callers. */
  readonly waiting: number
}

/**
 * Creates a semaphore. If keys compete for `total`, keys with fewer slots go first, and keys with
 * equally many take turns.
 */
export function createSemaphore({
  total = Infinity,
  perKey = Infinity,
  maxWaiting = Infinity,
}: SemaphoreOptions): Semaphore {
  const slots = new Map<string, number>()
  // Keys with waiting callers. A key moves to the end when a caller of it gets a slot.
  const queues = new Map<string, Set<() => void>>()
  let running = 0
  let waiting = 0

  const count = (key: string) => slots.get(key) ?? 0

  function take(key: string): () => void {
    running++
    slots.set(key, count(key) + 1)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      const wasFull = running === total
      running--
      if (count(key) === 1) slots.delete(key)
      else slots.set(key, count(key) - 1)
      // If `total` was not reached, callers of other keys wait for slots of their own key.
      startNext(wasFull ? findNext() : key)
    }
  }

  /** Returns the key with waiting callers that has the fewest slots. */
  function findNext(): string | undefined {
    let best: string | undefined
    for (const key of queues.keys()) {
      if (count(key) === 0) return key
      if (count(key) < perKey && (best === undefined || count(key) < count(best))) best = key
    }
    return best
  }

  function startNext(key: string | undefined): void {
    const queue = key === undefined ? undefined : queues.get(key)
    if (key === undefined || !queue) return
    const [start] = queue
    queues.delete(key)
    if (start && queue.delete(start)) {
      waiting--
      start()
    }
    if (queue.size > 0) queues.set(key, queue)
  }

  async function acquire(
    key: string,
    { maxWaitMs, signal }: WaitOptions = {},
  ): Promise<(() => void) | undefined> {
    if (running < total && count(key) < perKey) return take(key)
    const queue = queues.get(key) ?? new Set()
    if (queue.size >= maxWaiting || signal?.aborted) return undefined
    queues.set(key, queue)
    waiting++
    return new Promise(resolve => {
      const end = (release?: () => void) => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', giveUp)
        resolve(release)
      }
      const start = () => end(take(key))
      const giveUp = () => {
        queue.delete(start)
        waiting--
        if (queue.size === 0) queues.delete(key)
        end()
      }
      const timer = maxWaitMs === undefined ? undefined : setTimeout(giveUp, maxWaitMs)
      signal?.addEventListener('abort', giveUp)
      queue.add(start)
    })
  }

  return {
    acquire,
    async run(key, work, wait) {
      const release = await acquire(key, wait)
      if (!release) {
        throw new Fault('unavailable', 'Too many requests at once. Try again shortly.')
      }
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
