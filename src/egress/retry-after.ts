const SECOND = 1_000
const LONGEST_MS = 24 * 3_600 * SECOND
// The dates of RFC 9110, of which nobody but the first is written any more.
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/

/** What a Retry-After header asks for, in ms, at most 24 hours; undefined for one that is neither seconds nor a date. */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  const value = text?.trim() ?? ''
  const ms = /^\d{1,12}(\.\d+)?$/.test(value)
    ? Math.ceil(Number(value) * SECOND)
    : HTTP_DATE.test(value)
      ? Date.parse(value) - nowMs
      : NaN
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_MS)
}
