import { Fault } from '../errors.ts'

/** The address under which people reach this server: `BASE_URL`, or the one that it found for itself. */
export interface Site {
  /** Without a trailing slash. */
  readonly url: string
  /** Whether it is https. */
  readonly isSecure: boolean
  /** Whether a Host header names it; the names of the loopback are one. */
  isOwnHost(host: string): boolean
  /** Whether an Origin header is its own. */
  isOwnOrigin(origin: string): boolean
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

export function toSite(baseUrl: string): Site {
  const { protocol, host } = new URL(baseUrl)
  const own = toOneLoopback(new URL(`${protocol}//${host}`)).origin
  return {
    url: baseUrl,
    isSecure: protocol === 'https:',
    isOwnHost: name => toOrigin(`${protocol}//${name}`) === own,
    isOwnOrigin: origin => toOrigin(origin) === own,
  }
}

/**
 * Throws `wrong_host` unless the Host header names this server: another name that leads here may be that of a page which
 * wants to read what our pages read.
 */
export function checkHost(headers: Headers, site: Site): void {
  const host = headers.get('host') ?? ''
  if (site.isOwnHost(host)) return
  throw new Fault(
    'wrong_host',
    `This server is ${site.url}, and was asked for as ${host}. If that is its address, set BASE_URL to it`,
  )
}

/**
 * Throws `cross_site` unless a page of ours made the request. Browsers say so in Sec-Fetch-Site, older ones and other
 * programs in Origin.
 */
export function checkSameOrigin(headers: Headers, site: Site): void {
  const relation = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  const isOurs = relation === null ? origin !== null : relation === 'same-origin'
  if (isOurs && (origin === null || site.isOwnOrigin(origin))) return
  throw new Fault(
    'cross_site',
    `Only pages of ${new URL(site.url).origin} may do this: send it as Origin. Where the server has another address, set BASE_URL`,
  )
}

function toOrigin(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  // An origin and a host are nothing more than themselves.
  const isBare = url.pathname === '/' && !text.endsWith('/') && !/[?#@\\\s]/.test(text)
  return isBare ? toOneLoopback(url).origin : undefined
}

function toOneLoopback(url: URL): URL {
  if (LOOPBACK.has(url.hostname)) url.hostname = 'localhost'
  return url
}
