import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ConnectionPill } from '../feed/live-pill.tsx'
import { BROWSER, watchBrowser } from './browser.ts'
import type { ConnectionState } from './pill.ts'
import type { LiveSocket, SocketEnvironment, SocketOptions } from './socket.ts'

/** A live socket for the lifetime of the component, and another one when `key` changes. */
export function useSocket(
  key: string,
  open: (environment: SocketEnvironment & Pick<SocketOptions, 'onConnectionState'>) => LiveSocket,
) {
  const [state, onConnectionState] = useState<ConnectionState>({ kind: 'connecting' })
  const reconnect = useRef(() => {})
  useEffect(() => {
    const socket = open({ ...BROWSER, onConnectionState })
    reconnect.current = socket.retry
    const end = watchBrowser(socket)
    return () => {
      end()
      socket.stop()
    }
  }, [key])
  return { state, reconnect: () => reconnect.current() }
}

interface SummaryOptions {
  live: ReturnType<typeof useSocket>
  children: ComponentChildren
}

/** The state of the socket of a page, and a summary of the page. */
export function LiveSummary({ live, children }: SummaryOptions) {
  return (
    <p class="overview-summary">
      <span role="status">
        <ConnectionPill pill={live.state} onRetry={live.reconnect} />
      </span>
      {children}
    </p>
  )
}
