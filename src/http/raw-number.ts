// Both runtimes have it; the compiler's library does not know it yet.
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
}

/** A number that JSON.stringify writes as `text`: JavaScript would write -0 as 0. It is an object, not a number. */
export function toRawNumber(text: string): object {
  return rawJSON(text)
}

export function isRawNumber(value: unknown): boolean {
  return isRawJSON(value)
}
