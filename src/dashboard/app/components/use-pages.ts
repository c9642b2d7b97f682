import { useEffect, useRef, useState } from 'preact/hooks'
import type { Page } from '../../../http/envelope.ts'
import type { Result, Failure } from '../request.ts'

export interface Pages<Item> {
  items: readonly Item[]
  isLoading: boolean
  failure: Failure | undefined
  /** True if there are more pages. */
  hasMore: boolean
  /** Loads the next page, or the page that failed. */
  loadMore(): void
  /** Changes the items after the server has accepted a change. */
  change(edit: (items: readonly Item[]) => readonly Item[]): void
  /** Loads the first page again. The current items stay until then. */
  reload(): void
}

/** Loads a list page by page, and from the start when `key` changes. */
export function usePages<Item>(
  key: string,
  read: (cursor: string | undefined) => Promise<Result<Page<Item>>>,
): Pages<Item> {
  const [items, setItems] = useState<readonly Item[]>([])
  const [cursor, setCursor] = useState<string | null>()
  const [isLoading, setLoading] = useState(true)
  const [failure, setFailure] = useState<Failure>()
  const latest = useRef(0)
  const lastCursor = useRef<string>(undefined)

  async function load(from: string | undefined) {
    const request = ++latest.current
    lastCursor.current = from
    setLoading(true)
    setFailure(undefined)
    const result = await read(from)
    // Another page was requested in the meantime.
    if (request !== latest.current) return
    setLoading(false)
    if (!result.ok) return setFailure(result.failure)
    setItems(before => (from === undefined ? result.data.items : [...before, ...result.data.items]))
    setCursor(result.data.nextCursor)
  }

  useEffect(() => {
    setItems([])
    void load(undefined)
    return () => {
      latest.current += 1
    }
  }, [key])
  return {
    items,
    isLoading,
    failure,
    hasMore: typeof cursor === 'string',
    loadMore: () => void load(failure ? lastCursor.current : (cursor ?? undefined)),
    reload: () => void load(undefined),
    change: setItems,
  }
}
