import { useEffect, useState } from 'preact/hooks'
import type { Event } from '../../../log/events/schema.ts'
import type { Neighbours } from '../../../log/events/search-schema.ts'
import { toApiPath } from '../api-paths.ts'
import type { Row } from '../feed/log.ts'
import { request, type Result, type Failure } from '../request.ts'

export type Opened =
  | { kind: 'loading' }
  | { kind: 'loaded'; event: Event }
  | { kind: 'failed'; failure: Failure; retry(): void }

/** Loads one event with all its fields. */
export function useEvent(project: string, id: string): Opened {
  const [opened, setOpened] = useState<Opened>({ kind: 'loading' })
  useEffect(() => {
    let isOver = false
    const read = async () => {
      setOpened({ kind: 'loading' })
      const result = await request<Event>('GET', toEventApiPath(project, id))
      if (isOver) return
      setOpened(
        result.ok
          ? { kind: 'loaded', event: result.data }
          : { kind: 'failed', failure: result.failure, retry: () => void read() },
      )
    }
    void read()
    return () => {
      isOver = true
    }
  }, [project, id])
  return opened
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
  const [found, setFound] = useState<NeighbourIds & { id: string }>()
  const newer = at < 0 ? undefined : rows[at - 1]?.id
  const older = at < 0 ? undefined : rows[at + 1]?.id
  const isWanted =
    id !== undefined && (at < 0 || (!isSearch && (newer === undefined || older === undefined)))
  useEffect(() => {
    if (!isWanted || id === undefined) return
    let isOver = false
    void request<Neighbours>('GET', `${toEventApiPath(project, id)}/neighbours`).then(result => {
      if (isOver || !result.ok) return
      const { newer, older } = result.data
      setFound({ id, newer: newer?.id, older: older?.id })
    })
    return () => {
      isOver = true
    }
  }, [project, id, isWanted])
  const known = isWanted && found?.id === id ? found : undefined
  return { newer: newer ?? known?.newer, older: older ?? known?.older }
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
