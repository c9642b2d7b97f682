import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** More proxies than any request passes. A long list would take milliseconds. */
const MAX_HOPS = 32

/** Returns the address of a client from that of the peer and the header X-Forwarded-For. */
export type ClientAddressReader = (peer: string, forwardedFor: string | null) => string

interface ReaderOptions {
  /** The networks of proxies, such as `10.0.0.0/8`. */
  trusted: readonly string[]
  /** Called when a peer that is no trusted proxy sends X-Forwarded-For. */
  onUntrusted?(peer: string): void
}

/**
 * Creates a reader that believes trusted proxies only. It returns the peer's address, unless the
 * peer is a trusted proxy. Then it follows X-Forwarded-For from its end, up to the first address
 * that is no trusted proxy. A hop that cannot be read ends the way: whatever precedes it may be
 * forged.
 */
export function createClientAddressReader({
  trusted,
  onUntrusted,
}: ReaderOptions): ClientAddressReader {
  const isTrusted = createNetworkCheck(trusted)

  return (peer, forwardedFor) => {
    if (forwardedFor === null) return peer
    if (!isTrusted(peer)) {
      onUntrusted?.(peer)
      return peer
    }
    let believed = peer
    for (const hop of forwardedFor.split(',').slice(-MAX_HOPS).reverse()) {
      const address = parseHop(hop)
      if (address === undefined) break
      believed = address
      if (!isTrusted(address)) break
    }
    return believed
  }
}

/** Returns a function that tells whether an address is in one of the networks. */
export function createNetworkCheck(networks: readonly string[]): (address: string) => boolean {
  const parsed = networks.map(network => ipaddr.parseCIDR(network))
  return text => {
    const address = parseAddress(text)
    return (
      address !== undefined &&
      parsed.some(
        ([base, bits]) =>
          base.kind() === address.kind() && address.match([base, bits] as [never, number]),
      )
    )
  }
}

/** A hop with an optional port. Only an IPv6 address in brackets can have one. */
const HOP = /^(?:(?<ipv4>[\d.]+)|\[(?<bracketed>[^\]]+)\])(?::\d{1,5})?$/

/**
 * Returns the address of a hop without port, brackets and zone, in its usual spelling. Undefined if
 * it has none, as in `unknown` or `_hidden`.
 */
function parseHop(text: string): string | undefined {
  const hop = text.trim()
  const { ipv4, bracketed } = HOP.exec(hop)?.groups ?? {}
  if (ipv4 === undefined && bracketed !== undefined && !bracketed.includes(':')) return undefined
  return parseAddress(ipv4 ?? bracketed ?? hop)?.toString()
}

/** Parses an address, without a zone such as `%eth0`. An IPv4-mapped address is one of IPv4. */
function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const bare = text.replace(/%.*$/, '')
  return isIP(bare) === 0 ? undefined : ipaddr.process(bare)
}
