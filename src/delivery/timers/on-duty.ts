import { writeAudit } from '../../access/audit/audit.ts'
import type { CallOn } from '../../access/guard/guard.ts'
import { parseId, toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { invalidField } from '../../http/validation.ts'
import type { OnDuty, OnDutyInput } from './on-duty-schema.ts'

const MAX_DAYS = 90

/** Returns the member on duty. One who has left the organization is not. */
export async function getOnDuty(sql: Queryable, projectId: string): Promise<OnDuty> {
  const [row] = await sql<{ id: string; name: string; until: Date }[]>`
    select r.id, r.name, p.on_duty_until as until
    from projects p
      join memberships m on m.organization_id = p.organization_id and m.account_id = p.on_duty_id
      join accounts r on r.id = m.account_id
    where p.id = ${projectId} and p.on_duty_until > now()
  `
  if (!row) return { member: null, until: null }
  return { member: { id: toId('per', row.id), name: row.name }, until: row.until.toISOString() }
}

/**
 * Puts a member on duty, or nobody. Throws `InvalidRequest` for somebody who is no member, and for
 * an end that is over or too far.
 */
export async function setOnDuty(
  tx: Tx,
  { projectId, organizationId, actor }: CallOn<'project'>,
  input: OnDutyInput | null,
): Promise<OnDuty> {
  if (input) {
    const leftMs = Date.parse(input.until) - Date.now()
    if (leftMs <= 0 || leftMs > MAX_DAYS * 86_400_000) {
      throw invalidField('until', 'out_of_range', `Must be at most ${MAX_DAYS} days from now`)
    }
  }
  const accountId = input && (parseId('per', input.memberId) ?? null)
  await tx`
    update projects set on_duty_id = ${accountId}, on_duty_until = ${input && input.until}::timestamptz
    where id = ${projectId}
  `
  const onDuty = await getOnDuty(tx, projectId)
  if (input && !onDuty.member) {
    throw invalidField('memberId', 'invalid_value', 'Is no member of the organization')
  }
  await writeAudit(tx, actor, {
    action: 'onDuty.edited',
    organizationId,
    projectId,
    target: toId('prj', projectId),
    details: { member: onDuty.member?.id ?? null, until: onDuty.until },
  })
  return onDuty
}
