import type { ReadonlySignal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Histogram } from '../../../log/events/search-schema.ts'
import { createThrottle } from '../live/throttle.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import type { Failure } from '../request.ts'
import { readHistogram } from './api.ts'
import { toQuery, type Search } from './search.ts'

/** How long the bars may lag behind the rows. */
const REFRESH_MS = 10_000

export type Counted =
  | { kind: 'counting' | 'nothing' }
  | { kind: 'counted'; histogram: Histogram }
  | { kind: 'failed'; failure: Failure; retry(): void }

/** Counts the matches of a search over time, again when new events arrive. */
export function useHistogram(
  project: string,
  search: Search,
  newestSeq: ReadonlySignal<number | undefined>,
): Counted {
  const [counted, setCounted] = useState<Counted>({ kind: 'counting' })
  const counting = useRef(createThrottle(SYSTEM_CLOCK, REFRESH_MS, () => {}))
  const { channelId, text, from, to } = search

  useEffect(() => {
    let isOver = false
    const count = async () => {
      const nowMs = Date.now()
      const result = await readHistogram(project, toQuery(search, nowMs))
      if (isOver) return
      // The previous counts stay when counting again fails.
      setCounted(before =>
        result.ok
          ? { kind: 'counted', histogram: result.data }
          : before.kind === 'counted'
            ? before
            : { kind: 'failed', failure: result.failure, retry: () => void count() },
      )
    }
    counting.current = createThrottle(SYSTEM_CLOCK, REFRESH_MS, () => void count())
    setCounted({ kind: 'counting' })
    counting.current.trigger()
    return () => {
      isOver = true
      counting.current.stop()
    }
  }, [project, channelId, text, from, to])
  useEffect(
    () => newestSeq.subscribe(seq => seq !== undefined && counting.current.trigger()),
    [newestSeq],
  )
  return counted
}
