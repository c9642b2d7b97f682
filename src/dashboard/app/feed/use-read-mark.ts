import { useEffect, useRef } from 'preact/hooks'
import { createThrottle } from '../live/throttle.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { markRead } from './api.ts'

const SAY_MS = 5_000

interface MarkOptions {
  project: string
  channelId: string | undefined
  newestSeq: number | undefined
  onMarked(): void
}

/** Tells the server how far the reader has come: what is in front of their eyes is read. */
export function useReadMark({ project, channelId, newestSeq, onMarked }: MarkOptions): void {
  const reach = useRef(0)
  const saying = useRef(createThrottle(SYSTEM_CLOCK, SAY_MS, () => {}))
  useEffect(() => {
    reach.current = 0
    const batch = createThrottle(SYSTEM_CLOCK, SAY_MS, () => {
      void markRead(project, channelId, reach.current).then(onMarked)
    })
    saying.current = batch
    return () => batch.stop()
  }, [project, channelId])
  useEffect(() => {
    if (newestSeq === undefined || newestSeq <= reach.current) return
    reach.current = newestSeq
    saying.current.trigger()
  }, [project, channelId, newestSeq])
}
