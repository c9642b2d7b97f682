const MIN_MS = 250
const MAX_MS = 15_000

/**
 * The delay before another attempt: random, up to a limit that doubles with each attempt, so that
 * browsers do not all come back at once. It is never shorter than the server asks.
 */
export function toBackoffMs(attempt: number, random: () => number, retryAfterS = 0): number {
  const ceiling = Math.min(MAX_MS, MIN_MS * 2 ** attempt)
  return Math.max(Math.round(MIN_MS + random() * (ceiling - MIN_MS)), 1_000 * retryAfterS)
}
