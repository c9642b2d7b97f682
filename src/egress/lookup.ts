import { lookup as lookUpHost } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { withTimeout } from '../functions.ts'
import type { AddressGuard } from './guard.ts'

export interface ResolvedAddress {
  address: string
  family: number
}

/** The addresses of a host; rejects, or returns none, when it has none. */
export type Resolver = (host: string) => Promise<readonly ResolvedAddress[]>

const DNS_TIMEOUT_MS = 5_000

/** The `code` of a failed lookup. */
export const LOOKUP_REFUSED = 'EGRESS_REFUSED'
export const LOOKUP_NOT_FOUND = 'EGRESS_NOT_FOUND'

class LookupError extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}

/** The system's resolver, which reads /etc/hosts and knows the names of containers. */
export const systemResolver: Resolver = host => lookUpHost(host, { all: true, verbatim: true })

/**
 * Resolves a host for a connection. Rejects with the code REFUSED unless every address is allowed: a name with a public
 * and a private address is an attack.
 */
export async function resolveAllowed(
  host: string,
  resolve: Resolver,
  isAllowed: AddressGuard,
): Promise<ResolvedAddress[]> {
  const found = await withTimeout(DNS_TIMEOUT_MS, resolve(host), () => []).catch(() => [])
  if (found.length === 0) throw new LookupError(LOOKUP_NOT_FOUND)
  if (!found.every(({ address }) => isAllowed(address))) throw new LookupError(LOOKUP_REFUSED)
  return found.map(({ address }) => ({ address, family: isIP(address) }))
}

/** The `lookup` of `http.request`. It dials the addresses that were checked, so that no second answer can differ. */
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
