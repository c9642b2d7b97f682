import type { Queryable } from '../../src/db/sql.ts'

/** What the audit log tells of an organization, oldest first: `action target`, and who did it by uuid. */
export async function listDeeds(
  sql: Queryable,
  organizationId: string,
): Promise<{ action: string; target: string | null; personId: string | null; details: any }[]> {
  const rows = await sql<
    { action: string; target: string | null; person_id: string | null; details: any }[]
  >`
    select action, target, person_id, details
    from audit_log
    where organization_id = ${organizationId}
    order by id
  `
  return rows.map(({ action, target, person_id: personId, details }) => ({
    action,
    target,
    personId,
    details,
  }))
}

/** The actions alone. */
export async function listActions(sql: Queryable, organizationId: string): Promise<string[]> {
  return (await listDeeds(sql, organizationId)).map(({ action }) => action)
}
