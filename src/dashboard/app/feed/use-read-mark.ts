import type { ReadonlySignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { createThrottle } from '../live/throttle.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { request } from '../request.ts'

const SEND_MS = 5_000
/** The wait before another attempt doubles with each failure, this many times. */
const MAX_DOUBLINGS = 4

export interface MarkOptions {
  project: string
  channelId: string | undefined
  /** The seq of the newest shown event; undefined if the page marks none as read. */
  newestSeq: ReadonlySignal<number | undefined> | undefined
}

/**
 * Marks the shown events as read on the server, which tells all pages of the account, and tries
 * again if that fails. Returns a function that marks them at once, and resolves to true when they
 * are.
 */
export function useReadMark(options: MarkOptions): () => Promise<boolean> {
  const { project, channelId, newestSeq } = options
  const marks = useMemo(() => createMarks(options), [project, channelId])
  useEffect(() => marks.stop, [marks])
  useEffect(() => newestSeq?.subscribe(seq => marks.reach(seq ?? 0)), [marks, newestSeq])
  return marks.mark
}

/** The read marks of one list of events. */
function createMarks({ project, channelId }: MarkOptions) {
  /** How far events were shown, and marked. */
  let reach = 0
  let marked = 0
  let failures = 0
  let isStopped = false
  let cancel = () => {}
  const sending = createThrottle(SYSTEM_CLOCK, SEND_MS, () => void mark())

  async function mark(): Promise<boolean> {
    if (reach <= marked) return false
    const before = marked
    marked = reach
    const result = await request('PUT /api/projects/:projectId/read', {
      projectId: project,
      seq: reach,
      ...(channelId !== undefined && { channelId }),
    })
    if (result.ok) failures = 0
    else if (/forbidden|not_found/.test(result.failure.code)) marked = Infinity
    else {
      marked = before
      cancel()
      const waitMs = SEND_MS * 2 ** Math.min(failures++, MAX_DOUBLINGS)
      if (!isStopped) cancel = SYSTEM_CLOCK.after(waitMs, sending.trigger)
    }
    return result.ok
  }

  return {
    mark,
    reach(seq: number) {
      if (seq <= reach) return
      reach = seq
      sending.trigger()
    },
    stop() {
      isStopped = true
      sending.stop()
      cancel()
      // Events that were shown are read, even if the list is left before the next request.
      void mark()
    },
  }
}
