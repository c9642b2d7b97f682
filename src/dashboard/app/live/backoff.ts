const MIN_MS = 250
const MAX_MS = 15_000

/**
 * The delay before a reconnection attempt: random, up to a limit that doubles with each attempt, so
 * that browsers do not all reconnect at once.
 */
export function toBackoffMs(attempt: number, random: () => number): number {
  const ceiling = Math.min(MAX_MS, MIN_MS * 2 ** attempt)
  return Math.round(MIN_MS + random() * (ceiling - MIN_MS))
}
