/** A place in a file that breaks a rule of the house's English. */
export interface Fault {
  line: number
  /** The sentence or the line. */
  text: string
}

/** A run of words that a reader sees as one text. */
interface Passage {
  line: number
  text: string
}

/** The longest line with a comment, indentation included. */
const MAX_WIDTH = 100

/** The beginning of a sentence whose subject is a relative clause. */
const RELATIVE =
  /^(?:who|whoever|whom|whose|what|whatever|where|wherever|which|whichever|that|whether) (?=[\w`'"$%{(])/i

/** A text such as `That is all.`, which is no relative clause. Comments have no need of it. */
const DEMONSTRATIVE = /^That is /

/** A rule's number at the beginning of a test title. */
const CITATION =
  /^(?:(?:contract|design|dashboard(?:\.md)?|delivery(?:\.md)?|reliability|research|case|clock|RFC)(?![a-z]))?[\s§\d.,:-]*/

/** Finds sentences that begin with a relative clause, and comments that are too wide. */
export function findFaults(path: string, text: string): Fault[] {
  if (path.endsWith('.md')) {
    return listSentences(listParagraphs(text)).filter(({ text: one }) => /^[A-Z]/.test(one))
  }
  const comments = listComments(path, text)
  const faults = listSentences(comments.passages)
  for (const [index, line] of text.split('\n').entries()) {
    const isWide = [...line].length > MAX_WIDTH && comments.lines.has(index + 1)
    if (isWide && !/https?:\/\/\S{60}/.test(line)) faults.push({ line: index + 1, text: line })
  }
  if (path.endsWith('.sql')) return faults
  return [...faults, ...listTexts(comments.code, path.endsWith('.test.ts'))]
}

/** Sentences of the passages that begin with a relative clause. */
function listSentences(passages: readonly Passage[]): Fault[] {
  return passages.flatMap(({ line, text }) =>
    text
      .split(/(?<=[.!?:][)"'`*]*)\s+/)
      .map(sentence => sentence.replace(/^[\s*_("'-]+/, ''))
      .filter((one, nth) => (nth === 0 || /^[A-Z]/.test(one)) && isRelative(one))
      .map(sentence => ({ line, text: sentence })),
  )
}

/** Returns true for a sentence that begins with a relative clause. A question may. */
function isRelative(sentence: string): boolean {
  return RELATIVE.test(sentence) && !sentence.trimEnd().endsWith('?')
}

/** Paragraphs, list items and table cells of Markdown, without code blocks. */
function listParagraphs(text: string): Passage[] {
  const passages: Passage[] = []
  let isCode = false
  let isOpen = false
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(?:```|~~~)/.test(line)) isCode = !isCode
    const isStart = isCode || /^\s*(?:[#>|`~*+-]|\d+\.|$)/.test(line)
    if (isStart) isOpen = false
    if (isCode || line.trim() === '') continue
    const last = passages.at(-1)
    if (isOpen && last) last.text += ` ${line.trim()}`
    else {
      const cells = /^\s*\|/.test(line)
        ? line.split('|')
        : [line.replace(/^[\s#>*+-]+|^\s*\d+\. /, '')]
      passages.push(...cells.map(cell => ({ line: index + 1, text: cell.trim() })))
    }
    isOpen = !/^\s*[#|]/.test(line)
  }
  return passages
}

/** Comments as passages, the lines that contain one, and the code with blanks in their place. */
function listComments(path: string, text: string) {
  const passages: Passage[] = []
  const lines = new Set<number>()
  const code: string[] = []
  const start = path.endsWith('.sql') ? /^(\s*)(--)(.*)$/ : /^(\s*)(\/\/|\/\*+|\*)(.*)$/
  const trailing = path.endsWith('.sql') ? /^(.*\s)(--)(\s.*)$/ : /^(.*\s)(\/\/|\/\*+)(\s.*)$/
  let isBlock = false
  let isOpen = false
  for (const [index, line] of text.split('\n').entries()) {
    const [, before, mark = '', after = ''] =
      (isBlock || !line.trim().startsWith('*') ? start.exec(line) : null) ??
      trailing.exec(line) ??
      []
    if (before === undefined) {
      isOpen = false
      code.push(line)
      continue
    }
    lines.add(index + 1)
    code.push(before)
    const words = after.replace(/\*\/.*$/, '').trim()
    const last = passages.at(-1)
    const isOwn = before.trim() === ''
    if (isOpen && isOwn && !mark.startsWith('/*') && words !== '' && last) last.text += ` ${words}`
    else passages.push({ line: index + 1, text: words })
    if (mark.startsWith('/*')) isBlock = true
    if (line.includes('*/')) isBlock = false
    isOpen = isOwn && words !== '' && (isBlock || !line.includes('*/'))
  }
  return { passages, lines, code: code.join('\n') }
}

/** Texts of code that a reader sees: test titles, strings with several words, and JSX. */
function listTexts(code: string, isTest: boolean): Fault[] {
  const faults: Fault[] = []
  const lineOf = (index: number) => code.slice(0, index).split('\n').length
  const titles = /(?:\b(?:test|describe)(?:\.\w+)?|[\])])\(\s*(['"`])((?:\\.|(?!\1)[^\\])+)\1/g
  for (const { index, 0: call, 2: title = '' } of isTest ? code.matchAll(titles) : []) {
    const line = lineOf(index + call.length - title.length - 1)
    if (isRelative(title.replace(CITATION, ''))) faults.push({ line, text: title })
  }
  const strings = /(?:['"`]|>\s*|\n\s+)([A-Z][a-z]+ (?:[a-z]|\$\{)[^'"`<\n]* [^'"`<\n]*)/g
  for (const { index, 0: match, 1: text = '' } of code.matchAll(strings)) {
    const line = lineOf(index + match.length - text.length)
    if (isRelative(text) && !DEMONSTRATIVE.test(text)) faults.push({ line, text: text.trim() })
  }
  return faults
}
