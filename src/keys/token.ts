import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { setNewest } from '../functions.ts'

export const KEY_PREFIX = 'tdg_'
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SHAPE = /^tdg_[0-9A-Za-z]{38}$/

/** Returns a new API key: `tdg_`, 32 random base62 characters (190 bits), and 6 of their CRC32. */
export function newToken(): string {
  const random = Array.from({ length: 32 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
  return KEY_PREFIX + random + toChecksum(random)
}

/** Returns whether `token` has the form and checksum of a key. Needs no query. */
export function isWellFormedToken(token: string): boolean {
  return SHAPE.test(token) && toChecksum(token.slice(4, 36)) === token.slice(36)
}

/** Returns the SHA-256 in hex. Keys have 190 random bits, so a slow hash is not needed. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

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
  return query >= 0 && /tdg_[0-9A-Za-z]{38}/.test(url.slice(query))
}

/**
 * Returns the token of an `Authorization: Bearer` header, or undefined if it is no well-formed key.
 */
export function readToken(authorization: string | null): string | undefined {
  const token = /^Bearer +([^ ,]+)$/i.exec(authorization ?? '')?.[1]
  return token !== undefined && isWellFormedToken(token) ? token : undefined
}

function toChecksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let place = 0; place < 6; place++) {
    digits = ALPHABET[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
