/** The most words of a search for events by `text`, or for users. */
export const MAX_WORDS = 20

/** The problem of a search for users or channels that consists of accents alone. */
export const NOTHING_TO_FIND = 'Must have a letter, a digit or a symbol'

/** Splits a text at its white space. White space alone is one word, which matches nothing. */
export function splitWords(text: string): string[] {
  const words = text.split(/\s+/).filter(word => word !== '')
  return words.length > 0 ? words : [text]
}
