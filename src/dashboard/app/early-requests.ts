// The first requests of a page run while its scripts load. The script before the first paint sends
// them, and the application takes their responses.

/** The feed of a project, and an event. The link of a notification names no project. */
const PLACE = /^(?:\/p\/([^/]+))?(?:\/e\/([^/]+))?$/
const DEADLINE_MS = 20_000

/** Both scripts share the global object. */
const scope = globalThis as { earlyRequests?: Map<string, Promise<Response | undefined>> }

/** Returns whether a path is that of the sign-in page, which needs no account. */
export function isSignIn(path: string): boolean {
  return path === SIGN_IN_PATH
}

/** Sends the first requests of the page at an address. */
export function sendEarly({ pathname, search }: Location): void {
  const [, project, event] = (search === '' && PLACE.exec(pathname)) || []
  const root = project && `/api/projects/${project}/events`
  const paths = [
    isSignIn(pathname) ? '/api/sign-in' : '/api/me',
    root && `${root}?limit=${PAGE_ROWS}`,
    event && (root ? `${root}/${event}` : `/api/events/${event}/project`),
  ].filter(path => path !== undefined)
  const signal = AbortSignal.timeout(DEADLINE_MS)
  scope.earlyRequests = new Map(
    paths.map(path => [path, fetch(path, { signal, redirect: 'manual' }).catch(() => undefined)]),
  )
}

/** Returns the response to an early request, once. Undefined if the request must be sent again. */
export async function takeEarly(path: string): Promise<Response | undefined> {
  const { earlyRequests } = scope
  const sent = earlyRequests?.get(path)
  if (!earlyRequests || !sent) return undefined
  earlyRequests.delete(path)
  const response = await sent
  const isSignedOut = response?.status === 401
  // The others are refused, too. After signing in, they must be sent again.
  if (isSignedOut) earlyRequests.clear()
  return response?.ok || isSignedOut ? response : undefined
}

// The paths that the script before the first paint needs.

/** The sign-in page. */
export const SIGN_IN_PATH = '/sign-in'

/** How many events are on one page. */
export const PAGE_ROWS = 50
