import { setTimeout as sleep } from 'node:timers/promises'

/** Returns a function that calls `make` once, and returns its result on every call. */
export function once<Result>(make: () => Result): () => Result {
  let made: { result: Result } | undefined
  return () => (made ??= { result: make() }).result
}

/**
 * Resolves with the result of `work`, or with that of `onTimeout` if `work` takes longer than `ms`.
 */
export async function withTimeout<Result, TimeoutResult>(
  ms: number,
  work: Promise<Result>,
  onTimeout: () => TimeoutResult,
): Promise<Result | TimeoutResult> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<void>(resolve => (timer = setTimeout(resolve, ms))).then(onTimeout)
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** A deadline is counted in this many parts. */
const PARTS = 8

/**
 * Calls `onEnd` after `ms`, and returns a function that prevents it. A pause of the whole process,
 * as of a virtual machine, counts as an eighth of `ms` at most, and replies are read after it.
 */
export function startDeadline(ms: number, onEnd: () => void): () => void {
  let parts = 0
  let timer: ReturnType<typeof setTimeout> = setInterval(() => {
    if (++parts < PARTS) return
    clearInterval(timer)
    // The pause can be in the last part. Replies are read before this timer.
    timer = setTimeout(onEnd, 1)
  }, ms / PARTS)
  return () => clearTimeout(timer)
}

/** Resolves with the result of `work`. Rejects as soon as the signal aborts. */
export async function untilAborted<Result>(
  signal: AbortSignal | undefined,
  work: Promise<Result>,
): Promise<Result> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal?.reason)
  if (signal?.aborted) abort()
  else signal?.addEventListener('abort', abort)
  try {
    return await Promise.race([aborted.promise, work])
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}

/** Waits. Resolves to false when the signal aborts the wait. */
export function pause(ms: number, signal?: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { ref: false, ...(signal && { signal }) }).catch(() => false)
}

/** Adds an entry to a map of at most `max` entries, as its newest. The oldest makes room. */
export function setNewest<Key, Value>(
  map: Map<Key, Value>,
  key: Key,
  value: Value,
  max: number,
): void {
  map.delete(key)
  if (map.size >= max) {
    const [oldest] = map.keys()
    if (oldest !== undefined) map.delete(oldest)
  }
  map.set(key, value)
}
