import { lookup as lookUpHost } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import type { AddressGuard } from './guard.ts'

interface ResolvedAddress {
  address: string
  family: number
}

/** Returns the addresses of a host. Rejects or returns none if it has none. */
export type Resolver = (host: string) => Promise<readonly ResolvedAddress[]>

/** The `code` of a failed lookup. */
export const LOOKUP_FAILED = 'EGRESS_LOOKUP_FAILED'

/** The resolver of the system, which reads /etc/hosts and knows the names of containers. */
export const systemResolver: Resolver = host => lookUpHost(host, { all: true, verbatim: true })

/**
 * Returns the `lookup` of `net.connect`. It returns the checked addresses, so that no second DNS
 * response can differ from them. It fails unless there are addresses and every one is allowed,
 * because a name with both public and private addresses is an attack. The error is the same for
 * every reason: it must not reveal which names exist in a private network. The deadline of the
 * request limits the time.
 */
export function createLookup(resolve: Resolver, isAllowed: AddressGuard): LookupFunction {
  return (host, options, callback) => {
    const resolved = resolve(host).catch(() => [])
    void resolved.then(found => {
      const [first] = found
      if (!first || !found.every(({ address }) => isAllowed(address))) {
        callback(Object.assign(new Error(LOOKUP_FAILED), { code: LOOKUP_FAILED }), [])
      } else if (options.all) {
        callback(
          null,
          found.map(({ address }) => ({ address, family: isIP(address) })),
        )
      } else callback(null, first.address, isIP(first.address))
    })
  }
}
