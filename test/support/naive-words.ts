import { foldText, isLetter, isUnspaced } from '../unicode-tables.ts'

/** Letters of one kind of script, next to each other. */
interface Run {
  text: string
  isUnspaced: boolean
}

const OPENING = /^[[\]("'{ ¡«¿‘-‟‹›〈-】（]+/u
const CLOSING = /[[\])"'} .,;:!?»‘-‟…‹›、。〈-】！），：；？]+$/u

/** Returns true if a text has every word of a query, in the simplest code. */
export function matchesText(text: string, query: string): boolean {
  const terms = query.split(/\s+/).map(toTerm)
  const hasWords = terms.some(term => splitRuns(term).length > 0)
  const wanted = terms.filter(term => (hasWords ? splitRuns(term).length > 0 : term !== ''))
  return wanted.length > 0 && wanted.every(term => hasTerm(foldSpaced(text), term))
}

function toTerm(word: string): string {
  const folded = foldSpaced(word).replace(/^ | $/g, '')
  return folded.replace(OPENING, '').replace(CLOSING, '') || folded
}

/** Folds a text. White space is one space, and control characters count as such. */
function foldSpaced(text: string): string {
  return foldText(text).replace(/[\u0001-\u0020\u0085\u00a0\u3000]+/g, ' ')
}

function hasTerm(text: string, term: string): boolean {
  const characters = [...term]
  const isPhrase = [characters[0], characters.at(-1)].every(one => isLetter(one ?? ''))
  if (!isPhrase) return isWritten(text, term)
  const runs = splitRuns(text)
  // A version is also found without its v.
  const others = runs.map(one => ({ ...one, text: one.text.replace(/^v(?=[0-9])/, '') }))
  return [runs, others].some(one => hasPhrase(one, splitRuns(term)))
}

function hasPhrase(runs: Run[], wanted: Run[]): boolean {
  return runs.some((_, from) =>
    wanted.every((one, n) => {
      const run = runs[from + n]
      if (!run || run.isUnspaced !== one.isUnspaced) return false
      const isFirst = n === 0
      const isLast = n === wanted.length - 1
      if (one.isUnspaced && isFirst && isLast) return run.text.includes(one.text)
      if (one.isUnspaced && isFirst) return run.text.endsWith(one.text)
      return isLast ? run.text.startsWith(one.text) : run.text === one.text
    }),
  )
}

/** Returns true if a text has a term with its symbols, not in the middle of a word. */
function isWritten(text: string, term: string): boolean {
  const isSpaced = (one = '') => isLetter(one) && !isUnspaced(one)
  for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + 1)) {
    const before = [...text.slice(0, at)].at(-1)
    if (!isSpaced([...term][0]) || !isSpaced(before)) return true
  }
  return false
}

function splitRuns(text: string): Run[] {
  const runs: Run[] = []
  let isInside = false
  for (const one of text) {
    const last = runs.at(-1)
    if (!isLetter(one)) isInside = false
    else if (isInside && last?.isUnspaced === isUnspaced(one)) last.text += one
    else {
      runs.push({ text: one, isUnspaced: isUnspaced(one) })
      isInside = true
    }
  }
  return runs
}
