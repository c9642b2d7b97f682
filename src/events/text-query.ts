const MAX_WORDS = 20

/** A Postgres tsquery that finds texts with words that begin like each word of `text`. */
export function toTextQuery(text: string): string {
  return text
    .split(/\s+/)
    .filter(word => word !== '')
    .slice(0, MAX_WORDS)
    .map(word => `'${word.replace(/['\\]/g, '$&$&')}':*`)
    .join(' & ')
}
