import type { ValueFilter } from './search-filters.ts'

/**
 * Splits the filter `text` of /v1 into up to 20 words. White space alone is one word, which matches
 * nothing.
 */
export function splitWords(text: string): string[] {
  const words = text.split(/\s+/).filter(word => word !== '')
  return words.length > 0 ? words.slice(0, 20) : [text]
}

/** Returns a Postgres tsquery. Words match by their prefix, and phrases match whole words. */
export function toTextQuery(words: ValueFilter, phrases: ValueFilter): string {
  return [
    ...words.is.map(word => `${quoteTerm(word)}:*`),
    // Postgres also reads several words in quotes as a phrase.
    ...phrases.is.map(quoteTerm),
    ...words.not.map(word => `!${quoteTerm(word)}:*`),
    ...phrases.not.map(phrase => `!${quoteTerm(phrase)}`),
  ].join(' & ')
}

function quoteTerm(text: string): string {
  return `'${text.replace(/['\\]/g, '$&$&')}'`
}
