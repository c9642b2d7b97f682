import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { toReason } from '../../base/errors.ts'
import { pause } from '../../base/functions.ts'
import { toId } from '../../base/ids.ts'
import { ensureFolder, syncFolder } from '../../base/private-files.ts'
import type { Sql } from '../../database/sql.ts'
import type { ExportedEvent, Format } from './columns.ts'
import {
  findDueMonth,
  listProjects,
  readExportedSeq,
  countErased,
  recordFile,
  type DueMonth,
  type ExportedFile,
} from './exports.ts'
import { readPart } from './month-events.ts'

/** How often a month is written while members erase users. */
const MAX_TRIES = 20
const RETRY_MS = 1_000

export interface ExportOptions {
  sql: Sql
  /** An absolute path. */
  folder: string
  format: Format
  /** The end of the export, which is not in the future. */
  before: Date
  /** Stops the export. Recorded files stay. */
  signal?: AbortSignal | undefined
}

/** The outcome of an export. */
export interface ExportResult {
  files: { project: string; month: string; name: string; events: number }[]
  /** Why projects failed. The next export continues there. */
  problems: string[]
}

/**
 * Copies the events of all projects to files, one for each project and month, from the last
 * exported event on. A file is written, read back, and then recorded. Retention deletes no event
 * that is not in a recorded file, where it is asked to. No file is ever replaced.
 */
export async function runExport(options: ExportOptions): Promise<ExportResult> {
  const { sql, signal } = options
  const result: ExportResult = { files: [], problems: [] }
  for (const projectId of await listProjects(sql)) {
    const project = toId('prj', projectId)
    try {
      for await (const { month, name, events } of exportProject(options, projectId)) {
        result.files.push({ project, month, name, events })
      }
    } catch (error) {
      if (signal?.aborted) throw error
      result.problems.push(`Project ${project}: ${toReason(error)}`)
    }
  }
  return result
}

async function* exportProject(
  { sql, before, ...options }: ExportOptions,
  projectId: string,
): AsyncGenerator<ExportedFile> {
  for (let after = await readExportedSeq(sql, projectId); ;) {
    const due = await findDueMonth(sql, projectId, { after, before })
    if (!due) return
    const file = await exportMonth({ sql, before, ...options }, projectId, { ...due, after })
    if (file.events > 0) yield file
    after = file.lastSeq
  }
}

async function exportMonth(
  options: ExportOptions,
  projectId: string,
  due: DueMonth & { after: string },
): Promise<ExportedFile> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const erased = await countErased(options.sql, projectId)
    const file = erased !== undefined && (await tryMonth(options, projectId, due, erased))
    if (file) return file
    await pause(RETRY_MS, options.signal)
    options.signal?.throwIfAborted()
  }
  throw new Error(`Members are erasing users of ${due.month}. Try again later.`)
}

/** Returns undefined if a user has been erased in the meantime. */
async function tryMonth(
  { sql, folder, format, signal }: ExportOptions,
  projectId: string,
  { month, after, end }: DueMonth & { after: string },
  erased: number,
): Promise<ExportedFile | undefined> {
  let firstSeq: string | undefined
  let lastSeq = after
  async function* toPages(): AsyncGenerator<ExportedEvent[]> {
    for await (const page of readPart(sql, { projectId, after, end })) {
      signal?.throwIfAborted()
      firstSeq ??= page.firstSeq
      lastSeq = page.lastSeq
      yield page.events
    }
  }

  const project = toId('prj', projectId)
  ensureFolder(join(folder, project))
  const name = findFreeName(folder, `${project}/${month}`, format)
  const path = join(folder, name)
  const partial = `${path}.partial`
  rmSync(partial, { force: true })
  try {
    const written = await format.write(partial, toPages())
    const file = {
      projectId,
      month,
      name,
      events: written.events,
      firstSeq: firstSeq ?? lastSeq,
      lastSeq,
    }
    // Members have deleted all events of the month. They are purged soon.
    if (written.events === 0) return file
    syncFile(partial)
    const found = await format.read(partial)
    if (found.events !== written.events || found.sha256 !== written.sha256) {
      throw new Error(`${partial} is not what was written. Check the disk of ${folder}.`)
    }
    renameSync(partial, path)
    syncFolder(join(folder, project))
    // After a crash before this line, the next export writes the month to another file.
    if (await recordFile(sql, file, erased)) return file
    rmSync(path)
    return undefined
  } finally {
    rmSync(partial, { force: true })
  }
}

/** Returns a name that no file has: the file of an export that was not recorded stays. */
function findFreeName(folder: string, start: string, { extension }: Format): string {
  for (let number = 1; ; number++) {
    const name = `${start}${number === 1 ? '' : `-${number}`}.${extension}`
    if (!existsSync(join(folder, name))) return name
  }
}

function syncFile(path: string): void {
  const fd = openSync(path, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
