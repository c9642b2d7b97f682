/** Makes a value of a number from its JSON text. */
export type ParseNumber = (text: string) => unknown

type Context = { source?: string }

/** A JSON string, or a number. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g
/** Begins the strings that stand for numbers. The server refuses text that contains it. */
const MARK = '\u0000'

// Node 20 and older browsers lack both.
const { rawJSON } = JSON as { rawJSON?: (text: string) => object }
let hasSource = false
JSON.parse('0', (_key, _value, context?: Context) => {
  hasSource = context?.source === '0'
})

/**
 * Parses JSON. `parseNumber` makes a value of each number that JavaScript would write differently.
 * Throws a SyntaxError.
 */
export function parseJson(text: string, parseNumber: ParseNumber = toExactValue): unknown {
  const revive = (source: string) => {
    const value = Number(source)
    return String(value) === source ? value : parseNumber(source)
  }
  if (hasSource) {
    return JSON.parse(text, (_key, value, context?: Context) =>
      typeof value === 'number' ? revive(context?.source ?? `${value}`) : value,
    )
  }
  const marked = text.replace(TOKEN, token => (token[0] === '"' ? token : `"\\u0000${token}"`))
  return JSON.parse(marked, (_key, value) =>
    typeof value === 'string' && value[0] === MARK ? revive(value.slice(1)) : value,
  )
}

/** Returns JSON, in which a bigint is a number. */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value, (_key, one) => {
    if (typeof one !== 'bigint') return one
    return rawJSON ? rawJSON(`${one}`) : `${MARK}${one}n`
  })
  return rawJSON ? text : text?.replace(/"\\u0000(-?\d+)n"/g, '$1')
}

/** A number if that has the same value, else a bigint for an integer, and text for the others. */
function toExactValue(text: string): number | bigint | string {
  const value = Number(text)
  if (toCanonical(`${value}`) === toCanonical(text)) return value
  return /^-?\d+$/.test(text) ? BigInt(text) : text
}

/** Returns the significant digits of a number with a power of ten: `15e-1` for `-1.50`. */
function toCanonical(text: string): string {
  const [mantissa = '', exponent = '0'] = text.replace(/^-/, '').toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  let start = 0
  let end = digits.length
  while (digits[start] === '0') start++
  // A regular expression would be slow with many zeros inside.
  while (end > start && digits[end - 1] === '0') end--
  if (start === end) return '0'
  return `${digits.slice(start, end)}e${+exponent - fraction.length + digits.length - end}`
}
