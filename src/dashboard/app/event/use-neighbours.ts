import { useEffect } from 'preact/hooks'
import { useQuery } from '../components/query.tsx'
import type { Row } from '../feed/log.ts'
import { request } from '../request.ts'

export interface NeighbourIds {
  newer: string | undefined
  older: string | undefined
}

/**
 * The next newer and older events, in the list if it contains the event, else in the log. A search
 * reads on by `readOlder`.
 */
export function useNeighbours(
  project: string,
  id: string | undefined,
  rows: readonly Row[],
  isSearch: boolean,
  readOlder: () => Promise<void>,
): NeighbourIds {
  const at = rows.findIndex(row => row.id === id)
  const newer = at < 0 ? undefined : rows[at - 1]?.id
  const older = at < 0 ? undefined : rows[at + 1]?.id
  const isWanted =
    id !== undefined && (at < 0 || (!isSearch && (newer === undefined || older === undefined)))
  useEffect(() => {
    if (isSearch && at >= 0 && older === undefined) void readOlder()
  }, [id, rows])
  const { data } = useQuery(isWanted ? `${project} ${id}` : undefined, () =>
    request('GET /api/projects/:projectId/events/:eventId/neighbours', {
      projectId: project,
      eventId: id ?? '',
    }),
  )
  return { newer: newer ?? data?.newer?.id, older: older ?? data?.older?.id }
}
