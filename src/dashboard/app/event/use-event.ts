import type { Event } from '../../../log/events/schema.ts'
import type { Neighbours } from '../../../log/events/search-schema.ts'
import { toApiPath } from '../api-paths.ts'
import type { Row } from '../feed/log.ts'
import { useQuery, type Query } from '../components/use-query.ts'
import { request, type Result } from '../request.ts'

/** Loads one event with all its fields. */
export function useEvent(project: string, id: string): Query<Event> {
  const path = toEventApiPath(project, id)
  return useQuery(path, () => request<Event>('GET', path))
}

export interface NeighbourIds {
  newer: string | undefined
  older: string | undefined
}

/** The next newer and older events, in the list if it contains the event, else in the log. */
export function useNeighbours(
  project: string,
  id: string | undefined,
  rows: readonly Row[],
  isSearch: boolean,
): NeighbourIds {
  const at = rows.findIndex(row => row.id === id)
  const newer = at < 0 ? undefined : rows[at - 1]?.id
  const older = at < 0 ? undefined : rows[at + 1]?.id
  const isWanted =
    id !== undefined && (at < 0 || (!isSearch && (newer === undefined || older === undefined)))
  const path = `${toEventApiPath(project, id ?? '')}/neighbours` as const
  const { data } = useQuery(isWanted ? path : undefined, () => request<Neighbours>('GET', path))
  return { newer: newer ?? data?.newer?.id, older: older ?? data?.older?.id }
}

export function deleteEvent(project: string, id: string): Promise<Result<unknown>> {
  return request('DELETE', toEventApiPath(project, id))
}

export function restoreEvent(project: string, id: string): Promise<Result<unknown>> {
  return request('POST', `${toEventApiPath(project, id)}/restore`)
}

export function toEventApiPath(project: string, id: string): `/api/${string}` {
  return `${toApiPath(project)}/events/${encodeURIComponent(id)}`
}
