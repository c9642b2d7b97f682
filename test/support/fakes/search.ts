import { parseSearch } from '../../../src/log/events/search-query.ts'
import { matchesFilters } from '../naive-search.ts'

const BUCKETS = 24
const HOUR_MS = 3_600_000

/** Returns the events of a fake log that a request asks for, newest first. */
export function findEvents(log: readonly any[], { searchParams }: URL): any[] {
  const search = Object.fromEntries(searchParams)
  const latest = new Map(log.map(({ threadSeq, seq }) => [threadSeq, seq]))
  const isListed = ({ threadSeq, seq }: any) =>
    search['threadSeq'] === undefined
      ? threadSeq === undefined || latest.get(threadSeq) === seq
      : threadSeq === Number(search['threadSeq'])
  return log.filter(event => isListed(event) && isSent(event, search)).reverse()
}

/** Returns true if a socket with this search gets the event. */
export function isSent(
  event: any,
  { q = '', from = '', to = '' }: Record<string, string>,
): boolean {
  const at = Date.parse(event.timestamp)
  const { filters } = parseSearch(q)
  return (
    matchesFilters({ description: '', ...event }, filters, new Map()) &&
    !(at < Date.parse(from)) &&
    !(at >= Date.parse(to))
  )
}

/** Returns the histogram that a request asks for. */
export function countEvents(log: readonly any[], url: URL) {
  const nowMs = Date.parse(url.searchParams.get('to') ?? '') || Date.now()
  const fromMs =
    Date.parse(url.searchParams.get('from') ?? '') ||
    Math.floor(nowMs / HOUR_MS + 1 - BUCKETS) * HOUR_MS
  const stepMs = Math.max(1_000, Math.ceil((nowMs - fromMs) / BUCKETS / 1_000) * 1_000)
  const counts = Array.from({ length: BUCKETS }, () => 0)
  const found = findEvents(log, url)
  for (const { timestamp } of found) {
    const at = Math.floor((Date.parse(timestamp) - fromMs) / stepMs)
    if (counts[at] !== undefined) counts[at] += 1
  }
  return {
    from: new Date(fromMs).toISOString(),
    to: new Date(fromMs + BUCKETS * stepMs).toISOString(),
    stepMs,
    total: found.length,
    channels: [{ id: 'chn_1', name: 'payments', counts }],
    others: counts.map(() => 0),
    isPartial: false,
    completeSince: null,
  }
}
