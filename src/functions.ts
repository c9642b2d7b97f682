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
