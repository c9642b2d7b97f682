import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { ProxySettings } from '../../base/config/egress-proxy.ts'
import { VERSION } from '../../base/version.ts'

/** A proxy that opens tunnels with CONNECT (RFC 9110 §9.3.6). */
export interface EgressProxy {
  readonly host: string
  readonly port: number
  readonly resolvesNames: boolean
  /** Returns true if the proxy is used for a host. */
  isFor(host: string, port: number): boolean
  /** Returns the request for a tunnel to a host. */
  toRequest(host: string, port: number): string
}

/** The code of an error of the proxy itself: it cannot be reached, or refuses this server. */
export const PROXY_FAILED = 'EGRESS_PROXY_FAILED'
/** The code of the error if the proxy did not connect to a host. */
export const PROXY_REFUSED = 'EGRESS_PROXY_REFUSED'

export function createProxy({ url, noProxy, resolvesNames }: ProxySettings): EgressProxy {
  const { hostname, port, username, password } = new URL(url)
  const credentials = [username, password].map(part => decodeURIComponent(part)).join(':')
  const authorization =
    username === ''
      ? ''
      : `Proxy-Authorization: Basic ${Buffer.from(credentials).toString('base64')}\r\n`
  const exempt = noProxy.split(/[\s,]+/).filter(part => part !== '')
  return {
    host: toBareHost(hostname),
    port: port === '' ? 80 : Number(port),
    resolvesNames,
    isFor: (host, toPort) => !exempt.some(entry => isExempt(entry, host, toPort)),
    toRequest(host, toPort) {
      const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${toPort}`
      return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: Tidings/${VERSION}\r\n${authorization}\r\n`
    },
  }
}

/**
 * Returns true if an entry of NO_PROXY names a host: `*`, a domain with its subdomains, an address
 * or a network, each perhaps with a port.
 */
function isExempt(entry: string, host: string, port: number): boolean {
  if (entry === '*') return true
  if (entry.includes('/')) {
    if (isIP(host) === 0 || !ipaddr.isValidCIDR(entry)) return false
    const [network, bits] = ipaddr.parseCIDR(entry)
    const address = ipaddr.process(host)
    return address.kind() === network.kind() && address.match([network, bits] as [never, number])
  }
  const [, name = '', onlyPort] = /^(\[.*\]|[^:]*|.*:.*:.*?)(?::(\d+))?$/.exec(entry) ?? []
  if (onlyPort !== undefined && Number(onlyPort) !== port) return false
  const domain = toBareHost(name)
    .replace(/^\*?\./, '')
    .toLowerCase()
  return domain !== '' && (host === domain || (isIP(host) === 0 && host.endsWith(`.${domain}`)))
}

function toBareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}
