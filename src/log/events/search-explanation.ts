import { findClosest } from '../../base/closest.ts'
import { LEVELS } from '../channels/level.ts'
import { STATES } from './state.ts'
import { HAS_FIELDS } from './search-filters.ts'
import { SEARCH_KEYS, type SearchKey } from './search-lexer.ts'
import {
  MAX_DEPTH,
  MAX_LENGTH,
  MAX_TERMS,
  parseSearch,
  type ParsedSearch,
  type SearchIssue,
  type SearchProblem,
} from './search-query.ts'
import { NOTHING_TO_FIND } from '../../base/text-search.ts'

// Explains the errors of a search. Pure: it also runs in the browser.

/** Names that other products use. */
const SYNONYMS: Readonly<Record<string, SearchKey>> = {
  ...{ since: 'after', from: 'after', until: 'before', to: 'before', label: 'tag' },
  ...{ metadata: 'meta', property: 'meta', in: 'channel', is: 'has', person: 'user' },
  ...{ severity: 'level', priority: 'level' },
}
const TIMES: Readonly<Record<string, string>> = { today: '24h', yesterday: '2d' }

const MESSAGES: Record<SearchProblem, string> = {
  length: `Must have at most ${MAX_LENGTH} characters`,
  terms: `Must have at most ${MAX_TERMS} terms`,
  depth: `Must have parentheses in at most ${MAX_DEPTH} levels`,
  time: 'Must be a date, ISO 8601 with a time zone like 2026-11-20T09:30Z, or a time ago like 2h',
  date: 'Must be a date that exists, in the years 100 to 9999',
  has: `Must be one of ${HAS_FIELDS.join(', ')}`,
  level: `Must be level: or level>= and one of ${LEVELS.join(', ')}. Put quotes around other text`,
  state: `Must be one of ${STATES.join(', ')}. Put quotes around other text`,
  meta: 'Must be a name and a value, like plan=pro or order.number=42',
  nothing: NOTHING_TO_FIND,
  removed: 'alike: was removed in 0.4.0. Search for words of the title',
  or: 'OR must have a term on both sides. Put quotes around it to search for the word',
  open: 'This ( has no ). Put quotes around text with parentheses',
  close: 'This ) has no (. Put quotes around text with parentheses',
  empty: 'Parentheses must contain a term',
}

/** A change of a search: `text` replaces what is from `start` to `end`. */
export interface SearchFix {
  start: number
  end: number
  text: string
}

/** Explains an issue to a caller of the API: the rule, the part that breaks it, and what to try. */
export function explainIssue(text: string, issue: SearchIssue): string {
  const { start, end, problem } = issue
  const message = MESSAGES[problem]
  if (problem === 'length') return message
  const fix = findFix(text, issue)
  const bad = text.slice(start, end)
  const part = `${message}. Character ${start + 1}: ${bad}`
  return fix && fix.start === start && fix.text !== '' ? `${part}. Try ${fix.text}` : part
}

/** Returns a change that mends an issue, if its intention is clear. */
export function findFix(text: string, { start, end, problem }: SearchIssue): SearchFix | undefined {
  if (problem === 'open') return { start: text.length, end: text.length, text: ')' }
  if (problem === 'close' || problem === 'empty') return { start, end, text: '' }
  const [, name = '', operator = '', value = ''] =
    /^(-?\w+)(:|[<>=]+)"?(.*?)"?$/s.exec(text.slice(start, end)) ?? []
  const known = operator.replace(/^=+$/, ':').replace(/^=?>=*$/, '>=')
  const [fixed] = listGuesses(problem, value)
    .filter(one => one !== undefined)
    .map(one => `${name}${known}${one}`)
    .filter(one => parseSearch(one).issues.length === 0)
  return fixed === undefined ? undefined : { start, end, text: fixed }
}

/** Returns a search with all of `fixes`, which do not overlap. */
export function applyFixes(text: string, fixes: readonly SearchFix[]): string {
  const fromEnd = fixes.toSorted((a, b) => b.start - a.start)
  return fromEnd
    .reduce((fixed, fix) => fixed.slice(0, fix.start) + fix.text + fixed.slice(fix.end), text)
    .trim()
}

/** A term whose name is unknown, so that it is a word, and the name that was probably meant. */
export interface UnknownKey extends SearchFix {
  /** The unknown name. */
  name: string
  key: SearchKey
}

/** Finds the words that look like a misspelled name and a value, such as `chanel:payments`. */
export function findUnknownKeys(text: string, { terms }: ParsedSearch): UnknownKey[] {
  return terms.flatMap(({ name: known, value, isQuoted, isExcluded, start, end }) => {
    const [, name = '', rest = ''] = /^([a-z]{2,12}):(?!\/\/)(.+)$/is.exec(value) ?? []
    if (known !== '' || isQuoted || name === '') return []
    const key =
      (Object.hasOwn(SYNONYMS, name.toLowerCase()) ? SYNONYMS[name.toLowerCase()] : undefined) ??
      findClosest(name, SEARCH_KEYS)
    if (key === undefined) return []
    return [{ start, end, name, key, text: `${isExcluded ? '-' : ''}${key}:${rest}` }]
  })
}

/** Lists values that may be meant, the most probable first. Some of them may be invalid. */
function listGuesses(problem: SearchProblem, value: string): (string | undefined)[] {
  if (problem === 'has') return [findClosest(value, HAS_FIELDS)]
  if (problem === 'level') return [findClosest(value, LEVELS)]
  if (problem === 'state') return [findClosest(value, STATES)]
  if (problem === 'meta') return [value.replace(/\s*(==|[:>]|\s)\s*/, '=')]
  if (problem !== 'time') return []
  const [, count = '', unit = ''] =
    /^(\d{1,4})\s*(s|m|h|d|w)(ec(ond)?|in(ute)?|r|our|ay|eek)?s?$/i.exec(value) ?? []
  const known = value.toLowerCase()
  return [
    Object.hasOwn(TIMES, known) ? TIMES[known] : undefined,
    count === '' ? undefined : `${count}${unit.toLowerCase()}`,
    `${value}Z`,
    value.replace(/[/.]/g, '-'),
    `${value}-01`,
    `${value}-01-01`,
  ]
}
