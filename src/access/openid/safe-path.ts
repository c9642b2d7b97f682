const MAX_LENGTH = 2_000
/** Paths of the server itself, and of the sign-in page. */
const NO_PAGE = /^\/(v1|api|openid|assets|sign-in)([/?#]|$)/
const PLAIN = /^\/(?![/\\])[!-[\]-~]*$/

/** Returns `path` if it is a path of a page of this server, else `/`. */
export function toSafePath(path: string | undefined): string {
  const isSafe =
    path !== undefined && path.length <= MAX_LENGTH && PLAIN.test(path) && !NO_PAGE.test(path)
  return isSafe ? path : '/'
}
