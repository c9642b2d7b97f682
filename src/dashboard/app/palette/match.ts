/** An item to search: `text`, followed by the untrusted `name`. */
export interface Searchable {
  text: string
  name?: string
}

const START = 3
const INSIDE = 2
const SCATTERED = 1

/** The items that match every typed word, best matches first. Without words, all items. */
export function filterEntries<One extends Searchable>(all: readonly One[], typed: string): One[] {
  const words = fold(typed).split(/\s+/).filter(Boolean)
  return all
    .map(one => ({ one, rank: rank(fold(`${one.text} ${one.name ?? ''}`), words) }))
    .filter(({ rank }) => rank !== undefined)
    .sort((one, other) => (other.rank ?? 0) - (one.rank ?? 0))
    .map(({ one }) => one)
}

/** How well a text matches the words; undefined if one is missing. */
function rank(text: string, words: readonly string[]): number | undefined {
  let sum = 0
  for (const word of words) {
    const found = ` ${text}`.replace(/[-_./]/g, ' ').includes(` ${word}`)
      ? START
      : text.includes(word)
        ? INSIDE
        : isScattered(text, word)
          ? SCATTERED
          : undefined
    if (found === undefined) return undefined
    sum += found
  }
  return sum
}

/** Returns whether a text contains the letters of a word in order: `pmts` matches `payments`. */
function isScattered(text: string, word: string): boolean {
  let at = 0
  for (const letter of word) {
    at = text.indexOf(letter, at) + 1
    if (at === 0) return false
  }
  return true
}

/** Removes case and accents. */
function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
}
