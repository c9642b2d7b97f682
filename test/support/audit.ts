import type { Queryable } from '../../src/database/sql.ts'

/**
 * Returns an organization's audit entries as `action target` with the actor's uuid, oldest first.
 */
export async function listAuditEntries(sql: Queryable, organizationId: string) {
  const rows = await sql<
    { action: string; target: string | null; accountId: string | null; details: any }[]
  >`
    select action, target, account_id as "accountId", details
    from audit_log
    where organization_id = ${organizationId}
    order by id
  `
  return [...rows]
}

/** Returns the actions alone. */
export async function listAuditActions(sql: Queryable, organizationId: string): Promise<string[]> {
  return (await listAuditEntries(sql, organizationId)).map(({ action }) => action)
}
