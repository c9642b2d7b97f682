import type { Queryable } from '../../database/sql.ts'
import { rest, type Archive } from './archive.ts'
import type { ArchivedEvent } from './columns.ts'
import { ERASURE_MARGIN, setState, type ArchiveFile } from './files.ts'
import { rewriteFile } from './month-file.ts'
import { readGroup, readMetadata } from './parquet-reader.ts'
import type { ErasureKey } from '../identities/erased-users.ts'

/** Finds the last erasure of a name; undefined if it was never erased. */
type FindErasure = (name: string) => Erasure | undefined

interface Erasure {
  id: string
  at: Date
}

/**
 * Removes users from a file who were erased since the file was checked last. Events of a later user
 * with the same name stay. Returns the number of events that changed. The erasures count those
 * whose rows were gone before.
 */
export async function eraseInFile(archive: Archive, file: ArchiveFile): Promise<number> {
  const { sql, store, erasureKey } = archive
  const checkedAt = await readCheckTime(sql, file)
  const erasures = await listErasures(sql, file)
  let erased = 0
  if (erasures.size > 0) {
    if (!erasureKey) throw new Error('The erasure key is missing. Start a server once.')
    const find = createFinder(erasureKey, file.projectId, erasures)
    const object = await store.open(file.name)
    if (!object) {
      await setState(sql, file, 'missing')
      return 0
    }
    const counts = new Map<string, number>()
    const counted = new Set(file.counted)
    try {
      const metadata = await readMetadata(object)
      for (const group of metadata.row_groups) {
        const startedMs = performance.now()
        const names = ['seq', 'userId', 'userRef', 'createdAt'] as const
        for (const event of await readGroup(object, metadata, group, names)) {
          const erasure = findErasure(event, find)
          if (!erasure) continue
          erased++
          if (!counted.has(event.seq)) counts.set(erasure.id, (counts.get(erasure.id) ?? 0) + 1)
        }
        await rest(archive, startedMs)
      }
    } finally {
      await object.close()
    }
    if (erased > 0) {
      await rewriteFile(archive, file, events =>
        events.map(event =>
          findErasure(event, find) ? { ...event, userId: null, userRef: null } : event,
        ),
      )
      await addCounts(sql, file, counts)
    }
  }
  await sql`
    update archive_files set checked_at = ${checkedAt}
    where project_id = ${file.projectId} and month = ${`${file.month}-01`} and state = 'current'
  `
  return erased
}

/** Returns a time before which all erasures of the project have ended. */
async function readCheckTime(sql: Queryable, { projectId }: ArchiveFile): Promise<Date> {
  const [row] = await sql<[{ at: Date }]>`
    select least(now() - ${ERASURE_MARGIN}::interval, r.erased_at) as at
    from oldest_running_erasure(${projectId}) r
  `
  return row.at
}

/** Lists the names that were erased since the check of a file, by their hashes in hex. */
async function listErasures(
  sql: Queryable,
  { projectId, checkedAt }: ArchiveFile,
): Promise<Map<string, Erasure>> {
  const rows = await sql<{ hash: string; id: string; at: Date }[]>`
    select encode(n.hash, 'hex') as hash, u.id, u.erased_at as at
    from erased_users u
      join erased_names n on n.project_id = u.project_id and n.erased_user_id = u.id
    where u.project_id = ${projectId} and u.erased_at >= ${checkedAt}
      and not exists (select from erasures e where e.project_id = u.project_id and e.id = u.id)
    order by u.erased_at
  `
  return new Map(rows.map(({ hash, id, at }) => [hash, { id, at }]))
}

/** Hashes each name once, as long as it is among the last ones. */
function createFinder(
  key: ErasureKey,
  projectId: string,
  erasures: ReadonlyMap<string, Erasure>,
): FindErasure {
  const known = new Map<string, Erasure | undefined>()
  return name => {
    if (!known.has(name)) {
      if (known.size === MAX_KNOWN) known.clear()
      known.set(name, erasures.get(key.hash(projectId, name).toString('hex')))
    }
    return known.get(name)
  }
}

const MAX_KNOWN = 100_000

function findErasure(
  { userId, userRef, createdAt }: Pick<ArchivedEvent, 'userId' | 'userRef' | 'createdAt'>,
  find: FindErasure,
): Erasure | undefined {
  for (const name of new Set([userId, userRef])) {
    const erasure = name === null ? undefined : find(name)
    if (erasure && createdAt <= erasure.at) return erasure
  }
  return undefined
}

/** Adds to the numbers of events that erasures report. */
async function addCounts(
  sql: Queryable,
  { projectId }: ArchiveFile,
  counts: ReadonlyMap<string, number>,
): Promise<void> {
  for (const [id, count] of counts) {
    await sql`
      update erased_users set events = events + ${count}
      where project_id = ${projectId} and id = ${id}
    `
  }
}
