import { parseTyped } from '../feed/reader-dates.ts'
import { withoutPart } from '../feed/search.ts'
import { SEARCH_KEYS } from '../../../log/events/search-lexer.ts'

/** The part of a search that is being typed. */
export interface Fragment {
  /** The range that a suggestion replaces: offsets of UTF-16 units. */
  start: number
  end: number
  /** A minus, or nothing. */
  sign: string
  /** The filter; empty for a word. */
  key: Key | ''
  /** The typed part of the value, without quotes. */
  value: string
}

/** The filters, in the order in which they are suggested. */
export const KEYS = SEARCH_KEYS.flatMap(key =>
  key === 'level' ? ([key, 'level>='] as const) : [key],
)
export type Key = (typeof KEYS)[number]

/** The text before the value of a filter. */
export function toPrefix(key: Key): string {
  return key === 'level>=' ? key : `${key}:`
}

// A minus, a name and the beginning of a value, up to the caret.
const TYPED = /(?:^|[\s(])(-?)([a-z]+:|level>=)?(?:"((?:[^"\\]|\\.)*)|([^\s"()]*))$/i

/** Returns whether the term at the caret is not complete yet, so that its search waits. */
export function isUnfinished({
  value,
  selectionEnd,
}: Pick<HTMLInputElement, 'value' | 'selectionEnd'>): boolean {
  const caret = selectionEnd ?? value.length
  return (
    /[:=]"?$/.test(value.slice(0, caret)) ||
    parseTyped(value).issues.some(
      ({ problem, start, end }) =>
        problem === 'or' || problem === 'open' || (start < caret && caret <= end),
    )
  )
}

/** Finds the term at the caret. Returns undefined within a phrase or after a whole quoted value. */
export function findFragment(text: string, caret: number): Fragment | undefined {
  const before = text.slice(0, caret)
  // An even number of quotes is closed.
  const isQuoted = (before.match(/(?<!\\)"/g) ?? []).length % 2 === 1
  const [all, sign = '', name = '', quoted, plain = ''] = TYPED.exec(before) ?? []
  if (all === undefined || (quoted !== undefined) !== isQuoted) return undefined
  const key = KEYS.find(one => toPrefix(one) === name.toLowerCase())
  if (quoted !== undefined && !key) return undefined
  const start = caret - all.length + (/^[\s(]/.test(all) ? 1 : 0)
  const [rest = ''] = (isQuoted ? /^[^"]*"?/ : /^[^\s()]*/).exec(text.slice(caret)) ?? []
  return {
    start,
    end: caret + rest.length,
    sign,
    key: key ?? '',
    value: quoted ?? (key || name === '' ? plain : `${name}${plain}`),
  }
}

/** Replaces the times of a search that a reader typed. */
export function withTimes(text: string, times: string): string {
  const { parts, isAlternative } = parseTyped(text)
  if (isAlternative) return times === '' ? text : `(${text}) ${times}`
  const former = parts.filter(({ term }) => /^(after|before)$/.test(term?.name ?? ''))
  return [former.reduceRight(withoutPart, text), times].filter(Boolean).join(' ')
}

/** Replaces a fragment. The caret comes after a space, unless the term needs more. */
export function applySuggestion(
  text: string,
  { start, end, sign }: Fragment,
  { term, isWhole }: { term: string; isWhole: boolean },
): { text: string; caret: number } {
  const after = text.slice(end)
  const gap = isWhole && !/^[\s)]/.test(after) ? ' ' : ''
  const inserted = `${sign}${term}${gap}`
  const skipped = isWhole && gap === '' && after.startsWith(' ') ? 1 : 0
  return {
    text: `${text.slice(0, start)}${inserted}${after}`,
    caret: start + inserted.length + skipped,
  }
}
