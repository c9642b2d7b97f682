import type { ReadonlySignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { createThrottle } from '../live/throttle.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { markRead } from './api.ts'

const SEND_MS = 5_000

interface MarkOptions {
  project: string
  channelId: string | undefined
  /** The seq of the newest shown event; undefined if the page marks none as read. */
  newestSeq: ReadonlySignal<number | undefined> | undefined
  onMarked(): void
}

/**
 * Marks the shown events as read on the server. Returns a function that marks them at once, and
 * resolves when they are.
 */
export function useReadMark({
  project,
  channelId,
  newestSeq,
  onMarked,
}: MarkOptions): () => Promise<void> {
  const reach = useRef(0)
  const marked = useRef(0)
  const sending = useRef(createThrottle(SYSTEM_CLOCK, SEND_MS, () => {}))
  const mark = async () => {
    if (reach.current <= marked.current) return
    marked.current = reach.current
    await markRead(project, channelId, reach.current)
  }
  useEffect(() => {
    reach.current = 0
    marked.current = 0
    const batch = createThrottle(SYSTEM_CLOCK, SEND_MS, () => void mark().then(onMarked))
    sending.current = batch
    // Events that were shown are read, even if the list is left before the next request.
    return () => batch.flush()
  }, [project, channelId])
  useEffect(
    () =>
      newestSeq?.subscribe(seq => {
        if (seq === undefined || seq <= reach.current) return
        reach.current = seq
        sending.current.trigger()
      }),
    [project, channelId, newestSeq],
  )
  return mark
}
