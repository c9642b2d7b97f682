/** A section of the documentation, as the search sees it. */
export interface SearchEntry {
  url: string
  /** The title of its page. */
  page: string
  title: string
  text: string
}

export interface SearchResult extends SearchEntry {
  /** The part of the text around the first match. */
  excerpt: string
}

const SCORES = { title: 12, page: 5, text: 1 }
const EXCERPT = { before: 40, length: 140 }
/** Words that nearly every section has. */
const IGNORED = new Set([
  'a',
  'an',
  'and',
  'for',
  'from',
  'how',
  'in',
  'of',
  'on',
  'the',
  'to',
  'with',
])

/** Finds entries in which each word of the query begins a word, the best matches first. */
export function searchEntries(
  entries: readonly SearchEntry[],
  query: string,
  limit: number,
): SearchResult[] {
  const patterns = toWords(query).map(
    word => new RegExp(`(?<![\\p{L}\\p{N}])${escape(word)}`, 'iu'),
  )
  if (patterns.length === 0) return []
  return entries
    .map(entry => ({ entry, score: toScore(entry, patterns) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, limit)
    .map(({ entry }) => ({ ...entry, excerpt: toExcerpt(entry.text, patterns) }))
}

/** The words of a query, without those that say little unless there are no others. */
export function toWords(query: string): string[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_/.+#-]*/gu) ?? []
  const telling = words.filter(word => !IGNORED.has(word))
  return telling.length > 0 ? telling : words
}

/** 0 unless every pattern matches somewhere. */
function toScore(entry: SearchEntry, patterns: readonly RegExp[]): number {
  let sum = 0
  for (const pattern of patterns) {
    const score = (['title', 'page', 'text'] as const)
      .filter(field => pattern.test(entry[field]))
      .reduce((sum, field) => sum + SCORES[field], 0)
    if (score === 0) return 0
    sum += score
  }
  return sum
}

function toExcerpt(text: string, patterns: readonly RegExp[]): string {
  const found = patterns.map(pattern => text.search(pattern)).filter(at => at >= 0)
  const start = Math.max(0, Math.min(...found, text.length) - EXCERPT.before)
  const from = start === 0 || found.length === 0 ? 0 : text.indexOf(' ', start) + 1
  const end = from + EXCERPT.length
  return `${from > 0 ? '… ' : ''}${text.slice(from, end)}${text.length > end ? ' …' : ''}`
}

function escape(word: string): string {
  return word.replace(/[.*+?^${}()|[\]\\/#-]/g, '\\$&')
}
