// Bun, Deno and browsers implement these; TypeScript does not declare them yet. Browsers
// from before 2025 lack them, and give revivers no source.
const json = JSON as unknown as {
  rawJSON(text: string): object
  isRawJSON?(value: unknown): boolean
}

/** Matches text that Postgres reads as a number. */
const NUMBER = /^-?\d{1,100}(\.\d{1,100})?(e[+-]?\d{1,4})?$/i

/**
 * Matches numbers that JavaScript may spell differently than the JSON text: those with 16 digits or
 * an exponent, those that end in `.0` or `.10`, those below a millionth, and -0. Strings that look
 * like such a number match, too.
 */
const RESPELLED_NUMBER =
  /[[:,\s](?:-?\d(?:[\d.]{15}|[\d.]*[eE][+-]?\d|\d*\.\d*0(?=[\s,\]}])|\.0{6})|-0(?=[\s,\]}]))/

/**
 * Parses JSON so that `JSON.stringify` writes every number as `text` spells it. Numbers that
 * JavaScript would spell differently become objects, see `isRawNumber`; `hasRawNumbers` is false if
 * there are none. Throws `SyntaxError`.
 */
export function parseExact(text: string): { value: unknown; hasRawNumbers: boolean } {
  const hasRawNumbers = RESPELLED_NUMBER.test(text)
  return { value: hasRawNumbers ? JSON.parse(text, keepSpelling) : JSON.parse(text), hasRawNumbers }
}

function keepSpelling(
  this: unknown,
  _key: string,
  value: unknown,
  context?: { source?: string },
): unknown {
  const { source } = context ?? {}
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value
  return toRawNumber(source)
}

/** Returns an object that `JSON.stringify` writes as `text`, a number. */
export function toRawNumber(text: string): object {
  return json.rawJSON(text)
}

/** Returns whether a parsed value is an object that `parseExact` made of a number. */
export function isRawNumber(value: unknown): value is object {
  return json.isRawJSON?.(value) ?? false
}

/** Returns the text of a raw number. */
export function toNumberText(raw: object): string {
  return JSON.stringify(raw)
}

/** Returns whether text is a number that can be compared by its value. */
export function isNumberText(text: string): boolean {
  return NUMBER.test(text)
}

/** Returns the significant digits of a JSON number with a power of ten: `-15e-1` for `-1.50`. */
export function toCanonicalNumber(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const sign = mantissa.startsWith('-') ? '-' : ''
  const [whole = '', fraction = ''] = mantissa.slice(sign.length).split('.')
  const digits = whole + fraction
  let first = 0
  let end = digits.length
  while (digits[first] === '0') first++
  while (end > first && digits[end - 1] === '0') end--
  if (first === end) return `${sign}0`
  return `${sign}${digits.slice(first, end)}e${Number(exponent) - fraction.length + digits.length - end}`
}

/**
 * Converts a raw number. An integer that would lose digits becomes NaN, which no validation rule
 * accepts.
 */
export function toNumber(raw: object): number {
  const text = toNumberText(raw)
  const value = Number(text)
  return /^-?\d+$/.test(text) && !Number.isSafeInteger(value) ? NaN : value
}
