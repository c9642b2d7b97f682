// Finds what a misspelled text may mean. Pure: it also runs in the browser.

/** Longer texts are compared by their beginnings. */
const MAX_LENGTH = 32
/** A comparison takes about a thousand steps, and nothing else runs meanwhile. */
const MAX_COMPARED = 200

/**
 * Returns the candidate that is most similar to a text, in any case; undefined if none is similar.
 * Up to a third of the characters may differ. A candidate that begins with the text is similar. It
 * compares the first 200 candidates.
 */
export function findClosest<Candidate extends string>(
  text: string,
  candidates: readonly Candidate[],
): Candidate | undefined {
  const wanted = toCompared(text)
  if (wanted === '') return undefined
  let best: Candidate | undefined
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates.slice(0, MAX_COMPARED)) {
    const name = toCompared(candidate)
    const isBeginning = wanted.length > 1 && name.startsWith(wanted)
    const distance = isBeginning ? 0.5 : toDistance(wanted, name, least)
    if (distance < least) [best, least] = [candidate, distance]
  }
  return best
}

function toCompared(text: string): string {
  return text.slice(0, MAX_LENGTH).toLowerCase().slice(0, MAX_LENGTH)
}

/** The last three rows of `toDistance`. */
let [before, row, next] = [newRow(), newRow(), newRow()]

function newRow(): Uint8Array {
  return new Uint8Array(MAX_LENGTH + 1)
}

/**
 * Returns how many characters must be inserted, deleted, replaced or swapped with the next one to
 * turn one text into another. It stops at `limit`, and returns Infinity for any such distance.
 */
function toDistance(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) >= limit) return Infinity
  for (let j = 0; j <= to.length; j++) row[j] = j
  for (let i = 1; i <= from.length; i++) {
    next[0] = i
    let least = i
    for (let j = 1; j <= to.length; j++) {
      const isEqual = from[i - 1] === to[j - 1]
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const distance = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (isEqual ? 0 : 1),
        isSwapped ? (before[j - 2] ?? 0) + 1 : Infinity,
      )
      next[j] = distance
      least = Math.min(least, distance)
    }
    // No later row has a smaller number.
    if (least >= limit) return Infinity
    ;[before, row, next] = [row, next, before]
  }
  const distance = row[to.length] ?? 0
  return distance < limit ? distance : Infinity
}
