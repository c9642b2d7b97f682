import type { ReadonlySignal } from '@preact/signals'
import type { Histogram } from '../../../log/events/search-schema.ts'
import { useQuery, type Query } from '../components/use-query.ts'
import { request } from '../request.ts'
import { toQuery, type Search } from './search.ts'

/** How long the bars may lag behind the rows. */
const REFRESH_MS = 10_000
/** A chart that ends now moves by one bar. */
const MIN_EVERY_MS = 60_000

/** Counts the matches of a search over time, again when new events arrive. */
export function useHistogram(
  project: string,
  search: Search,
  newestSeq: ReadonlySignal<number | undefined>,
): Query<Histogram> {
  const { channelId, text, from, to } = search
  return useQuery(
    JSON.stringify([project, channelId, text, from, to]),
    () =>
      request('GET /api/projects/:projectId/histogram', {
        projectId: project,
        ...toQuery(search, Date.now()),
      }),
    {
      when: newestSeq,
      pauseMs: REFRESH_MS,
      everyMs: ({ stepMs }) => (to === undefined ? Math.max(stepMs, MIN_EVERY_MS) : undefined),
    },
  )
}
