import { useEffect, useState } from 'preact/hooks'
import type { Overview } from '../../../log/overview/schema.ts'
import { MINUTE_MS, useQuery, type Query } from '../components/use-query.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { createWatch, type Heads } from '../live/watch.ts'
import { request } from '../request.ts'
import { loadSession } from '../session.ts'

/** How long the newest events may lag behind the counts. */
const REFRESH_MS = 5_000

interface LiveOverview {
  query: Query<Overview>
  /** The present heads of the logs, by project. */
  heads: Heads
  isLive: boolean
}

/** The state of all projects, kept up to date over one socket while the page is visible. */
export function useOverview(): LiveOverview {
  const query = useQuery('overview', () => request<Overview>('GET', '/api/overview'), {
    pauseMs: REFRESH_MS,
    everyMs: MINUTE_MS,
  })
  const [heads, setHeads] = useState<Heads>({})
  const [isLive, setLive] = useState(false)

  useEffect(() => {
    let hasHeads = false
    const watch = createWatch({
      open: () => new WebSocket(new URL('/api/feed', location.href.replace(/^http/, 'ws'))),
      isOnline: () => navigator.onLine,
      clock: SYSTEM_CLOCK,
      random: Math.random,
      onHeads(changed) {
        setHeads(known => ({ ...known, ...changed }))
        // The first heads come with the data of the page.
        if (hasHeads) query.refresh()
        hasHeads = true
      },
      onLive: setLive,
      onRefused: () => void loadSession(),
    })
    const look = () => void (document.hidden || watch.wake())
    document.addEventListener('visibilitychange', look)
    addEventListener('online', look)
    return () => {
      document.removeEventListener('visibilitychange', look)
      removeEventListener('online', look)
      watch.stop()
    }
  }, [])

  return { query, heads, isLive }
}
