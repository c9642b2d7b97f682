/** The value of a datetime-local input for a time, in local time. */
export function toInputTime(atMs: number): string {
  const date = new Date(atMs)
  return new Date(atMs - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** The ISO 8601 time of a datetime-local input. Invalid input is returned as it is. */
export function fromInputTime(text: string): string {
  const date = new Date(text)
  return Number.isNaN(date.getTime()) ? text : date.toISOString()
}
