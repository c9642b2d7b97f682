import { useEffect, useRef, useState } from 'preact/hooks'
import type { Overview } from '../../../log/overview/schema.ts'
import { MINUTE_MS, useRoute, type Query } from '../components/use-query.ts'
import { BROWSER, watchBrowser } from '../live/browser.ts'
import type { Heads } from '../live/messages.ts'
import type { ConnectionState } from '../live/pill.ts'
import { createLiveSocket } from '../live/socket.ts'

/** How long the newest events may lag behind the counts. */
const REFRESH_MS = 5_000

interface LiveOverview {
  query: Query<Overview>
  /** The present heads of the logs, by project. */
  heads: Heads
  state: ConnectionState
  /** Connects again at once. */
  reconnect(): void
}

/** The state of all projects, kept up to date over one socket while the page is visible. */
export function useOverview(): LiveOverview {
  const query = useRoute('GET /api/overview', {}, { pauseMs: REFRESH_MS, everyMs: MINUTE_MS })
  const [heads, setHeads] = useState<Heads>({})
  const [state, setState] = useState<ConnectionState>({ kind: 'connecting' })
  const reconnect = useRef(() => {})

  useEffect(() => {
    let hasHeads = false
    const socket = createLiveSocket({
      ...BROWSER,
      onConnectionState: setState,
      greet: () => ({ type: 'watch' }),
      receive(message) {
        if (message.type !== 'heads') return false
        setHeads(known => ({ ...known, ...message.heads }))
        // The first heads come with the data of the page.
        if (hasHeads) query.refresh()
        return (hasHeads = true)
      },
    })
    reconnect.current = socket.retry
    const end = watchBrowser(socket)
    return () => {
      end()
      socket.stop()
    }
  }, [])

  return { query, heads, state, reconnect: () => reconnect.current() }
}
