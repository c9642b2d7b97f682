import { toDateTime } from './time.ts'

const HOUR_MS = 3_600_000

/** The start of the last `hours` whole hours (UTC), the present one included. */
export function toHoursStart(hours: number): number {
  return (Math.floor(Date.now() / HOUR_MS) + 1 - hours) * HOUR_MS
}

/** The same in a sentence, after what is counted by the hour. */
export function toSince(hours: number): string {
  return `since ${toDateTime(toHoursStart(hours))}`
}

/** A text of the server, with its ISO 8601 times as the reader writes them. */
export function toReaderTimes(text: string): string {
  return text.replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, time => toDateTime(Date.parse(time)))
}
