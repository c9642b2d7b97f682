import { API_KEY, readBearer } from '../../base/token-form.ts'

export const { prefix: KEY_PREFIX, newToken } = API_KEY

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

/** Returns the password of an `Authorization: Basic` header, if there is one. */
export function readBasicPassword(headers: Headers): string | undefined {
  const code = /^Basic +([\w+/=-]+)$/i.exec(headers.get('authorization') ?? '')?.[1] ?? ''
  return /^[^:]*:(.+)$/.exec(Buffer.from(code, 'base64').toString())?.[1]
}
