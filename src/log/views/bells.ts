import { writeAudit } from '../../access/audit/audit.ts'
import { lockProject } from '../../access/organizations/projects.ts'
import { Fault } from '../../base/errors.ts'
import type { Tx } from '../../database/sql.ts'
import { getView, type ViewCall } from './views.ts'

/** The most views whose matches notify an account in a project, and those with any bell. */
const MAX_BELLS = 10
const MAX_BELLED_VIEWS = 100

/**
 * Turns notifications of a view's matches on or off. Throws `not_found`, and `conflict` when too
 * many views have a bell.
 */
export async function setBell(
  tx: Tx,
  call: ViewCall,
  { id, isOn }: { id: string; isOn: boolean },
): Promise<void> {
  const { organizationId, projectId, accountId } = call
  await lockProject(tx, projectId)
  const { uuid, hasBell } = await getView(tx, call, id)
  if (isOn && !hasBell) {
    const [{ own, all }] = await tx<[{ own: number; all: number }]>`
      select
        count(*) filter (where b.account_id = ${accountId})::int as own,
        count(distinct b.view_id) filter (where b.view_id <> ${uuid})::int as all
      from view_bells b
        -- The bells of former members stay, in case they return.
        join memberships m on m.account_id = b.account_id and m.organization_id = ${organizationId}
      where b.project_id = ${projectId}
    `
    if (own >= MAX_BELLS || all >= MAX_BELLED_VIEWS) {
      throw new Fault('conflict', 'Too many views have a bell. Turn another one off first.')
    }
    await tx`
      insert into view_bells (project_id, view_id, account_id)
      values (${projectId}, ${uuid}, ${accountId})
    `
  } else if (!isOn) {
    await tx`
      delete from view_bells
      where project_id = ${projectId} and view_id = ${uuid} and account_id = ${accountId}
    `
  }
  await writeAudit(tx, call.actor, {
    action: 'notifications.edited',
    organizationId,
    projectId,
    target: id,
    details: { state: isOn ? 'on' : 'default' },
  })
}
