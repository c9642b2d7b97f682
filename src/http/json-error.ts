/** A literal or a number of JSON, or its beginning. */
const WORD = /[\w.+-]+/y
const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or the end'

/**
 * Returns where text stops being JSON, as `unexpected } in line 3, character 12`. No more than one
 * character is quoted, because the text can have secrets. The text must not be JSON.
 */
export function explainJson(text: string): string {
  const at = findEnd(text)
  const before = text.slice(0, at).split(/\r\n|[\n\r]/)
  const place = `in line ${before.length}, character ${((before.at(-1) ?? '').length + 1).toLocaleString('en')}`
  const [found] = text.slice(at, at + 2)
  if (found === undefined) return `it ends too early, ${place}`
  const isVisible = /[\p{L}\p{N}\p{P}\p{S}]/u.test(found)
  return `unexpected ${isVisible ? found : 'invisible character'} ${place}`
}

/** Returns the index of the first character that cannot continue the JSON before it. */
function findEnd(text: string): number {
  const open: string[] = []
  let expected: Expected = 'value'
  let at = 0
  for (;;) {
    while (' \t\n\r'.includes(text[at] ?? 'x')) at++
    const found = text[at] ?? ''
    if (found === '') return at
    if (expected === ', or the end') {
      const closer = open.at(-1)
      if (found === closer) open.pop()
      else if (found === ',' && closer) expected = closer === '}' ? 'name' : 'value'
      else return at
      at++
    } else if (expected === ':') {
      if (found !== ':') return at
      expected = 'value'
      at++
    } else if (found === '"') {
      const end = findStringEnd(text, at)
      if (text[end] !== '"') return end
      expected = expected.startsWith('name') ? ':' : ', or the end'
      at = end + 1
    } else if (expected.endsWith(` ${found}`)) {
      open.pop()
      expected = ', or the end'
      at++
    } else if (expected.startsWith('name')) return at
    else if (found === '{' || found === '[') {
      open.push(found === '{' ? '}' : ']')
      expected = found === '{' ? 'name or }' : 'value or ]'
      at++
    } else {
      WORD.lastIndex = at
      const [word = ''] = WORD.exec(text) ?? []
      if (!SCALAR.test(word)) return at
      expected = ', or the end'
      at += word.length
    }
  }
}

/** Returns the index of the closing quote, or of what a string cannot have. */
function findStringEnd(text: string, start: number): number {
  let at = start + 1
  for (; at < text.length && text[at] !== '"' && text.charCodeAt(at) >= 0x20; at++) {
    if (text[at] !== '\\') continue
    ESCAPE.lastIndex = at
    if (!ESCAPE.test(text)) return at
    at = ESCAPE.lastIndex - 1
  }
  return at
}
