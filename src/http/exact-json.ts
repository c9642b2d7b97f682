// Bun and Deno implement these; TypeScript does not declare them yet.
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
}

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
  return rawJSON(source)
}

/** Returns whether a parsed value is an object that `parseExact` made of a number. */
export function isRawNumber(value: unknown): value is object {
  return isRawJSON(value)
}

/** Returns the text of a raw number. */
export function toNumberText(raw: object): string {
  return JSON.stringify(raw)
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
