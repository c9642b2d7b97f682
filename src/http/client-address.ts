import ipaddr from 'ipaddr.js'

/**
 * Returns the address of the client. It is the peer's address, unless the peer is a trusted proxy.
 * Then it is the last address in X-Forwarded-For that is no trusted proxy. `trusted` lists networks
 * such as `10.0.0.0/8`.
 */
export function toClientAddress(
  peer: string,
  forwardedFor: string | null,
  trusted: readonly string[],
): string {
  if (trusted.length === 0 || !isTrusted(peer, trusted)) return peer
  const hops = (forwardedFor ?? '')
    .split(',')
    .map(hop => hop.trim())
    .filter(ipaddr.isValid)
  return hops.findLast(hop => !isTrusted(hop, trusted)) ?? hops[0] ?? peer
}

function isTrusted(address: string, trusted: readonly string[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return trusted.some(network => {
    const [base, bits] = ipaddr.parseCIDR(network)
    return base.kind() === parsed.kind() && parsed.match(base, bits)
  })
}
