import type { Queryable, Sql, Tx } from '../../database/sql.ts'

/** A file that `tidings export` wrote. */
export interface ExportedFile {
  /** A uuid. */
  projectId: string
  /** Such as `2026-05`, in UTC. */
  month: string
  /** Its path in the folder of exports. */
  name: string
  events: number
  /** The first and the last seq that it covers. */
  firstSeq: string
  lastSeq: string
}

/** The next events to export: those of one month. */
export interface DueMonth {
  month: string
  /** The start of the next month, or the end of the export. */
  end: Date
}

/** Lists the uuids of the projects to export, by their age. */
export async function listProjects(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from projects where deleted_at is null order by id
  `
  return rows.map(({ id }) => id)
}

/** Returns the last seq of a project that is in a file; 0 without files. */
export async function readExportedSeq(sql: Queryable, projectId: string): Promise<string> {
  const [row] = await sql<[{ seq: string }]>`select exported_seq(${projectId}) as seq`
  return row.seq
}

/**
 * Finds the month of the first event after a seq. Undefined if it was created at `before` or later.
 * Events belong to the month of the first one before them, if a clock was set back.
 */
export async function findDueMonth(
  sql: Queryable,
  projectId: string,
  { after, before }: { after: string; before: Date },
): Promise<DueMonth | undefined> {
  const [row] = await sql<{ month: string; end: Date; is_due: boolean }[]>`
    select
      to_char(e.created_at, 'YYYY-MM') as month,
      least(date_trunc('month', e.created_at) + interval '1 month', ${before}) as end,
      e.created_at < ${before} as is_due
    from events e
    where e.project_id = ${projectId} and e.seq > ${after}
    order by e.seq
    limit 1
  `
  return row?.is_due ? row : undefined
}

/** Counts the erased users of a project. Undefined while a user is being erased. */
export async function countErased(sql: Sql, projectId: string): Promise<number | undefined> {
  return sql.begin(async tx => {
    const [row] = await lockLog(tx, projectId)
    return row.is_erasing ? undefined : row.erased
  })
}

/**
 * Records a file, and whether events of it have been deleted in the meantime. Returns false, and
 * records nothing, if more than `erased` users are erased now: the file can name the others.
 */
export async function recordFile(
  sql: Sql,
  { projectId, month, name, events, firstSeq, lastSeq }: ExportedFile,
  erased: number,
): Promise<boolean> {
  const isRecorded = await sql.begin(async tx => {
    const [row] = await lockLog(tx, projectId)
    if (row.is_erasing || row.erased !== erased) return false
    await tx`
      insert into exports (project_id, name, month, events, first_seq, last_seq)
      values (${projectId}, ${name}, ${`${month}-01`}, ${events}, ${firstSeq}, ${lastSeq})
    `
    return true
  })
  // From now on, deletions mark the file themselves.
  const [{ left }] = await sql<[{ left: string }]>`
    select count(*) as left from events
    where project_id = ${projectId} and seq between ${firstSeq} and ${lastSeq}
  `
  if (Number(left) < events) {
    await sql`
      update exports set has_deleted = true where project_id = ${projectId} and name = ${name}
    `
  }
  return isRecorded
}

interface LogRow {
  is_erasing: boolean
  erased: number
}

/** Locks the log of a project, as the beginning of an erasure does. */
async function lockLog(tx: Tx, projectId: string): Promise<[LogRow]> {
  await tx`select from event_logs where project_id = ${projectId} for update`
  return tx<[LogRow]>`
    select
      exists (select from erasures e where e.project_id = ${projectId}) as is_erasing,
      (select count(*)::int from erased_users u where u.project_id = ${projectId}) as erased
  `
}
