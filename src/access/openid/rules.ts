import { writeAudit } from '../audit/audit.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { toId } from '../../base/ids.ts'
import { lockOrganization, type OrganizationCall } from '../organizations/organizations.ts'
import { isAtLeast, type Role } from '../guard/permissions.ts'
import type { SignInRule } from './schema.ts'

/** A person whom a provider, or the proxy, has authenticated. */
export interface Visitor {
  /** The name of the provider, or `proxy`. */
  provider: string
  /** Verified; undefined if the provider has not verified it. */
  email: string | undefined
  groups: readonly string[]
}

/** Returns the sign-in rules of an organization. */
export async function listRules(sql: Queryable, organizationId: string): Promise<SignInRule[]> {
  return await sql<SignInRule[]>`
    select provider, kind, value, role
    from sign_in_rules
    where organization_id = ${organizationId}
    order by provider, kind, value
  `
}

/**
 * Replaces the sign-in rules of an organization. Memberships change when their accounts sign in
 * next.
 */
export async function replaceRules(
  tx: Tx,
  call: OrganizationCall,
  rules: readonly SignInRule[],
): Promise<SignInRule[]> {
  await lockOrganization(tx, call, 'signInRules.edit')
  const { organizationId, actor } = call
  await tx`delete from sign_in_rules where organization_id = ${organizationId}`
  const column = (name: keyof SignInRule) => toArray(rules.map(rule => rule[name]))
  await tx`
    insert into sign_in_rules (organization_id, provider, kind, value, role)
    select ${organizationId}::uuid, n.provider, n.kind, n.value, n.role
    from unnest(
      ${column('provider')}::text[], ${column('kind')}::text[], ${column('value')}::text[],
      ${column('role')}::text[]
    ) as n (provider, kind, value, role)
    on conflict (organization_id, provider, kind, value) do update set role = excluded.role
  `
  await writeAudit(tx, actor, {
    action: 'signInRules.edited',
    organizationId,
    target: toId('org', organizationId),
    details: { rules: rules.length },
  })
  return listRules(tx, organizationId)
}

/**
 * Returns the role that the rules of each organization give to a visitor, by the organization's
 * uuid. Of several rules, the highest role counts.
 */
export async function findRoles(
  sql: Queryable,
  { provider, email, groups }: Visitor,
): Promise<Map<string, Role>> {
  const rows = await sql<{ organization_id: string; role: Role }[]>`
    select r.organization_id, r.role
    from sign_in_rules r
      join organizations o on o.id = r.organization_id and o.deleted_at is null
    where r.provider = ${provider} and (
      r.kind = 'group' and r.value = any(${toArray(groups)}::text[])
      or r.kind = 'domain' and r.value = ${email?.split('@')[1] ?? null}
    )
  `
  const roles = new Map<string, Role>()
  for (const { organization_id: id, role } of rows) {
    const known = roles.get(id)
    if (!known || !isAtLeast(known, role)) roles.set(id, role)
  }
  return roles
}
