import type { Scope } from '../../../keys/schema.ts'

/** What each scope lets a key do, as people say it. */
export const SCOPE_LABELS: Readonly<Record<Scope, string>> = {
  'events:write': 'post events',
  'events:read': 'read events',
  'identities:write': 'name people',
  'identities:read': 'read people',
}

export const SCOPE_NAMES = Object.keys(SCOPE_LABELS) as readonly Scope[]

/** What a key may do, in a few words. */
export function toScopeSummary(scopes: readonly Scope[]): string {
  if (scopes.length === SCOPE_NAMES.length) return 'may do everything'
  return `may ${new Intl.ListFormat('en').format(scopes.map(scope => SCOPE_LABELS[scope]))}`
}
