import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Whether something of ours may be sent to an address. */
export type AddressGuard = (address: string) => boolean

/** All that is assigned for the world lies here; ipaddr.js knows the exceptions within. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Lets through public addresses, and those in `allowCidrs`. An IPv4 address in IPv6's clothes is judged as what it is,
 * or refused where a gateway would have to undress it.
 */
export function createAddressGuard(allowCidrs: readonly string[]): AddressGuard {
  const allowed = allowCidrs.map(cidr => ipaddr.parseCIDR(cidr))
  return text => {
    // A zone (`fe80::1%eth0`) is a matter of this machine alone.
    if (isIP(text) === 0 || text.includes('%')) return false
    const address = ipaddr.process(text)
    return allowed.some(network => isWithin(address, network)) || isPublic(address)
  }
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_IPV6)
}

function isWithin(address: Address, [network, bits]: [Address, number]): boolean {
  return address.kind() === network.kind() && address.match([network, bits] as [never, number])
}
