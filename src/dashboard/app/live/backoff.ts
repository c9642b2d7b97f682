const SHORTEST_MS = 250
const LONGEST_MS = 15_000

/**
 * How long to wait before the n-th attempt to connect: anything up to a ceiling that doubles each time, so that
 * browsers which lost one server together do not come back together.
 */
export function toBackoffMs(attempt: number, random: () => number): number {
  const ceiling = Math.min(LONGEST_MS, SHORTEST_MS * 2 ** attempt)
  return Math.round(SHORTEST_MS + random() * (ceiling - SHORTEST_MS))
}
