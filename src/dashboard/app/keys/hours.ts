const HOUR_MS = 3_600_000

/** The requests in an hour that starts at `atMs`, in Unix time. */
export interface Hour {
  atMs: number
  requests: number
}

/** Adds the start of its hour to each count. The last count is for the current hour. */
export function toHours(counts: readonly number[], nowMs: number): Hour[] {
  const running = Math.floor(nowMs / HOUR_MS)
  return counts.map((requests, at) => ({
    atMs: (running - counts.length + 1 + at) * HOUR_MS,
    requests,
  }))
}

/** The total, and the hour with the most requests. */
export function summarize(hours: readonly Hour[]): { sum: number; busiest: Hour | undefined } {
  const sum = hours.reduce((total, { requests }) => total + requests, 0)
  const most = Math.max(...hours.map(({ requests }) => requests))
  return { sum, busiest: sum > 0 ? hours.find(({ requests }) => requests === most) : undefined }
}
