import { toArray } from '../../database/arrays.ts'
import type { Tx } from '../../database/sql.ts'
import {
  insertErasedNames,
  type ClearName,
  type ErasedName,
  type ErasureKey,
} from './erased-users.ts'

const PAGE_SIZE = 1_000

/** The effect of a list of erased users on a database. */
export interface RepeatedErasures {
  /** The erasures that are newer than the database. */
  listed: number
  /** Those of them whose user the database had. */
  erased: number
  /** The names that another key has hashed. They cannot be compared. */
  unknown: number
}

/**
 * Begins the erasures of a list that a restored database does not have, in the transaction of the
 * restore. The eraser of the next server ends them. Memory use grows with the list, and not with
 * the database.
 */
export async function repeatErasures(
  tx: Tx,
  key: ErasureKey | undefined,
  list: AsyncIterable<ErasedName>,
): Promise<RepeatedErasures> {
  const { missing, unknown } = await findMissing(tx, key, list)
  const erasures = Map.groupBy(missing, ({ erasedUserId }) => erasedUserId)
  if (!key || erasures.size === 0) return { listed: 0, erased: 0, unknown }
  for (const [id, names] of erasures) {
    const { projectId, erasedAt, keyId } = names[0]!
    await tx`
      insert into erased_users (id, project_id, erased_at, key_id)
      values (${id}, ${projectId}, ${erasedAt}, ${keyId})
    `
    await insertErasedNames(tx, names)
  }
  const found = await findNames(tx, key, missing)
  for (const names of found.values()) {
    const [{ erasedUserId, projectId }] = names as [ClearName]
    // Without the user_id, events of the time before the identify have an alias of the user.
    const { name } = names.find(({ isUserId }) => isUserId) ?? names[0]!
    await tx`
      select repeat_erasure(
        project => ${projectId},
        erasure_id => ${erasedUserId},
        name => ${name},
        names => ${toArray(names.map(one => one.name))}::text[]
      )
    `
  }
  return { listed: erasures.size, erased: found.size, unknown }
}

/** Returns the names of those erasures of existing projects that the database lacks. */
async function findMissing(
  tx: Tx,
  key: ErasureKey | undefined,
  list: AsyncIterable<ErasedName>,
): Promise<{ missing: ErasedName[]; unknown: number }> {
  const [row] = await tx<[{ projects: string[] | null; erased: string[] | null }]>`
    with erased as materialized (select json_agg(u.id) as ids from erased_users u)
    select
      (select json_agg(p.id) from projects p where p.deleted_at is null) as projects,
      (select e.ids from erased e) as erased
  `
  const [projects, known] = [new Set(row.projects), new Set(row.erased)]
  const missing: ErasedName[] = []
  let unknown = 0
  for await (const name of list) {
    if (!projects.has(name.projectId) || known.has(name.erasedUserId)) continue
    if (name.erasureKeyId === key?.id) missing.push(name)
    else unknown++
  }
  return { missing, unknown }
}

/** Returns the listed names that occur in their project, in clear, by erasure. */
async function findNames(
  tx: Tx,
  key: ErasureKey,
  listed: readonly ErasedName[],
): Promise<Map<string, ClearName[]>> {
  const byHash = Map.groupBy(listed, ({ hash }) => hash)
  const projects = toArray([...new Set(listed.map(({ projectId }) => projectId))])
  const found: ClearName[] = []
  // Every column that can have a name of a user.
  const rows = tx<{ project_id: string; name: string }[]>`
    with names (project_id, name) as (
      select project_id, user_id from identities
      union select project_id, alias from aliases
      union select project_id, user_ref from events where user_ref is not null
      union select project_id, user_id from idempotency_keys where user_id is not null
      union select project_id, unnest(other_names) from idempotency_keys
      union select project_id, user_id from alias_changes
      union select project_id, alias from alias_changes
      union select project_id, other from alias_changes where other is not null
    )
    select project_id, name from names where project_id = any(${projects}::uuid[])
  `.cursor(PAGE_SIZE)
  for await (const page of rows) {
    for (const { project_id, name } of page) {
      const own = byHash.get(key.hash(project_id, name)) ?? []
      found.push(...own.map(one => ({ ...one, name })))
    }
  }
  return Map.groupBy(found, ({ erasedUserId }) => erasedUserId)
}
