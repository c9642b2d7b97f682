import { isIP } from 'node:net'
import { Fault } from '../../base/errors.ts'
import type { Site } from '../../http/site.ts'

/** This server as WebAuthn names it. Passkeys belong to the id, and work on the origin alone. */
export interface RelyingParty {
  id: string
  origin: string
}

/**
 * Returns the relying party of a site. Throws `conflict` if the address is an IP address or is not
 * secure, because browsers have no passkeys there.
 */
export function toRelyingParty({ url }: Pick<Site, 'url'>): RelyingParty {
  const { hostname, protocol, origin } = new URL(url)
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost')
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) > 0
  if (!isAddress && (protocol === 'https:' || isLocal)) return { id: hostname, origin }
  throw new Fault(
    'conflict',
    `Passkeys need a name and https, and this server is ${origin}. Set BASE_URL to such an address.`,
  )
}
