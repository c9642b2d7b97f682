import type { ReadonlySignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { createThrottle } from '../live/throttle.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { request } from '../request.ts'

const SEND_MS = 5_000
/** The wait before another attempt doubles with each failure, this many times. */
const MAX_DOUBLINGS = 4

/** How far the events of a list were shown, and marked, and the failures since then. */
const begin = () => ({ reach: 0, marked: 0, failures: 0, cancel: () => {} })

interface MarkOptions {
  project: string
  channelId: string | undefined
  /** The seq of the newest shown event; undefined if the page marks none as read. */
  newestSeq: ReadonlySignal<number | undefined> | undefined
  onMarked(): void
}

/**
 * Marks the shown events as read on the server, and tries again if that fails. Returns a function
 * that marks them at once, and resolves to true when they are.
 */
export function useReadMark({
  project,
  channelId,
  newestSeq,
  onMarked,
}: MarkOptions): () => Promise<boolean> {
  const list = useRef(begin())
  const sending = useRef(createThrottle(SYSTEM_CLOCK, SEND_MS, () => {}))
  const mark = async () => {
    const now = list.current
    const { reach, marked } = now
    if (reach <= marked) return false
    now.marked = reach
    const result = await request('PUT /api/projects/:projectId/read', {
      projectId: project,
      seq: reach,
      ...(channelId !== undefined && { channelId }),
    })
    if (result.ok) now.failures = 0
    else if (/forbidden|not_found/.test(result.failure.code)) now.marked = Infinity
    else {
      now.marked = marked
      const waitMs = SEND_MS * 2 ** Math.min(now.failures++, MAX_DOUBLINGS)
      now.cancel()
      if (now === list.current) now.cancel = SYSTEM_CLOCK.after(waitMs, sending.current.trigger)
    }
    return result.ok
  }
  useEffect(() => {
    list.current = begin()
    const batch = createThrottle(SYSTEM_CLOCK, SEND_MS, async () => {
      if (await mark()) onMarked()
    })
    sending.current = batch
    return () => {
      batch.stop()
      list.current.cancel()
      // Events that were shown are read, even if the list is left before the next request.
      void mark().then(ok => ok && onMarked())
      list.current = begin()
    }
  }, [project, channelId])
  useEffect(
    () =>
      newestSeq?.subscribe(seq => {
        if (seq === undefined || seq <= list.current.reach) return
        list.current.reach = seq
        sending.current.trigger()
      }),
    [project, channelId, newestSeq],
  )
  return mark
}
