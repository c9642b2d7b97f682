import type { Choice } from './search.ts'

/** The words of v1's filter `text`; what is nothing but space is a word in which there is nothing to find. */
export function toWords(text: string): string[] {
  const words = text.split(/\s+/).filter(word => word !== '')
  return words.length > 0 ? words.slice(0, 20) : [text]
}

/**
 * A Postgres tsquery that finds texts with words that begin like each of `words`, and with the phrases, but with nothing
 * that is shut out.
 */
export function toTextQuery(words: Choice, phrases: Choice): string {
  return [
    ...words.is.map(word => `${quote(word)}:*`),
    // What is in quotes and several words is a phrase to Postgres, too.
    ...phrases.is.map(quote),
    ...words.not.map(word => `!${quote(word)}:*`),
    ...phrases.not.map(phrase => `!${quote(phrase)}`),
  ].join(' & ')
}

function quote(text: string): string {
  return `'${text.replace(/['\\]/g, '$&$&')}'`
}
