/** The days that somebody typed: none is for ever, and what is no number goes to the server as it is, to be refused. */
export function parseRetentionDays(typed: string): number | string | null {
  const text = typed.trim()
  if (text === '') return null
  const days = Number(text)
  return Number.isFinite(days) ? days : text
}
