import { parseId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { invalidField } from '../../http/validation.ts'
import type { Escalation } from './escalation-schema.ts'

/**
 * Throws `InvalidRequest` unless the stages are in the order of their minutes, and name members of
 * the organization alone.
 */
export async function checkEscalation(
  sql: Queryable,
  organizationId: string,
  { stages = [] }: Escalation,
): Promise<void> {
  if (stages.some(({ afterMinutes }, nth) => afterMinutes <= (stages[nth - 1]?.afterMinutes ?? -1)))
    throw invalidField('escalation', 'invalid_value', 'A stage must come after the one before it')
  const ids = stages.flatMap(({ to }) =>
    typeof to === 'object' && 'members' in to ? to.members : [],
  )
  if (ids.length === 0) return
  const accounts = [...new Set(ids.map(id => parseId('per', id) ?? null))]
  const members = await sql`
    select from memberships
    where organization_id = ${organizationId} and account_id = any(${toArray(accounts)}::uuid[])
  `
  if (members.count < accounts.length)
    throw invalidField('escalation', 'invalid_value', 'A stage names somebody who is no member')
}

/** Saves how a channel, of a project, tells members. Null restores the defaults. */
export async function saveEscalation(
  tx: Tx,
  [projectId, channelId]: [string, string],
  escalation: Escalation | null,
): Promise<void> {
  await (escalation
    ? tx`
        insert into escalations (project_id, channel_id, escalation)
        values (${projectId}, ${channelId}, ${JSON.stringify(escalation)}::text::jsonb)
        on conflict (project_id, channel_id) do update set escalation = excluded.escalation
      `
    : tx`delete from escalations where project_id = ${projectId} and channel_id = ${channelId}`)
}
