import { Fault } from '../../base/errors.ts'
import { pause } from '../../base/functions.ts'
import { toId } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { startLoop, type Loop } from '../../base/loop.ts'
import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import type { Tx } from '../../database/sql.ts'
import { writeAudit } from '../audit/audit.ts'
import { withdrawLinksOfOrganization } from '../sign-in/reset-links.ts'
import { lockOrganization, type OrganizationCall } from './organizations.ts'
import { projectNotFound } from './projects.ts'

const EVERY_MS = 20_000
const BATCH = 1_000
const MAX_PAUSE_MS = 5_000

const log = logger('accounts')

/**
 * Deletes a project. From the commit on, its keys are rejected, and so are events that wait for its
 * log. The reaper deletes its rows later.
 */
export async function deleteProject(
  tx: Tx,
  call: OrganizationCall & { projectId: string },
): Promise<void> {
  await lockOrganization(tx, call, 'project.delete')
  await endProject(tx, call)
}

/**
 * Deletes the project with sample data, or does so only if it is `projectId`. Returns its uuid.
 * Throws `not_found` if there is none, and `conflict` if it may have other data.
 */
export async function deleteSampleProject(
  tx: Tx,
  call: OrganizationCall,
  projectId?: string,
): Promise<string> {
  await lockOrganization(tx, call, 'sampleProject.delete')
  const [found] = await tx<{ id: string }[]>`
    select id
    from projects
    where organization_id = ${call.organizationId} and is_sample and deleted_at is null
      ${projectId === undefined ? tx`` : tx`and id = ${projectId}`}
  `
  if (!found) throw new Fault('not_found', 'This organization has no project with sample data')
  await requireNoOwnData(tx, found.id)
  await endProject(tx, { ...call, projectId: found.id })
  return found.id
}

/** Throws `conflict` if a project has or had API keys or webhooks. */
async function requireNoOwnData(tx: Tx, projectId: string): Promise<void> {
  const used = await tx`
    select from api_keys where project_id = ${projectId}
    union all
    select from webhooks where project_id = ${projectId}
    limit 1
  `
  if (used.count === 0) return
  throw new Fault(
    'conflict',
    'This project has or had API keys or webhooks, so it may have data of your own. An owner can delete it in its settings.',
  )
}

async function endProject(
  tx: Tx,
  { organizationId, projectId, actor }: OrganizationCall & { projectId: string },
): Promise<void> {
  const [found] = await markProjectsDeleted(tx, organizationId, projectId)
  if (!found) throw projectNotFound()
  await writeAudit(tx, actor, {
    action: 'project.deleted',
    organizationId,
    projectId,
    target: toId('prj', projectId),
    details: { name: found.name },
  })
}

/** Deletes an organization with its projects, invites and memberships. */
export async function deleteOrganization(tx: Tx, call: OrganizationCall): Promise<void> {
  const { organizationId, actor } = call
  await lockOrganization(tx, call, 'organization.delete')
  const projects = await markProjectsDeleted(tx, organizationId)
  await tx`delete from invites where organization_id = ${organizationId}`
  await withdrawLinksOfOrganization(tx, actor, organizationId)
  await tx`delete from memberships where organization_id = ${organizationId}`
  const [deleted] = await tx<{ name: string }[]>`
    update organizations set deleted_at = now() where id = ${organizationId} returning name
  `
  const record = {
    action: 'organization.deleted',
    target: toId('org', organizationId),
    details: { name: deleted?.name ?? '', projects: projects.length },
  } as const
  await writeAudit(tx, actor, { ...record, organizationId })
  // Also in the log of the installation, because nobody can read the organization's log any more.
  await writeAudit(tx, actor, record)
}

/** Marks projects of an organization as deleted, all or one. Returns those that existed. */
async function markProjectsDeleted(
  tx: Tx,
  organizationId: string,
  projectId?: string,
): Promise<{ name: string }[]> {
  const projects = await tx<{ id: string; name: string }[]>`
    select id, name
    from projects
    where organization_id = ${organizationId} and deleted_at is null
      ${projectId === undefined ? tx`` : tx`and id = ${projectId}`}
    order by id
    for no key update
  `
  const ids = toArray(projects.map(({ id }) => id))
  // Every writer locks logs in this order. An append that waits for a deleted log responds with
  // 401.
  await tx`
    select from event_logs
    where project_id = any(${ids}::uuid[])
    order by project_id
    for update
  `
  await tx`delete from event_logs where project_id = any(${ids}::uuid[])`
  await tx`
    update api_keys set revoked_at = now()
    where id in (
      select id
      from api_keys
      where project_id = any(${ids}::uuid[]) and revoked_at is null
      order by id
      for no key update
    )
  `
  await tx`update projects set deleted_at = now() where id = any(${ids}::uuid[])`
  return projects
}

/**
 * Deletes the rows of deleted projects and organizations, at once and every 20 s. After each batch
 * it pauses for as long as the batch took, so that other work gets at least half of the database.
 * `stop` waits for the current batch.
 */
export function startReaper(pool: Pool): Loop {
  return startLoop({
    everyMs: EVERY_MS,
    // Another process may have stopped before it was done.
    runsAtOnce: true,
    round: signal => reap(pool, signal),
    onFailure(reason) {
      log.warning('Deleting rows of deleted projects failed, and will be retried: {reason}', {
        reason,
      })
    },
  })
}

/**
 * Deletes all rows of deleted projects and organizations, unless another process does. `signal`
 * stops it early.
 */
export async function reap(pool: Pool, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted) {
    const startedMs = performance.now()
    const [step] = await pool.run(sql => sql<[{ found: boolean }]>`select reap(${BATCH}) as found`)
    if (!step.found) return
    await pause(Math.min(performance.now() - startedMs, MAX_PAUSE_MS), signal)
  }
}
