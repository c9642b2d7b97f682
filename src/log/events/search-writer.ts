import {
  isWholeName,
  readExactUser,
  TERMS,
  VALUE_LISTS,
  type SearchFilters,
} from './search-filters.ts'
import { findEnd } from './search-lexer.ts'

// Writes searches. Pure: it also runs in the browser.

/**
 * Returns a search that `parseSearch` parses to these filters. Leaves out alternatives and groups
 * without conditions, whose terms were invalid.
 */
export function toSearchText(filters: SearchFilters): string {
  const [group, ...others] = filters.groups
  const isOnly = others.length === 0 && listTerms(filters).length === 0
  return isOnly && group && !group.isExcluded && group.filters.length > 1
    ? toOr(group.filters)
    : toAnd(filters)
}

function toOr(alternatives: readonly SearchFilters[]): string {
  return alternatives
    .map(toAnd)
    .filter(text => text !== '')
    .join(' OR ')
}

function toAnd(filters: SearchFilters): string {
  const groups = filters.groups.flatMap(one => {
    const text = toOr(one.filters)
    if (text === '') return []
    // A last word like `f(x` would take the `)` of the group.
    const [word = ''] = /\S*$/.exec(text) ?? []
    const end = findEnd(`${word})`) > word.length ? ' )' : ')'
    return `${one.isExcluded ? '-' : ''}(${text}${end}`
  })
  return [...listTerms(filters), ...groups].join(' ')
}

function listTerms(filters: SearchFilters): string[] {
  const terms: string[] = []
  for (const list of VALUE_LISTS) {
    const toTerm = (value: string) => `${TERMS[list]}${toValue(list, value)}`
    for (const value of filters[list].is) terms.push(toTerm(value))
    for (const value of filters[list].not) terms.push(`-${toTerm(value)}`)
    // Bounds of time stand between names and words.
    if (list !== 'has') continue
    if (filters.after !== null) terms.push(`after:${toShortIso(filters.after)}`)
    if (filters.before !== null) terms.push(`before:${toShortIso(filters.before)}`)
  }
  return terms
}

function toValue(list: keyof typeof TERMS, value: string): string {
  if (list === 'words') return value
  if (list === 'users') {
    const quoted = isWholeName(value) ? value : readExactUser(value)
    return quoted === undefined ? value : toQuoted(quoted)
  }
  const isPair = list === 'metadata' && value.includes('="')
  return list === 'phrases' || isPair || value.startsWith('"') || /[\s()]/u.test(value)
    ? toQuoted(value)
    : value
}

function toQuoted(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}

/** Returns the shortest ISO 8601 text of a time, in UTC. */
function toShortIso(ms: number): string {
  return new Date(ms)
    .toISOString()
    .replace('T00:00:00.000Z', '')
    .replace(/:00\.000Z$/, 'Z')
    .replace('.000Z', 'Z')
}
