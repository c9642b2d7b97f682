import { Fault } from '../base/errors.ts'

/** The public address of this server: `BASE_URL`, or a default. */
export interface Site {
  /** Without a trailing slash. */
  readonly url: string
  /** True for https. */
  readonly isSecure: boolean
  /** Returns whether a Host header names this server. All loopback names are equal. */
  isOwnHost(host: string): boolean
  /** Returns whether an Origin header names this server. */
  isOwnOrigin(origin: string): boolean
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

export function toSite(baseUrl: string): Site {
  const { protocol, host } = new URL(baseUrl)
  const own = normalizeLoopback(new URL(`${protocol}//${host}`)).origin
  return {
    url: baseUrl,
    isSecure: protocol === 'https:',
    isOwnHost: name => toOrigin(`${protocol}//${name}`) === own,
    isOwnOrigin: origin => toOrigin(origin) === own,
  }
}

/**
 * Throws `wrong_host` unless the Host header names this server. Prevents DNS rebinding by other
 * sites.
 */
export function checkHost(headers: Headers, site: Site): void {
  const host = headers.get('host') ?? ''
  if (site.isOwnHost(host)) return
  throw new Fault(
    'wrong_host',
    `This server is ${site.url}, but the request is for ${host}. If that is its address, set BASE_URL to it.`,
  )
}

/**
 * Throws `cross_site` unless a page of this server sent the request, by Sec-Fetch-Site. Older
 * browsers and other programs send Origin instead.
 */
export function checkSameOrigin(headers: Headers, site: Site): void {
  const relation = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  const isOurs = relation === null ? origin !== null : relation === 'same-origin'
  if (isOurs && (origin === null || site.isOwnOrigin(origin))) return
  throw new Fault(
    'cross_site',
    `Only pages of ${new URL(site.url).origin} can do this. Programs send that address as Origin. If the server has another address, set BASE_URL to it.`,
  )
}

function toOrigin(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  // A valid Origin or Host has no path, query or user name.
  const isBare = url.pathname === '/' && !text.endsWith('/') && !/[?#@\\\s]/.test(text)
  return isBare ? normalizeLoopback(url).origin : undefined
}

function normalizeLoopback(url: URL): URL {
  if (LOOPBACK.has(url.hostname)) url.hostname = 'localhost'
  return url
}
