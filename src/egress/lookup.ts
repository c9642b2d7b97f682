import { lookup as lookUpHost } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { within } from '../within.ts'
import type { AddressGuard } from './addresses.ts'

export interface ResolvedAddress {
  address: string
  family: number
}

/** The addresses of a host; rejects, or returns none, when it has none. */
export type Resolver = (host: string) => Promise<readonly ResolvedAddress[]>

const DNS_TIMEOUT_MS = 5_000

/** What a lookup ended with, as the `code` of the error. */
export const REFUSED = 'EGRESS_REFUSED'
export const NOT_FOUND = 'EGRESS_NOT_FOUND'

class LookupError extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}

/** The system's own: it knows /etc/hosts, and the names of a container's neighbours. */
export const systemResolver: Resolver = host => lookUpHost(host, { all: true, verbatim: true })

/**
 * Resolves a host for a connection. Rejects with the code REFUSED unless every one of its addresses is allowed: a name
 * that has a public and a private address is somebody's trick.
 */
export async function resolveAllowed(
  host: string,
  resolve: Resolver,
  isAllowed: AddressGuard,
): Promise<ResolvedAddress[]> {
  const found = await within(DNS_TIMEOUT_MS, resolve(host), () => []).catch(() => [])
  if (found.length === 0) throw new LookupError(NOT_FOUND)
  if (!found.every(({ address }) => isAllowed(address))) throw new LookupError(REFUSED)
  return found.map(({ address }) => ({ address, family: isIP(address) }))
}

/** For `http.request`: what was judged is what is dialled, so that no second answer can differ from the first. */
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
