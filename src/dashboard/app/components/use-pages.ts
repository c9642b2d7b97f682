import { useEffect, useRef, useState } from 'preact/hooks'
import type { Page } from '../../../http/envelope.ts'
import type { Result, Failure } from '../request.ts'

export interface Pages<Item> {
  items: readonly Item[]
  isReading: boolean
  failure: Failure | undefined
  /** Whether there is more to read. */
  hasMore: boolean
  /** Reads on, or what could not be read, once more. */
  readMore(): void
  /** Changes what is shown after an act that the server has answered. */
  change(edit: (items: readonly Item[]) => readonly Item[]): void
  /** Reads from the beginning; what is shown stays meanwhile. */
  readAgain(): void
}

/** A list that is read page by page, and anew when `key` changes. */
export function usePages<Item>(
  key: string,
  read: (cursor: string | undefined) => Promise<Result<Page<Item>>>,
): Pages<Item> {
  const [items, setItems] = useState<readonly Item[]>([])
  const [cursor, setCursor] = useState<string | null>()
  const [isReading, setReading] = useState(true)
  const [failure, setFailure] = useState<Failure>()
  const turn = useRef(0)
  const wanted = useRef<string>(undefined)

  async function take(from: string | undefined) {
    const mine = ++turn.current
    wanted.current = from
    setReading(true)
    setFailure(undefined)
    const result = await read(from)
    // Another list is wanted by now.
    if (mine !== turn.current) return
    setReading(false)
    if (!result.ok) return setFailure(result.failure)
    setItems(before => (from === undefined ? result.data.items : [...before, ...result.data.items]))
    setCursor(result.data.nextCursor)
  }

  useEffect(() => {
    setItems([])
    void take(undefined)
    return () => {
      turn.current += 1
    }
  }, [key])
  return {
    items,
    isReading,
    failure,
    hasMore: typeof cursor === 'string',
    readMore: () => void take(failure ? wanted.current : (cursor ?? undefined)),
    readAgain: () => void take(undefined),
    change: setItems,
  }
}
