import { toReason } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { areStandbysCurrent } from '../../database/standbys.ts'
import type { Archive, DueMonth } from './archive.ts'
import { listDueMonths, takeTurns } from './due.ts'
import { eraseInFile } from './erased-events.ts'
import {
  findCurrent,
  forgetFile,
  listLeftovers,
  listMissing,
  listReplaced,
  listUnfinished,
  setState,
  type ArchiveFile,
} from './files.ts'
import { checkPlace } from './marker.ts'
import { writeMonth } from './month-file.ts'
import { deleteRows } from './row-deletion.ts'

const log = logger('archive')

/** The outcome of a run. */
export interface ArchiveResult {
  /** Events that were written to files. */
  archived: number
  /** Events whose rows were deleted, also those that an earlier run had archived. */
  deleted: number
  /** Archived events from which an erased user was removed. */
  erased: number
  /** Why some projects failed. They are tried again in the next run. */
  problems: string[]
}

/**
 * Moves due events to the archive. Each step can end at any moment, and the next run continues it:
 * it first deletes what an interrupted run left, then the rows of events that are archived.
 * Organizations take turns, one file at a time. A project that fails does not stop the others.
 */
export async function runArchive(archive: Archive): Promise<ArchiveResult> {
  const result: ArchiveResult = { archived: 0, deleted: 0, erased: 0, problems: [] }
  const failed = new Set<string>()

  /** Does a part of the run for a project, unless another part of it failed. */
  async function attempt(projectId: string, work: () => Promise<void>): Promise<void> {
    if (failed.has(projectId)) return
    try {
      await work()
    } catch (error) {
      if (archive.signal?.aborted) throw error
      failed.add(projectId)
      const problem = `Project ${toId('prj', projectId)}: ${toReason(error)}`
      result.problems.push(problem)
      log.error('Archiving failed and will be retried: {problem}', { problem })
    }
  }
  const finish = async (file: ArchiveFile) => {
    result.deleted += await deleteRows(archive, file)
  }

  await checkPlace(archive)
  await tidyUp(archive)
  const { sql } = archive
  for (const file of await listUnfinished(sql)) {
    await attempt(file.projectId, async () => {
      if (file.deleted < file.events || file.dropped.length > 0) await finish(file)
      const current = await findCurrent(sql, file)
      if (current) result.erased += await eraseInFile(archive, current)
    })
  }

  for (;;) {
    const due = (await listDueMonths(sql, archive)).filter(
      ({ projectId }) => !failed.has(projectId),
    )
    if (due.length === 0) break
    for (const month of takeTurns(due)) {
      await attempt(month.projectId, async () => {
        const written = await archiveMonth(archive, month)
        // Every due event is hidden. They are purged or restored before the next run.
        if (written === 0) failed.add(month.projectId)
        result.archived += written
        const file = await findCurrent(sql, month)
        if (file) await finish(file)
      })
    }
  }
  // The promotion of a standby that lacks a commit makes the replaced file the current one again.
  // Then the next run deletes it.
  if (await areStandbysCurrent(sql)) await remove(archive, await listReplaced(sql))
  return result
}

async function archiveMonth(archive: Archive, due: DueMonth): Promise<number> {
  const events = await writeMonth(archive, due)
  if (events > 0) {
    log.info('Archived {events} events', {
      events,
      month: due.month,
      project: toId('prj', due.projectId),
    })
  }
  return events
}

/** Deletes files that are not needed any more. Uses missing files again that are back. */
async function tidyUp(archive: Archive): Promise<void> {
  const { sql, store } = archive
  await remove(archive, await listLeftovers(sql))
  for (const file of await listMissing(sql)) {
    const object = await store.open(file.name)
    if (object) await setState(sql, file, 'current')
    await object?.close()
  }
}

async function remove({ sql, store }: Archive, files: readonly ArchiveFile[]): Promise<void> {
  for (const file of files) {
    await store.remove(file.name)
    await forgetFile(sql, file)
  }
}
