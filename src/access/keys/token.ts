import { setNewest } from '../../base/functions.ts'
import { API_KEY, hashToken, readBearer } from '../../base/token-form.ts'

export const { prefix: KEY_PREFIX, newToken } = API_KEY

const MAX_CACHED_HASHES = 1_000

export interface HashCache {
  /**
   * Returns the hash of the token that `read` finds in an Authorization header, or undefined if it
   * finds none.
   */
  find(authorization: string | null, read: () => string | undefined): string | undefined
}

/** Keeps the hashes of recent headers. Reading and hashing a token costs several microseconds. */
export function createHashCache(): HashCache {
  const hashes = new Map<string, string>()
  return {
    find(authorization, read) {
      if (authorization === null) return undefined
      const known = hashes.get(authorization)
      if (known !== undefined) return known
      const token = read()
      if (token === undefined) return undefined
      const hash = hashToken(token)
      setNewest(hashes, authorization, hash, MAX_CACHED_HASHES)
      return hash
    },
  }
}

/**
 * Returns whether a URL's query contains a key. Such requests are rejected, because URLs end up in
 * logs.
 */
export function hasKeyInQuery(url: string): boolean {
  const query = url.indexOf('?')
  return query >= 0 && API_KEY.isIn(url.slice(query))
}

/**
 * Returns the token of an `Authorization: Bearer` header, or undefined if it is no well-formed key.
 */
export function readToken(authorization: string | null): string | undefined {
  const token = readBearer(authorization)
  return token !== undefined && API_KEY.isWellFormed(token) ? token : undefined
}
