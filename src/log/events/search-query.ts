import { LEVELS, toRank } from '../channels/level.ts'
import { STATES } from './state.ts'
import {
  addBound,
  addGroup,
  addOnce,
  HAS_FIELDS,
  noFilters,
  splitMetadata,
  toQuotedUser,
  type FilterGroup,
  type SearchFilters,
} from './search-filters.ts'
import { createLexer, type Token, type SearchTerm } from './search-lexer.ts'
import { parseIsoTimestamp } from './timestamp.ts'
import { hasNothingToFind } from '../../base/text-search.ts'

// The query language of the search box. Pure: it also runs in the browser.

export const MAX_LENGTH = 500
export const MAX_TERMS = 20
/** How deep parentheses may be nested. */
export const MAX_DEPTH = 5

/** A part of the text: `start` and `end` are offsets of UTF-16 units. */
interface Span {
  start: number
  end: number
}

/**
 * An error in a search, and the part of the text that it is about. `path` has the name of the term,
 * and is empty for other parts.
 */
export interface SearchIssue extends Span {
  path: string[]
  code: 'too_long' | 'too_many' | 'too_deep' | 'invalid_format' | 'invalid_value'
  problem: SearchProblem
}

/** The kinds of errors: a limit, the value of a term, an operator or a parenthesis. */
export type SearchProblem =
  | ('length' | 'terms' | 'depth')
  | ('time' | 'date' | 'has' | 'level' | 'state' | 'meta' | 'nothing' | 'removed')
  | ('or' | 'open' | 'close' | 'empty')

/** A term, or a group in parentheses, that stands beside the others of its search. */
export interface SearchPart extends Span {
  /** Undefined for a group. */
  term: SearchTerm | undefined
}

export interface ParsedSearch {
  filters: SearchFilters
  issues: SearchIssue[]
  /** All terms, in the order of the text. */
  terms: SearchTerm[]
  /** The terms and groups outside of parentheses. */
  parts: SearchPart[]
  /** True if OR stands between these parts. */
  isAlternative: boolean
}

const LIST_TERMS = {
  channel: 'channels',
  source: 'sources',
  thread: 'threads',
  tag: 'tags',
  meta: 'metadata',
} as const

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/**
 * Parses a search like `channel:payments -tag:test user:"Ada L" meta:plan=pro has:icon level>=high
 * after:2h (refund OR "charged back") word -word`. A term without a known name is a word. AND binds
 * more tightly than OR. Terms with an issue are left out of the filters. Relative times end at
 * `nowMs`. `parseDate` parses the other times: by default, a date is one of UTC.
 */
