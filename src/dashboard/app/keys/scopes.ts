import type { Scope } from '../../../keys/schema.ts'
import { getLocale, t } from '../locales/translate.tsx'

/** Each scope; true if a new key has it, unless the admin decides otherwise. */
const DEFAULTS: Readonly<Record<Scope, boolean>> = {
  'events:write': true,
  'events:read': true,
  'identities:write': true,
  'identities:read': true,
  'identities:erase': false,
}

export const SCOPE_NAMES = Object.keys(DEFAULTS) as readonly Scope[]

/** Returns whether a new key has the scope, unless the admin decides otherwise. */
export function isDefault(scope: Scope): boolean {
  return DEFAULTS[scope]
}

/** A short summary of a key's scopes. */
export function toScopeSummary(scopes: readonly Scope[]): string {
  if (scopes.length === SCOPE_NAMES.length) return t('keys.all')
  if (scopes.length === SCOPE_NAMES.length - 1 && scopes.every(isDefault)) {
    return t('keys.allButErase')
  }
  const names = scopes.map(scope => t(`keys.scope.${scope}`))
  return t('keys.may', { scopes: new Intl.ListFormat(getLocale()).format(names) })
}
