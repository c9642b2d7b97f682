import type { ProviderSettings } from '../../base/config/openid.ts'
import { Fault } from '../../base/errors.ts'

/** Returns the provider with a name. Throws `not_found`. */
export function getProvider(
  providers: readonly ProviderSettings[],
  name: string,
): ProviderSettings {
  const found = providers.find(one => one.name === name)
  if (found) return found
  throw new Fault('not_found', 'No provider has this name')
}
