/** Parses a number of days. Empty means forever (null). Invalid text is returned as it is. */
export function parseRetentionDays(typed: string): number | string | null {
  const text = typed.trim()
  if (text === '') return null
  const days = Number(text)
  return Number.isFinite(days) ? days : text
}
