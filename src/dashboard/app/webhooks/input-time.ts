/** A moment as inputs of type datetime-local hold it, by the reader's clock. */
export function toInputTime(atMs: number): string {
  const date = new Date(atMs)
  return new Date(atMs - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** The moment that such an input holds, for the server; what is none stays as it is. */
export function fromInputTime(text: string): string {
  const date = new Date(text)
  return Number.isNaN(date.getTime()) ? text : date.toISOString()
}