export function parseSearch(
  text: string,
  nowMs = Date.now(),
  parseDate = parseIsoTimestamp,
): ParsedSearch {
  const parsed: ParsedSearch = {
    filters: noFilters(),
    issues: [],
    terms: [],
    parts: [],
    isAlternative: false,
  }
  if ([...text].length > MAX_LENGTH) {
    const span = { start: 0, end: text.length }
    parsed.issues.push({ ...span, path: [], code: 'too_long', problem: 'length' })
    return parsed
  }
  const next = createLexer(text)
  let isOver = false

  const fail = (
    { start, end }: Span,
    code: SearchIssue['code'],
    problem: SearchProblem,
    path: string[] = [],
  ) => parsed.issues.push({ start, end, path, code, problem })

  /** Reads up to the end of the text, or to the `)` that ends a group. */
  function readAlternatives(depth: number): { filters: SearchFilters[]; close: Token | undefined } {
    const alternatives: SearchFilters[] = []
    let groups: FilterGroup[] = []
    let filters = noFilters()
    let isEmpty = true
    let or: Token | undefined
    /** Ends an alternative at an OR, or at the end of the group. */
    const endAlternative = (at: Token | undefined) => {
      const lonely = or ?? at
      if (isEmpty && lonely) fail(lonely, 'invalid_format', 'or')
      for (const group of groups) addGroup(filters, group)
      if (!isEmpty) alternatives.push(filters)
      ;[filters, groups, isEmpty, or] = [noFilters(), [], true, at]
    }
    for (let token = next(); !isOver; token = next()) {
      if (!token || (token.kind === 'close' && depth > 0)) {
        endAlternative(undefined)
        return { filters: alternatives, close: token }
      }
      if (token.kind === 'close') fail(token, 'invalid_format', 'close')
      else if (token.kind === 'or') {
        if (depth === 0) parsed.isAlternative = true
        endAlternative(token)
      } else if (token.kind === 'open') {
        const group = readGroup(token, depth + 1)
        if (!group) continue
        isEmpty = false
        groups.push(group)
      } else if (token.kind === 'term') {
        isEmpty = false
        if (depth === 0) parsed.parts.push({ start: token.start, end: token.end, term: token })
        addTerm(filters, token)
      }
    }
    return { filters: alternatives, close: undefined }
  }

  function readGroup(open: Token & { kind: 'open' }, depth: number): FilterGroup | undefined {
    if (depth > MAX_DEPTH) {
      fail(open, 'too_deep', 'depth')
      isOver = true
      return undefined
    }
    const { filters, close } = readAlternatives(depth)
    if (isOver) return undefined
    if (!close) fail(open, 'invalid_format', 'open')
    const end = close?.end ?? text.length
    if (depth === 1) parsed.parts.push({ start: open.start, end, term: undefined })
    if (filters.length > 0) return { isExcluded: open.isExcluded, filters }
    if (close) fail({ start: open.start, end }, 'invalid_format', 'empty')
    return undefined
  }

  function addTerm(filters: SearchFilters, term: SearchTerm): void {
    parsed.terms.push(term)
    if (parsed.terms.length === MAX_TERMS + 1) fail(term, 'too_many', 'terms')
    if (parsed.terms.length > MAX_TERMS) return
    const { name, value, isQuoted, isExcluded } = term
    const sign = isExcluded ? 'not' : 'is'
    const addChoice = <Value extends string>(values: Value[], choices: readonly Value[]) => {
      const known = choices.find(one => one === value.toLowerCase())
      if (known) addOnce(values, known)
      else fail(term, 'invalid_value', name as 'has' | 'state', [name])
    }
    if (name === 'before' || name === 'after') {
      const ms = parseTimeAgo(value, nowMs) ?? parseDate(value)
      if (ms === undefined) {
        const problem = hasUnknownDate(value) ? 'date' : 'time'
        return void fail(term, 'invalid_format', problem, [name])
      }
      addBound(filters, (name === 'before') === isExcluded ? 'after' : 'before', ms)
    } else if (name === 'has') {
      addChoice(filters.has[sign], HAS_FIELDS)
    } else if (name.startsWith('level')) {
      const known = LEVELS.find(one => one === value.toLowerCase())
      if (!known || !['level', 'level>='].includes(name))
        return void fail(term, 'invalid_value', 'level', ['level'])
      const wanted = name === 'level' ? [known] : LEVELS.slice(toRank(known))
      for (const one of wanted) addOnce(filters.levels[sign], one)
    } else if (name === 'state') {
      addChoice(filters.states[sign], STATES)
    } else if (name === 'alike') {
      fail(term, 'invalid_value', 'removed', [name])
    } else if (name === 'meta' && !splitMetadata(value)) {
      fail(term, 'invalid_format', 'meta', ['meta'])
    } else if ((name === '' || (name === 'user' && !isQuoted)) && hasNothingToFind(value)) {
      fail(term, 'invalid_value', 'nothing', name === '' ? [] : [name])
    } else if (name === 'user') addOnce(filters.users[sign], isQuoted ? toQuotedUser(value) : value)
    else if (isListTerm(name)) addOnce(filters[LIST_TERMS[name]][sign], value)
    else addOnce((isQuoted ? filters.phrases : filters.words)[sign], value)
  }

  const { filters } = readAlternatives(0)
  const [only, ...others] = filters
  if (others.length > 0) addGroup(parsed.filters, { isExcluded: false, filters })
  else if (only) parsed.filters = only
  return parsed
}

/**
 * Returns the filters of a search that was saved. Undefined if a later version finds it invalid, so
 * that it matches nothing.
 */
export function parseSaved(text: string): SearchFilters | undefined {
  const { filters, issues } = parseSearch(text)
  return issues.length > 0 ? undefined : filters
}

/** Parses the time before `nowMs`, like `90m` or `2d`. */
function parseTimeAgo(value: string, nowMs: number): number | undefined {
  const [, count, unit] = /^(\d{1,4})([smhdw])$/i.exec(value) ?? []
  if (count === undefined || unit === undefined) return undefined
  return nowMs - Number(count) * UNITS_MS[unit.toLowerCase() as keyof typeof UNITS_MS]
}

/** Returns whether a time begins with a date that does not exist, such as February 30. */
function hasUnknownDate(value: string): boolean {
  const [date] = /^\d{4}-\d\d-\d\d/.exec(value) ?? []
  return date !== undefined && parseIsoTimestamp(date) === undefined
}

function isListTerm(name: string): name is keyof typeof LIST_TERMS {
  return Object.hasOwn(LIST_TERMS, name)
}
