import { randomUUID } from 'node:crypto'
import { toId } from '../../base/ids.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import type { WrittenFile } from './parquet-reader.ts'

/** A file of the archive, as the database knows it. */
export interface ArchiveFile {
  id: string
  projectId: string
  /** Such as `2026-05`. */
  month: string
  /** Its path in the archive. */
  name: string
  events: number
  /** Its size and SHA-256 (hex) when it was verified; 0 and empty before. */
  bytes: number
  sha256: string
  /** The number of its events whose rows have been deleted, from the start of the file. */
  deleted: number
  /** The seqs of events to leave out of the file, because a member deleted them. */
  dropped: bigint[]
  /** The seqs of events whose user was erased while they had rows. The erasure has counted them. */
  counted: bigint[]
  /** Users who were erased before this time are not in the file. */
  checkedAt: Date
}

type State = 'writing' | 'current' | 'obsolete' | 'missing'

/**
 * The time of an erasure is read some time before its transaction commits. So erasures of this long
 * before a check count as later ones.
 */
export const ERASURE_MARGIN = '10 minutes'

/**
 * Announces a file, so that no crash leaves an unknown one. Users whose erasure is in progress may
 * still be in events that are read from now on.
 */
export async function announceFile(
  sql: Queryable,
  projectId: string,
  month: string,
): Promise<ArchiveFile> {
  const id = randomUUID()
  const name = `project=${toId('prj', projectId)}/month=${month}/events-${id}.parquet`
  const [row] = await sql<[{ checked_at: Date }]>`
    insert into archive_files (id, project_id, month, name, state, checked_at, written_at)
    select
      ${id}, ${projectId}, ${`${month}-01`}, ${name}, 'writing',
      least(
        now() - ${ERASURE_MARGIN}::interval, (select r.erased_at from oldest_running_erasure(${projectId}) r)
      ),
      now()
    returning checked_at
  `
  const { checked_at: checkedAt } = row
  const content = { events: 0, bytes: 0, sha256: '', deleted: 0, dropped: [], counted: [] }
  return { id, projectId, month, name, ...content, checkedAt }
}

/**
 * Makes a complete and verified file the current one of its month, in place of `base`. Its first
 * `deleted` events have no rows any more. Throws if another run has changed one of the files.
 */
export async function commitFile(
  tx: Tx,
  file: ArchiveFile,
  written: WrittenFile,
  { base, deleted }: { base: ArchiveFile | undefined; deleted: number },
): Promise<void> {
  if (base) {
    const replaced = await tx`
      update archive_files set state = 'obsolete' where id = ${base.id} and state = 'current'
    `
    if (replaced.count !== 1) throw changedByOther(base)
  }
  const committed = await tx`
    update archive_files set
      state = 'current', events = ${written.rows}, bytes = ${written.bytes},
      sha256 = ${Buffer.from(written.sha256, 'hex')}, deleted = ${deleted}, written_at = clock_timestamp()
      ${
        base
          ? tx`
            , checked_at = least(checked_at, ${base.checkedAt}),
            counted = (select b.counted from archive_files b where b.id = ${base.id})
          `
          : tx``
      }
    where id = ${file.id} and state = 'writing'
  `
  if (committed.count !== 1) throw changedByOther(file)
}

function changedByOther({ name }: ArchiveFile): Error {
  return new Error(`Another run has changed the file ${name}. No event was deleted.`)
}

export async function setState(sql: Queryable, { id }: ArchiveFile, state: State): Promise<void> {
  await sql`update archive_files set state = ${state} where id = ${id}`
}

/**
 * Forgets the files that a run of the installation before a restore was writing or had replaced.
 * The database does not know which of them the archive needs, so they stay in it.
 */
export async function forgetLeftovers(sql: Queryable): Promise<void> {
  await sql`delete from archive_files where state in ('writing', 'obsolete')`
}

/** Removes the row of a file that does not exist any more. */
export async function forgetFile(sql: Queryable, { id }: ArchiveFile): Promise<void> {
  await sql`delete from archive_files where id = ${id}`
}

/** Returns the current file of a month; undefined if it has none. */
export async function findCurrent(
  sql: Queryable,
  { projectId, month }: Pick<ArchiveFile, 'projectId' | 'month'>,
): Promise<ArchiveFile | undefined> {
  const [file] = await selectFiles(
    sql,
    sql`state = 'current' and project_id = ${projectId} and month = ${`${month}-01`}`,
  )
  return file
}

/** Lists files that no run completed, files that were replaced, and those of deleted projects. */
export function listLeftovers(sql: Queryable): Promise<ArchiveFile[]> {
  return selectFiles(
    sql,
    sql`
      state in ('writing', 'obsolete')
      or not exists (select from projects p where p.id = f.project_id and p.deleted_at is null)
    `,
  )
}

/** Lists files that were replaced. */
export function listReplaced(sql: Queryable): Promise<ArchiveFile[]> {
  return selectFiles(sql, sql`state = 'obsolete'`)
}

/** Lists current files with rows to delete, or without a check for the last erasures. */
export function listUnfinished(sql: Queryable): Promise<ArchiveFile[]> {
  return selectFiles(
    sql,
    sql`
      state = 'current' and (
        deleted < events or dropped <> '{}' or exists (
          select from erased_users_of(f.project_id) u where u.erased_at >= f.checked_at
        )
      )
    `,
  )
}

/** Lists the missing files of months that have no other file. */
export function listMissing(sql: Queryable): Promise<ArchiveFile[]> {
  return selectFiles(
    sql,
    sql`
      state = 'missing' and not exists (
        select from archive_files o
        where o.project_id = f.project_id and o.month = f.month and o.state = 'current'
      )
    `,
  )
}

/** The number of files and events in the archive. */
export interface ArchiveSize {
  files: number
  events: number
  /** Files that were not found. */
  missing: number
}

export async function readSize(sql: Queryable): Promise<ArchiveSize> {
  const [row] = await sql<[ArchiveSize]>`
    select
      count(*) filter (where state = 'current')::int as files,
      coalesce(sum(events) filter (where state = 'current'), 0)::float8 as events,
      count(*) filter (where state = 'missing')::int as missing
    from archive_files
  `
  return row
}

/** Selects rows of archive_files as `f`. */
async function selectFiles(sql: Queryable, condition: Fragment): Promise<ArchiveFile[]> {
  const rows = await sql<FileRow[]>`
    select
      f.id, f.project_id, to_char(f.month, 'YYYY-MM') as month, f.name, f.events, f.bytes,
      coalesce(encode(f.sha256, 'hex'), '') as sha256, f.deleted, to_json(f.dropped::text[]) as dropped,
      to_json(f.counted::text[]) as counted, f.checked_at
    from archive_files f
    where ${condition}
    order by f.project_id, f.month, f.id
  `
  return rows.map(row => ({
    id: row.id,
    projectId: row.project_id,
    month: row.month,
    name: row.name,
    events: Number(row.events),
    bytes: Number(row.bytes),
    sha256: row.sha256,
    deleted: Number(row.deleted),
    dropped: row.dropped.map(BigInt),
    counted: row.counted.map(BigInt),
    checkedAt: row.checked_at,
  }))
}

interface FileRow {
  id: string
  project_id: string
  month: string
  name: string
  events: string
  bytes: string
  sha256: string
  deleted: string
  dropped: string[]
  counted: string[]
  checked_at: Date
}
