/** Returns a function that calls `make` at its first call, and returns the same result ever after. */
export function once<Result>(make: () => Result): () => Result {
  let made: { result: Result } | undefined
  return () => (made ??= { result: make() }).result
}

/** Resolves with the result of `work`, or with that of `onLate` when `work` takes longer than `ms`. */
export async function withTimeout<Result, Late>(
  ms: number,
  work: Promise<Result>,
  onLate: () => Late,
): Promise<Result | Late> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>(resolve => (timer = setTimeout(resolve, ms))).then(onLate)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
