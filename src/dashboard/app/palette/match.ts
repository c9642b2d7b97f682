/** What can be found: `name` is somebody else's text, and comes after `text`. */
export interface Searchable {
  text: string
  name?: string
}

const START = 3
const INSIDE = 2
const SCATTERED = 1

/** Those that have every word of what is typed, the ones whose words begin so first; all of them where it is nothing. */
export function filterEntries<One extends Searchable>(all: readonly One[], typed: string): One[] {
  const words = fold(typed).split(/\s+/).filter(Boolean)
  return all
    .map(one => ({ one, rank: rank(fold(`${one.text} ${one.name ?? ''}`), words) }))
    .filter(({ rank }) => rank !== undefined)
    .sort((one, other) => (other.rank ?? 0) - (one.rank ?? 0))
    .map(({ one }) => one)
}

/** How well a text has the words; undefined where one is missing. */
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

/** Whether the letters of a word come in a text in their order: `pmts` is in `payments`. */
function isScattered(text: string, word: string): boolean {
  let at = 0
  for (const letter of word) {
    at = text.indexOf(letter, at) + 1
    if (at === 0) return false
  }
  return true
}

/** Case and accents make no difference. */
function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
}
