import { toArray } from '../../database/arrays.ts'
import type { Tx } from '../../database/sql.ts'
import {
  insertErasedNames,
  listNextNames,
  markListed,
  type ErasedName,
  type ErasureKey,
} from './erased-users.ts'

const PAGE_SIZE = 1_000
const STEP_MS = 1_000

/** The effect of a list of erased users on a database. */
export interface RepeatedErasures {
  /** The erasures that are newer than the database. */
  listed: number
  /** Those of them whose user the database had. */
  erased: number
  /** The names that another key has hashed. They cannot be compared. */
  unknown: number
}

interface Erasure {
  projectId: string
  names: ErasedName[]
}

/**
 * Repeats the erasures of a list that a restored database does not have, in the transaction of the
 * restore. Memory use grows with the list, and not with the database.
 */
export async function repeatErasures(
  tx: Tx,
  key: ErasureKey | undefined,
  list: AsyncIterable<ErasedName>,
): Promise<RepeatedErasures> {
  const { erasures, unknown } = await findMissing(tx, key, list)
  if (!key || erasures.size === 0) return { listed: 0, erased: 0, unknown }
  for (const [id, { names }] of erasures) {
    const { projectId, erasedAt, keyId } = names[0]!
    await tx`
      insert into erased_users (id, project_id, erased_at, key_id)
      values (${id}, ${projectId}, ${erasedAt}, ${keyId})
    `
    await insertErasedNames(tx, names)
  }
  let erased = 0
  for (const projectId of new Set(erasures.values().map(one => one.projectId))) {
    const own = [...erasures].filter(([, one]) => one.projectId === projectId)
    const found = await findNames(tx, key, projectId, new Map(own))
    for (const [id, names] of found) await repeat(tx, key, { projectId, id, names })
    erased += found.size
  }
  return { listed: erasures.size, erased, unknown }
}

/** Returns the erasures of existing projects that the database lacks. */
async function findMissing(
  tx: Tx,
  key: ErasureKey | undefined,
  list: AsyncIterable<ErasedName>,
): Promise<{ erasures: Map<string, Erasure>; unknown: number }> {
  const [row] = await tx<[{ projects: string[] | null; erased: string[] | null }]>`
    with erased as materialized (select json_agg(u.id) as ids from erased_users u)
    select
      (select json_agg(p.id) from projects p where p.deleted_at is null) as projects,
      (select e.ids from erased e) as erased
  `
  const [projects, known] = [new Set(row.projects), new Set(row.erased)]
  const erasures = new Map<string, Erasure>()
  let unknown = 0
  for await (const name of list) {
    const { erasedUserId, projectId } = name
    if (!projects.has(projectId) || known.has(erasedUserId)) continue
    if (name.erasureKeyId !== key?.id) {
      unknown++
      continue
    }
    const erasure = erasures.get(erasedUserId) ?? { projectId, names: [] }
    erasures.set(erasedUserId, erasure)
    erasure.names.push(name)
  }
  return { erasures, unknown }
}

interface FoundNames {
  userId: string | undefined
  all: string[]
}

/** Returns the names of each erasure that occur in the project, in clear. */
async function findNames(
  tx: Tx,
  key: ErasureKey,
  projectId: string,
  erasures: ReadonlyMap<string, Erasure>,
): Promise<Map<string, FoundNames>> {
  const byHash = new Map<string, { id: string; isUserId: boolean }[]>()
  for (const [id, { names }] of erasures) {
    for (const { hash, isUserId } of names) {
      byHash.set(hash, [...(byHash.get(hash) ?? []), { id, isUserId }])
    }
  }
  const found = new Map<string, FoundNames>()
  // Every column that can have a name of a user.
  const rows = tx<{ name: string }[]>`
    select user_id as name from identities where project_id = ${projectId}
    union select alias from aliases where project_id = ${projectId}
    union select user_ref from events where project_id = ${projectId} and user_ref is not null
    union select user_id from idempotency_keys where project_id = ${projectId} and user_id is not null
    union select unnest(other_names) from idempotency_keys where project_id = ${projectId}
    union select user_id from alias_changes where project_id = ${projectId}
    union select alias from alias_changes where project_id = ${projectId}
    union select other from alias_changes where project_id = ${projectId} and other is not null
  `.cursor(PAGE_SIZE)
  for await (const page of rows) {
    for (const { name } of page) {
      for (const { id, isUserId } of byHash.get(key.hash(projectId, name).toString('hex')) ?? []) {
        const names = found.get(id) ?? { userId: undefined, all: [] }
        found.set(id, names)
        names.all.push(name)
        if (isUserId) names.userId = name
      }
    }
  }
  return found
}

/** Erases a user again, from start to end. */
async function repeat(
  tx: Tx,
  key: ErasureKey,
  { projectId, id, names }: { projectId: string; id: string; names: FoundNames },
): Promise<void> {
  // Without the user_id, events of the time before the identify have an alias of the user.
  const userId = names.userId ?? names.all[0]!
  await tx`
    select repeat_erasure(
      project => ${projectId},
      erasure_id => ${id},
      name => ${userId},
      names => ${toArray(names.all)}::text[]
    )
  `
  // The backup can have an erasure in progress, which comes first.
  for (let hasEnded = false; !hasEnded;) {
    const rows = await tx`
      select from continue_erasure(${projectId}, ${userId}, ${STEP_MS})
    `
    hasEnded = rows.count === 0
    await listNames(tx, key, { projectId, userId })
  }
}

/** Adds the names of an erasure to the list in the database. The file of the restore has them. */
async function listNames(
  tx: Tx,
  key: ErasureKey,
  target: { projectId: string; userId: string },
): Promise<void> {
  for (;;) {
    const names = await listNextNames(tx, key, target)
    if (names.length === 0) return
    await markListed(tx, target.projectId, names)
  }
}
