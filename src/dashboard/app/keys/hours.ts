const HOUR_MS = 3_600_000

/** Requests in an hour, which began `atMs` after 1970. */
export interface Hour {
  atMs: number
  requests: number
}

/** Numbers of which the last one is of the hour that is running, with the beginnings of their hours. */
export function toHours(counts: readonly number[], nowMs: number): Hour[] {
  const running = Math.floor(nowMs / HOUR_MS)
  return counts.map((requests, at) => ({
    atMs: (running - counts.length + 1 + at) * HOUR_MS,
    requests,
  }))
}

/** How many there were, and the hour in which there were most. */
export function summarize(hours: readonly Hour[]): { sum: number; busiest: Hour | undefined } {
  const sum = hours.reduce((total, { requests }) => total + requests, 0)
  const most = Math.max(...hours.map(({ requests }) => requests))
  return { sum, busiest: sum > 0 ? hours.find(({ requests }) => requests === most) : undefined }
}
