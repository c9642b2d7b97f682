import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import type { AuditAction } from '../../access/audit/actions.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import type { Page } from '../../http/envelope.ts'
import {
  DEFAULT_PAGE_LIMIT,
  parseCursor,
  toCursor,
  toPage,
  type PageQuery,
} from '../../http/paging.ts'
import { toId } from '../../base/ids.ts'
import { lockLog } from '../channels/channels.ts'
import type { AliasChange, AliasInput, UserAlias } from './user-schema.ts'
import { resolveUser, userNotFound, type UserRef } from './users.ts'

/**
 * Adds an alias to a user, or with `from` moves it from that user. Reads resolve an alias to its
 * current owner, so the alias's earlier events move with it. Throws `not_found`, and `conflict` for
 * the reasons that identify also reports.
 */
export async function addAlias(
  tx: Tx,
  actor: Actor,
  place: UserRef,
  { alias, from }: AliasInput,
): Promise<UserAlias> {
  const { projectId, userId } = place
  const { id, owner, owner_id: ownerId, is_user_id, now } = await lockAlias(tx, actor, place, alias)
  if (alias === userId) throw new Fault('conflict', "Equals this user's own user_id")
  if (is_user_id) throw new Fault('conflict', "Equals another user's user_id")
  if (owner === userId) throw new Fault('conflict', 'Already an alias of this user')
  if (from === undefined && owner !== null) {
    throw new Fault('conflict', 'Already an alias of another user')
  }
  if (from !== undefined && owner !== from) {
    throw new Fault(
      'conflict',
      'The alias no longer belongs to the user in `from`. Reload the user.',
    )
  }
  const [count] = await tx<[{ free: number; max: number }]>`
    select count_free_aliases(${projectId}, ${userId}) as free, max_aliases() as max
  `
  if (count.free <= 0) {
    throw new Fault(
      'conflict',
      `A user can have at most ${count.max.toLocaleString('en')} aliases. Remove one first.`,
    )
  }
  await tx`
    insert into aliases (project_id, alias, user_id, created_at)
    values (${projectId}, ${alias}, ${userId}, ${now})
    on conflict (project_id, alias) do update set user_id = excluded.user_id, created_at = excluded.created_at
  `
  await recordChanges(
    tx,
    projectId,
    from === undefined
      ? [{ userId, alias, change: 'added' }]
      : [
          { userId: from, alias, change: 'moved to', other: userId },
          { userId, alias, change: 'moved from', other: from },
        ],
  )
  // Ids only, because the audit log outlives an erasure.
  await writeAudit(tx, actor, {
    ...toEntry(place, from === undefined ? 'alias.added' : 'alias.moved', id),
    details: from === undefined ? {} : { from: ownerId },
  })
  return { userId, alias, since: now.toISOString() }
}

/** Removes an alias of a user. Throws `not_found`. */
export async function removeAlias(
  tx: Tx,
  actor: Actor,
  place: UserRef,
  alias: string,
): Promise<void> {
  const { id } = await lockAlias(tx, actor, place, alias)
  const removed = await tx`
    delete from aliases
    where project_id = ${place.projectId} and alias = ${alias} and user_id = ${place.userId}
  `
  if (removed.count === 0) throw new Fault('not_found', 'This user has no such alias')
  await recordChanges(tx, place.projectId, [{ userId: place.userId, alias, change: 'removed' }])
  await writeAudit(tx, actor, toEntry(place, 'alias.removed', id))
}

/** Adds changes to the history. */
async function recordChanges(
  tx: Tx,
  projectId: string,
  changes: { userId: string; alias: string; change: AliasChange['change']; other?: string }[],
): Promise<void> {
  await tx`
    select record_alias_changes(
      project => ${projectId},
      user_ids => ${toArray(changes.map(({ userId }) => userId))}::text[],
      names => ${toArray(changes.map(({ alias }) => alias))}::text[],
      changes => ${toArray(changes.map(({ change }) => change))}::text[],
      others => ${toArray(changes.map(({ other }) => other))}::text[]
    )
  `
}

/**
 * Lists a page of the changes of a user's aliases, newest first. Throws `not_found` for a user
 * without an identity.
 */
export async function listAliasChanges(
  sql: Queryable,
  projectId: string,
  reference: string,
  query: PageQuery,
): Promise<Page<AliasChange>> {
  const before = parseCursor(query.cursor, [/^\d{1,14}$/, /^\d{1,18}$/])
  const { limit = DEFAULT_PAGE_LIMIT } = query
  const [user] = await sql<{ user_id: string }[]>`
    select user_id
    from identities
    where project_id = ${projectId} and user_id = ${resolveUser(sql, projectId, reference)}
  `
  if (!user) throw userNotFound()
  const rows = await sql<
    {
      at: Date
      id: string
      alias: string
      change: AliasChange['change']
      other: string | null
      account_id: string | null
      account_name: string | null
    }[]
  >`
    with page as materialized (
      select h.at, h.id, h.alias, h.change, h.other, h.account_id
      from alias_changes h
      where h.project_id = ${projectId} and h.user_id = ${user.user_id}
        ${
          before
            ? sql`and (h.at, h.id) < (${new Date(Number(before[0]))}, ${before[1] ?? null}::bigint)`
            : sql``
        }
      order by h.at desc, h.id desc
      limit ${limit + 1}
    )
    select h.at, h.id, h.alias, h.change, h.other, p.id as account_id, p.name as account_name
    from page h
      left join accounts p on p.id = h.account_id
    order by h.at desc, h.id desc
  `
  const { items, nextCursor } = toPage(rows, query, ({ at, id }) => toCursor([at.getTime(), id]))
  return {
    items: items.map(({ at, alias, change, other, account_id: accountId, account_name: name }) => ({
      at: at.toISOString(),
      alias,
      change,
      other,
      person: accountId === null ? null : { id: toId('per', accountId), name: name ?? '' },
    })),
    nextCursor,
  }
}

interface Names {
  /** The user's public id. */
  id: string
  owner: string | null
  owner_id: string | null
  is_user_id: boolean
  /** The time of the database, in whole milliseconds. */
  now: Date
}

/**
 * Locks the project's log, like every writer of aliases. Then reads the user's public id and the
 * owner of the alias. Also sets the account for alias_changes. Throws `not_found`.
 */
async function lockAlias(
  tx: Tx,
  actor: Actor,
  { projectId, userId }: UserRef,
  alias: string,
): Promise<Names> {
  await tx`select set_config('tidings.account', ${actor.accountId ?? ''}, true)`
  await lockLog(tx, projectId)
  const [names] = await tx<Names[]>`
    select
      i.public_id as id, a.user_id as owner, o.public_id as owner_id,
      exists (select from identities where project_id = ${projectId} and user_id = ${alias}) as is_user_id,
      date_trunc('milliseconds', clock_timestamp()) as now
    from identities i
      left join aliases a on a.project_id = i.project_id and a.alias = ${alias}
      left join identities o on o.project_id = i.project_id and o.user_id = a.user_id
    where i.project_id = ${projectId} and i.user_id = ${userId}
  `
  if (!names) throw userNotFound()
  return names
}

function toEntry({ organizationId, projectId }: UserRef, action: AuditAction, target: string) {
  return { action, organizationId, projectId, target }
}
