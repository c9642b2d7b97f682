/** The most words of a search for events by `text`, or for users. */
export const MAX_WORDS = 20

/** The problem of a text that `hasNothingToFind`. */
export const NOTHING_TO_FIND = 'Must have a letter, a digit or a symbol'

/** Splits a text at its white space. White space alone is one word, which matches nothing. */
export function splitWords(text: string): string[] {
  const words = text.split(/\s+/).filter(word => word !== '')
  return words.length > 0 ? words : [text]
}

/** Returns whether folding leaves nothing of a text, such as white space or a soft hyphen. */
export function hasNothingToFind(text: string): boolean {
  // The Greek iota below is folded to a letter.
  return /^(?:(?!\u0345)[\0- \u0085\u00a0\u00ad\u200c\u200d\u2060\ufeff\u3000\p{M}])*$/u.test(
    text.normalize('NFD'),
  )
}
