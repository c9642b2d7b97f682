// The paths that the script before the first paint needs.

/** The sign-in page. */
export const SIGN_IN_PATH = '/sign-in'

/** How many events are on one page. */
export const PAGE_ROWS = 50
