import type { Static } from '@sinclair/typebox'
import { useEffect, useState } from 'preact/hooks'
import type { Delivery, EventDeliveries } from '../../../delivery/outbox/schema.ts'
import { request, type Result, type Failure } from '../request.ts'
import { toEventApiPath } from './use-event.ts'

type Deliveries = Static<typeof EventDeliveries>

const PAGE_SIZE = 100
const MIN_REFRESH_MS = 1_000
const MAX_REFRESH_MS = 30_000
/** The maximum number of automatic refreshes while deliveries are pending. */
const MAX_REFRESHES = 40

export interface DeliveriesQuery {
  /** Undefined until loaded. */
  data: Deliveries | undefined
  failure: Failure | undefined
  /** Loads again and restarts the automatic refresh. */
  read(): void
  readMore(): void
}

/** Loads the deliveries of an event, and refreshes them with backoff while some are pending. */
export function useDeliveries(project: string, event: string): DeliveriesQuery {
  const [data, setData] = useState<Deliveries>()
  const [failure, setFailure] = useState<Failure>()
  const [pages, setPages] = useState(1)
  const [turn, setTurn] = useState(0)

  useEffect(() => {
    let isOver = false
    let count = 0
    let timer: ReturnType<typeof setTimeout>
    const look = async () => {
      if (!document.hidden) {
        count += 1
        const result = await readPages(project, event, pages)
        if (isOver) return
        if (result.ok) setData(result.data)
        setFailure(result.ok ? undefined : result.failure)
        if (!result.ok || isSettled(result.data) || count >= MAX_REFRESHES) return
      }
      timer = setTimeout(() => void look(), Math.min(MIN_REFRESH_MS * 2 ** count, MAX_REFRESH_MS))
    }
    void look()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [project, event, pages, turn])
  return {
    data,
    failure,
    read: () => setTurn(turn + 1),
    readMore: () => setPages(pages + 1),
  }
}

async function readPages(
  project: string,
  event: string,
  pages: number,
): Promise<Result<Deliveries>> {
  const items: Delivery[] = []
  for (let cursor = '', page = 1; ; page += 1) {
    const query = new URLSearchParams({ limit: String(PAGE_SIZE), ...(cursor && { cursor }) })
    const result = await request<Deliveries>(
      'GET',
      `${toEventApiPath(project, event)}/deliveries?${query}`,
    )
    if (!result.ok) return result
    items.push(...result.data.items)
    cursor = result.data.nextCursor ?? ''
    if (cursor === '' || page >= pages) return { ok: true, data: { ...result.data, items } }
  }
}

function isSettled({ items, isDispatched }: Deliveries): boolean {
  return isDispatched && items.every(({ state }) => state !== 'pending')
}
