import { isSecret } from './secret.ts'

/** What a browser keeps for us: who is signed in, and that somebody has signed in from here before. */
export type CookieName = 'session' | 'device'

const PLAIN_NAMES = { session: 'tidings', device: 'tidings-device' } as const
/** The longest that browsers keep a cookie. */
export const LONGEST_S = 400 * 86_400

export interface Cookies {
  /** The secret in a request's cookie; undefined when there is none, or more than one. */
  read(headers: Headers, name: CookieName): string | undefined
  /** A Set-Cookie that keeps `secret` for so many seconds. */
  keep(name: CookieName, secret: string, maxAgeS: number): string
  /** A Set-Cookie that takes the cookie away. */
  clear(name: CookieName): string
}

/**
 * Over https the names begin with `__Host-`: then no other host, and no page over http, can have set the cookie. Plain
 * http cannot have that.
 */
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
