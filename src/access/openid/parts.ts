import { Fault } from '../../base/errors.ts'
import type { ProviderSettings } from '../../base/config/openid.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { SessionGuard, SessionGuardOptions } from '../guard/guard.ts'
import type { ProviderClients } from './provider-client.ts'

/** The dependencies of the routes of OpenID Connect and of the proxy header. */
export interface OpenidParts extends SessionGuardOptions {
  guard: SessionGuard
  /** Ordered by label. */
  providers: readonly ProviderSettings[]
  secrets: Pick<Secrets, 'seal' | 'open'>
  clients: ProviderClients
  /** True if AUTH_PROXY_HEADER is set. */
  hasProxyHeader: boolean
  /** Returns the e-mail address in the proxy header of a request from a trusted proxy. */
  findProxyEmail(request: Request): string | undefined
}

/** Returns the provider with a name. Throws `not_found`. */
export function getProvider(
  providers: readonly ProviderSettings[],
  name: string,
): ProviderSettings {
  const found = providers.find(one => one.name === name)
  if (found) return found
  throw new Fault('not_found', 'No provider has this name')
}
