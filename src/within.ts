/** What comes of `work`, or of `onLate` where `work` takes longer than `ms`. */
export async function within<Result, Late>(
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
