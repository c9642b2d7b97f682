import { writeAudit, type Actor } from '../audit/audit.ts'
import type { AuditAction } from '../audit/words.ts'
import type { Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import type { AliasInput, OwnAlias } from './user-schema.ts'
import { noUser } from './users.ts'

/** A user of a project, by the exact user_id. */
export interface UserPlace {
  organizationId: string
  projectId: string
  userId: string
}

/** Who has what of the names that a change of aliases is about. */
interface Claims {
  /** The user's public id. */
  id: string
  owner: string | null
  owner_id: string | null
  is_user_id: boolean
}

/**
 * Gives a user an alias, or with `from` moves it from that user, in one step. Reads resolve it to its owner of the
 * moment, so earlier events follow. Throws `conflict` with the reason, by the same rules as identify, and `not_found`.
 */
export async function addAlias(
  tx: Tx,
  actor: Actor,
  place: UserPlace,
  { alias, from }: AliasInput,
): Promise<OwnAlias> {
  const { projectId, userId } = place
  const {
    id,
    owner,
    owner_id: ownerId,
    is_user_id: isUserId,
  } = await lockClaims(tx, actor, place, alias)
  if (alias === userId) throw new Fault('conflict', "Equals this user's own user_id")
  if (isUserId) throw new Fault('conflict', "Equals another user's user_id")
  if (owner === userId) throw new Fault('conflict', 'Already an alias of this user')
  if (from === undefined && owner !== null) {
    throw new Fault('conflict', 'Already an alias of another user')
  }
  if (from !== undefined && owner !== from) {
    throw new Fault(
      'conflict',
      'The alias does not belong to the user in `from` any more: look again',
    )
  }
  const rows =
    from === undefined
      ? await tx<{ created_at: Date }[]>`
          insert into aliases (project_id, alias, user_id, created_at)
          values (${projectId}, ${alias}, ${userId}, date_trunc('milliseconds', clock_timestamp()))
          returning created_at
        `
      : await tx<{ created_at: Date }[]>`
          update aliases set
            user_id = ${userId},
            created_at = date_trunc('milliseconds', clock_timestamp())
          where project_id = ${projectId} and alias = ${alias} and user_id = ${from}
          returning created_at
        `
  const [row] = rows
  if (!row) throw new Error('the lock on the log did not hold')
  // Ids alone: what the user is called would outlive an erasure there.
  await writeAudit(tx, actor, {
    ...toDeed(place, from === undefined ? 'alias.added' : 'alias.moved', id),
    details: from === undefined ? {} : { from: ownerId },
  })
  return { userId, alias, since: row.created_at.toISOString() }
}

/** Takes an alias from a user: it names nobody then. Throws `not_found`. */
export async function removeAlias(
  tx: Tx,
  actor: Actor,
  place: UserPlace,
  alias: string,
): Promise<void> {
  const { id } = await lockClaims(tx, actor, place, alias)
  const removed = await tx`
    delete from aliases
    where project_id = ${place.projectId} and alias = ${alias} and user_id = ${place.userId}
  `
  if (removed.count === 0) throw new Fault('not_found', 'This user has no such alias')
  await writeAudit(tx, actor, toDeed(place, 'alias.removed', id))
}

/**
 * Locks the project's log, like every writer of aliases, and then looks: so nobody else changes them until the
 * transaction ends. Tells the history of aliases who is at it. Throws `not_found`.
 */
async function lockClaims(
  tx: Tx,
  actor: Actor,
  { projectId, userId }: UserPlace,
  alias: string,
): Promise<Claims> {
  await tx`select set_config('tidings.person', ${actor.personId ?? ''}, true)`
  await tx`select from event_logs where project_id = ${projectId} for update`
  const [claims] = await tx<Claims[]>`
    select
      i.public_id as id, a.user_id as owner, o.public_id as owner_id,
      exists (select from identities where project_id = ${projectId} and user_id = ${alias}) as is_user_id
    from identities i
      left join aliases a on a.project_id = i.project_id and a.alias = ${alias}
      left join identities o on o.project_id = i.project_id and o.user_id = a.user_id
    where i.project_id = ${projectId} and i.user_id = ${userId}
  `
  if (!claims) throw noUser()
  return claims
}

function toDeed({ organizationId, projectId }: UserPlace, action: AuditAction, target: string) {
  return { action, organizationId, projectId, target }
}
