import type { Scope } from '../../../access/keys/schema.ts'
import { toEnglish } from '../locale.ts'

/** The scope that a key gets only when an admin chooses it. */
const CHOSEN: Scope = 'identities:erase'

/** The label of each scope. */
export const SCOPE_LABELS: Readonly<Record<Scope, string>> = {
  'events:write': 'send events',
  'events:read': 'read events',
  'identities:write': 'identify users',
  'identities:read': 'read users',
  'identities:erase': 'erase users',
}

export const SCOPE_NAMES = Object.keys(SCOPE_LABELS) as readonly Scope[]

/** Returns whether a new key has the scope, unless the admin decides otherwise. */
export function isDefault(scope: Scope): boolean {
  return scope !== CHOSEN
}

/** A short summary of a key's scopes. */
export function toScopeSummary(scopes: readonly Scope[]): string {
  if (scopes.length === SCOPE_NAMES.length) return 'full access'
  if (scopes.length === SCOPE_NAMES.length - 1 && !scopes.includes(CHOSEN)) {
    return `full access, except to ${SCOPE_LABELS[CHOSEN]}`
  }
  const labels = scopes.map(scope => SCOPE_LABELS[scope])
  return `may ${new Intl.ListFormat(toEnglish()).format(labels)}`
}
