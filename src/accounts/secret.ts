import { createHash, randomBytes } from 'node:crypto'

const SHAPE = /^[\w-]{22,86}$/

/** Returns a new random secret for a cookie or a link, as URL-safe text. */
export function newSecret(bits: 128 | 256): string {
  return randomBytes(bits / 8).toString('base64url')
}

/** Whether `text` has the form of such a secret. */
export function isSecret(text: string): boolean {
  return SHAPE.test(text)
}

/** Returns SHA-256 in hex, the only form that is stored. A random secret has too much entropy for guessing. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** The session's cookie, and the one that makes a browser known to the accounts that sign in there. */
type CookieName = 'session' | 'device'

const PLAIN_NAMES = { session: 'tidings', device: 'tidings-device' } as const
/** Browsers keep no cookie for longer. */
export const MAX_COOKIE_AGE_S = 400 * 86_400

export interface Cookies {
  /** The secret in a request's cookie; undefined when there is none, or more than one. */
  read(headers: Headers, name: CookieName): string | undefined
  /** A Set-Cookie that keeps `secret`. */
  keep(name: CookieName, secret: string, maxAgeS: number): string
  /** A Set-Cookie that deletes the cookie. */
  clear(name: CookieName): string
}

/** Names cookies with `__Host-` over https, so that no other host and no page over http can set them. */
export function createCookies(isSecure: boolean): Cookies {
  const toName = (name: CookieName) => `${isSecure ? '__Host-' : ''}${PLAIN_NAMES[name]}`
  const write = (name: CookieName, value: string, maxAgeS: number) =>
    `${toName(name)}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeS}${isSecure ? '; Secure' : ''}`
  return {
    read(headers, name) {
      const wanted = `${toName(name)}=`
      const found = (headers.get('cookie') ?? '')
        .split(';')
        .map(part => part.trim())
        .filter(part => part.startsWith(wanted))
        .map(part => part.slice(wanted.length))
      const [only] = found
      return only !== undefined && found.length === 1 && isSecret(only) ? only : undefined
    },
    keep: write,
    clear: name => write(name, '', 0),
  }
}
