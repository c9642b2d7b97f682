import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * The form of one kind of bearer token: a prefix, 32 random base62 characters (190 bits), and 6 of
 * their CRC32. Secret scanners find it by its prefix.
 */
export interface TokenForm {
  prefix: string
  /** Returns a new token. */
  newToken(): string
  /** Returns whether `token` has the prefix, the length and the checksum. Needs no query. */
  isWellFormed(token: string): boolean
  /** Returns whether `text` contains a token of this form, whatever its checksum. */
  isIn(text: string): boolean
}

/** Creates the form of tokens with `prefix`, which consists of letters and underscores. */
function createTokenForm(prefix: string): TokenForm {
  const anywhere = new RegExp(`${prefix}[0-9A-Za-z]{38}`)
  const exact = new RegExp(`^${anywhere.source}$`)
  return {
    prefix,
    newToken() {
      const random = Array.from({ length: 32 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
      return prefix + random + toChecksum(random)
    },
    isWellFormed(token) {
      const rest = token.slice(prefix.length)
      return exact.test(token) && toChecksum(rest.slice(0, 32)) === rest.slice(32)
    },
    isIn: text => anywhere.test(text),
  }
}

/** The form of API keys, which open /v1. */
export const API_KEY = createTokenForm('tdg_')
/** The form of management tokens, which open /api. */
export const MANAGEMENT_TOKEN = createTokenForm('tdm_')

/** Returns the SHA-256 in hex. Tokens have 190 random bits, so a slow hash is not needed. */
export function hashToken(token: string): string {
  return hash('sha256', token)
}

/**
 * Returns the token of an `Authorization: Bearer` header, of whatever form. Returns an empty string
 * if the rest of the header is not one word, and undefined if there is no such header.
 */
export function readBearer(authorization: string | null): string | undefined {
  if (authorization === null || !/^Bearer(?![\w-])/i.test(authorization)) return undefined
  return /^Bearer +([^ ,]+)$/i.exec(authorization)?.[1] ?? ''
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
