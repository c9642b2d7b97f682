import type { Scope } from '../../../keys/schema.ts'

/** The label of each scope. */
export const SCOPE_LABELS: Readonly<Record<Scope, string>> = {
  'events:write': 'send events',
  'events:read': 'read events',
  'identities:write': 'identify users',
  'identities:read': 'read users',
}

export const SCOPE_NAMES = Object.keys(SCOPE_LABELS) as readonly Scope[]

/** A short summary of a key's scopes. */
export function toScopeSummary(scopes: readonly Scope[]): string {
  if (scopes.length === SCOPE_NAMES.length) return 'all permissions'
  return `may ${new Intl.ListFormat('en').format(scopes.map(scope => SCOPE_LABELS[scope]))}`
}
