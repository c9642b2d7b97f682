import { accountId } from '../request.ts'
import { checkSession } from '../session.ts'
import { noteBuild } from '../worker/update.ts'
import { SYSTEM_CLOCK } from './clock.ts'
import type { LiveSocket, SocketEnvironment } from './socket.ts'

/** The live sockets of this browser. */
export const BROWSER: SocketEnvironment = {
  open: () =>
    new WebSocket(new URL(`/api/feed?account=${accountId}`, location.href.replace(/^http/, 'ws'))),
  check: checkSession,
  isOnline: () => navigator.onLine,
  clock: SYSTEM_CLOCK,
  random: Math.random,
  onBuild: noteBuild,
}

/** Checks a socket when the page is shown or the network changes. Call the result to end it. */
export function watchBrowser({ wake, sleep }: Pick<LiveSocket, 'wake' | 'sleep'>): () => void {
  const end = new AbortController()
  const look = () => void (document.hidden || wake())
  document.addEventListener('visibilitychange', look, end)
  // A hidden page counts new events in its title.
  addEventListener('online', wake, end)
  addEventListener('offline', sleep, end)
  return () => end.abort()
}
