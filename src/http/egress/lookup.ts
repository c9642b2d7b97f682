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

class LookupError extends Error {
  readonly code = LOOKUP_FAILED
}

/** The resolver of the system, which reads /etc/hosts and knows the names of containers. */
export const systemResolver: Resolver = host => lookUpHost(host, { all: true, verbatim: true })

/**
 * Resolves a host. Rejects unless there are addresses and every one is allowed, because a name with
 * both public and private addresses is an attack. The error is the same for every reason: it must
 * not reveal which names exist in a private network. The deadline of the request limits the time.
 */
async function resolveAllowed(
  host: string,
  resolve: Resolver,
  isAllowed: AddressGuard,
): Promise<ResolvedAddress[]> {
  const found = await resolve(host).catch(() => [])
  if (found.length === 0 || !found.every(({ address }) => isAllowed(address))) {
    throw new LookupError(LOOKUP_FAILED)
  }
  return found.map(({ address }) => ({ address, family: isIP(address) }))
}

/**
 * Returns the `lookup` of `http.request`. It returns the checked addresses, so that no second DNS
 * response can differ from them.
 */
export function createLookup(resolve: Resolver, isAllowed: AddressGuard): LookupFunction {
  return (host, options, callback) => {
    resolveAllowed(host, resolve, isAllowed).then(
      addresses => {
        const [first] = addresses
        if (options.all) callback(null, addresses)
        else callback(null, first?.address ?? '', first?.family ?? 0)
      },
      (error: LookupError) => callback(error, options.all ? [] : ''),
    )
  }
}
