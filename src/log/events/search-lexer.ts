// Splits a search into terms, operators and parentheses. Pure: it also runs in the browser.

/** The names of filters, in the order in which they are suggested. */
export const SEARCH_KEYS = [
  ...(['channel', 'tag', 'user', 'source', 'level', 'state', 'thread'] as const),
  ...(['meta', 'has', 'after', 'before'] as const),
]
export type SearchKey = (typeof SEARCH_KEYS)[number]

const SPACE = /\s*/uy
const OPEN = /(-?)\(/uy
const OPERATOR = /(OR|AND)(?=[\s()]|$)/uy
// A minus, a known name, and a value. The value is in quotes, with \ as the escape, or ends at a
// space.
const TERM = new RegExp(
  String.raw`(-?)((?:${SEARCH_KEYS.join('|')}|alike):|level[<>=]+(?![<>=]))?(?:"((?:[^"\\]|\\.)*)(?:"|\\?$)|(\S+))`,
  'isuy',
)

// A value of metadata with its own quotes: meta:order.name="x y".
const PAIR = /(-?)meta:([^\s"=]+=)"((?:[^"\\]|\\.)*)(?:"|\\?$)/isuy

/** One condition, like `-tag:test` or `word`. `start` and `end` are offsets of UTF-16 units. */
export interface SearchTerm {
  start: number
  end: number
  /** A known name in lower case, `level` also with an operator; empty for a word or a phrase. */
  name: string
  value: string
  isQuoted: boolean
  isExcluded: boolean
}

export type Token =
  | ({ kind: 'term' } & SearchTerm)
  | { kind: 'open'; start: number; end: number; isExcluded: boolean }
  | { kind: 'close' | 'or'; start: number; end: number }

/**
 * Returns a function that returns the next token; undefined at the end. OR and AND are operators in
 * capital letters, and AND is left out, because it changes nothing. A `)` ends a word, unless its
 * `(` is in the word. Quotes without a value are left out.
 */
export function createLexer(text: string): () => Token | undefined {
  let at = 0

  /** Matches an expression where the last token ended. */
  function match(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = at
    return expression.exec(text) ?? undefined
  }

  function readTerm(start: number): Token | undefined {
    const pair = match(PAIR)
    if (pair) {
      const [all, minus, path = '', value = ''] = pair
      at = start + all.length
      const base = { start, end: at, isQuoted: true, isExcluded: minus === '-' }
      return { kind: 'term', ...base, name: 'meta', value: path + unescape(value) }
    }
    const found = match(TERM)
    if (!found) return undefined
    const [all, minus, prefix = '', quoted, plain = ''] = found
    const name = prefix.replace(/:$/, '').toLowerCase()
    const isQuoted = quoted !== undefined
    const length = isQuoted ? all.length : all.length - plain.length + findEnd(plain)
    at = start + length
    const base = { start, end: at, isQuoted, isExcluded: minus === '-' }
    if (isQuoted) {
      const value = unescape(quoted)
      return { kind: 'term', ...base, name, value }
    }
    const value = plain.slice(0, length - (all.length - plain.length))
    if (value !== '') return { kind: 'term', ...base, name, value }
    // A name or a minus right before `)` is a word, as at the end of the text.
    return name === ''
      ? { kind: 'term', ...base, isExcluded: false, name, value: minus ?? '' }
      : { kind: 'term', ...base, name: '', value: prefix }
  }

  return function next() {
    for (;;) {
      at += match(SPACE)?.[0].length ?? 0
      const start = at
      if (start >= text.length) return undefined
      if (text[start] === ')') return { kind: 'close', start, end: ++at }
      const open = match(OPEN)
      if (open) {
        at += open[0].length
        return { kind: 'open', start, end: at, isExcluded: open[1] === '-' }
      }
      const operator = match(OPERATOR)
      if (operator) {
        at += operator[0].length
        if (operator[1] === 'OR') return { kind: 'or', start, end: at }
        continue
      }
      const term = readTerm(start)
      if (term?.kind === 'term' && term.value.trim() === '') continue
      return term
    }
  }
}

function unescape(text: string): string {
  return text.replace(/\\(.)/gsu, '$1')
}

/** Returns where a word ends: before the first `)` without a `(` in the word. */
export function findEnd(plain: string): number {
  let open = 0
  for (let n = 0; n < plain.length; n++) {
    if (plain[n] === '(') open++
    else if (plain[n] === ')' && --open < 0) return n
  }
  return plain.length
}
