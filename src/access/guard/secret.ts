import { createHash, randomBytes } from 'node:crypto'

const SHAPE = /^[\w-]{22,86}$/
/** 256 bits. The last of 43 characters has only 4 of them. */
const COOKIE_SHAPE = /^[\w-]{42}[AEIMQUYcgkosw048]$/

/** Returns a new random secret for a cookie or a link, as URL-safe text. */
export function newSecret(bits: 128 | 256): string {
  return randomBytes(bits / 8).toString('base64url')
}

/** Returns whether `text` has the form of such a secret. */
export function isSecret(text: string): boolean {
  return SHAPE.test(text)
}

/** Returns the SHA-256 in hex, the only form that is stored. Random secrets need no slow hash. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** A sealed text of src/database/secrets. */
const SEALED_SHAPE = /^v1\.[\w.-]{1,3500}$/

/**
 * The cookies of a browser: its session, the mark of a browser known to the accounts that sign in
 * there, the binding of a challenge to a passkey, the first step of a sign-in with a code, and the
 * visit to an OpenID Connect provider.
 */
type CookieName = 'session' | 'device' | 'challenge' | 'step' | 'openid'

const PLAIN_NAMES = {
  session: 'tidings',
  device: 'tidings-device',
  challenge: 'tidings-challenge',
  step: 'tidings-step',
  openid: 'tidings-openid',
} as const
/** The longest Max-Age that browsers accept, in seconds. */
export const MAX_COOKIE_AGE_S = 400 * 86_400

/** The cookies of one request. */
export interface Cookies {
  /** Returns the secret in a cookie, or undefined unless there is exactly one such cookie. */
  read(name: CookieName): string | undefined
  /** Returns whether the request has such a cookie, of whatever form. */
  has(name: CookieName): boolean
  /** Returns a Set-Cookie value that stores `secret`. */
  keep(name: CookieName, secret: string, maxAgeS: number): string
  /** Returns a Set-Cookie value that deletes the cookie. */
  clear(name: CookieName): string
}

/** Returns the cookies of a request with these headers. */
export type CookiesOf = (headers: Headers) => Cookies

/**
 * Creates the cookies of a server. Over https, names begin with `__Host-`, so that no other host
 * and no http page can set them.
 */
export function createCookies(isSecure: boolean): CookiesOf {
  const toName = (name: CookieName) => `${isSecure ? '__Host-' : ''}${PLAIN_NAMES[name]}`
  const write = (name: CookieName, value: string, maxAgeS: number) =>
    `${toName(name)}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeS}${isSecure ? '; Secure' : ''}`
  const list = (headers: Headers, name: CookieName) => {
    const wanted = `${toName(name)}=`
    return (headers.get('cookie') ?? '')
      .split(';')
      .map(part => part.trim())
      .filter(part => part.startsWith(wanted))
      .map(part => part.slice(wanted.length))
  }
  return headers => ({
    read(name) {
      const found = list(headers, name)
      const [only] = found
      return only !== undefined &&
        found.length === 1 &&
        (name === 'openid' || name === 'step' ? SEALED_SHAPE : COOKIE_SHAPE).test(only)
        ? only
        : undefined
    },
    has: name => list(headers, name).length > 0,
    keep: write,
    clear: name => write(name, '', 0),
  })
}

/**
 * Returns what makes the browser delete the session cookie and everything that pages have stored.
 */
export function toSignedOut(cookies: Cookies) {
  return {
    headers: { 'Clear-Site-Data': '"cache", "storage"' },
    cookies: [cookies.clear('session')],
  }
}
