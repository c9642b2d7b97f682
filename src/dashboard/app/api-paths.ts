// The paths that the script before the first paint needs, and the application again.

/** The sign-in page. */
export const SIGN_IN_PATH = '/sign-in'

/** The signed-in account, which every page needs. */
export const ACCOUNT_API_PATH = '/api/me'
/** The ways to sign in, which the sign-in page needs in place of the account. */
export const SIGN_IN_API_PATH = '/api/sign-in'
const PAGE_ROWS = 50

export function toApiPath(project: string): `/api/${string}` {
  return `/api/projects/${encodeURIComponent(project)}`
}

/** The path of one page of events, newest first. */
export function toEventsApiPath(
  project: string,
  query: Readonly<Record<string, string>> = {},
): `/api/${string}` {
  return `${toApiPath(project)}/events?${new URLSearchParams({ ...query, limit: String(PAGE_ROWS) })}`
}
