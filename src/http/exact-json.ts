// Bun and Deno have these; the compiler's library does not know them yet.
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
}

/**
 * Matches a number that JavaScript may write in another way than JSON text does: one with 16 digits or an exponent, one
 * that ends in `.0` or `.10`, one below a millionth, and -0. A text that looks like one matches, too.
 */
const OTHER_SPELLING =
  /[[:,\s](?:-?\d(?:[\d.]{15}|[\d.]*[eE][+-]?\d|\d*\.\d*0(?=[\s,\]}])|\.0{6})|-0(?=[\s,\]}]))/

/**
 * Parses JSON so that `JSON.stringify` writes every number as `text` has it. A number that JavaScript would write in
 * another way becomes an object, see `isRawNumber`. Throws `SyntaxError`.
 */
export function parseExact(text: string): unknown {
  return OTHER_SPELLING.test(text) ? JSON.parse(text, keepSpelling) : JSON.parse(text)
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

export function isRawNumber(value: unknown): value is object {
  return isRawJSON(value)
}

/** The text of a raw number. */
export function toNumberText(raw: object): string {
  return JSON.stringify(raw)
}

/** A raw number as a JavaScript number; an integer that would lose digits becomes NaN, which no rule accepts. */
export function toNumber(raw: object): number {
  const text = toNumberText(raw)
  const value = Number(text)
  return /^-?\d+$/.test(text) && !Number.isSafeInteger(value) ? NaN : value
}
