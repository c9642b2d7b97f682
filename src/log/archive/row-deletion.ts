import { toArray } from '../../database/arrays.ts'
import { rest, type Archive } from './archive.ts'
import type { ArchivedEvent } from './columns.ts'
import { findCurrent, type ArchiveFile } from './files.ts'
import { openVerified, rewriteFile } from './month-file.ts'
import { readGroup, readMetadata } from './parquet-reader.ts'

const BATCH = 500
/** The pause after a batch, as a multiple of its time. */
const PAUSE_FACTOR = 6
/** The pause when another transaction holds one of the rows. */
const BUSY_MS = 50
/** The number of times that a batch is tried before the run leaves the file for the next one. */
const MAX_TRIES = 200

/**
 * Deletes the rows of the events that are in a month's current file, and only of those: their seqs
 * are read from the file. Then leaves out of the file what members deleted in the meantime. Returns
 * the number of events whose rows are gone.
 */
export async function deleteRows(archive: Archive, file: ArchiveFile): Promise<number> {
  const { sql } = archive
  const object = await openVerified(archive, file)
  if (!object) return 0
  let before = 0
  let done = file.deleted
  try {
    const metadata = await readMetadata(object)
    for (const group of metadata.row_groups) {
      const count = Number(group.num_rows)
      if (before + count > done) {
        const all = await readGroup(object, metadata, group, ['seq', 'userRef'])
        const events = all.slice(done - before)
        for (let at = 0; at < events.length; at += BATCH) {
          const batch = events.slice(at, at + BATCH)
          await deleteBatch(archive, file, done, batch)
          done += batch.length
        }
      }
      before += count
    }
  } finally {
    await object.close()
  }
  const current = await findCurrent(sql, file)
  if (current && current.dropped.length > 0) {
    const dropped = new Set(current.dropped)
    await rewriteFile(archive, current, events => events.filter(({ seq }) => !dropped.has(seq)))
  }
  return done - file.deleted
}

async function deleteBatch(
  archive: Archive,
  { projectId, id }: ArchiveFile,
  done: number,
  events: readonly Pick<ArchivedEvent, 'seq' | 'userRef'>[],
): Promise<void> {
  const toSeqs = (some: typeof events) => toArray(some.map(({ seq }) => String(seq)))
  const withUser = events.filter(({ userRef }) => userRef !== null)
  for (let tries = 1; ; tries++) {
    const startedMs = performance.now()
    const [row] = await archive.sql<[{ is_done: boolean }]>`
      select delete_archived_events(
        project => ${projectId},
        file => ${id},
        done => ${done},
        seqs => ${toSeqs(events)}::bigint[],
        user_seqs => ${toSeqs(withUser)}::bigint[]
      ) as is_done
    `
    await rest(archive, row.is_done ? startedMs : startedMs - BUSY_MS, PAUSE_FACTOR)
    if (row.is_done) return
    if (tries === MAX_TRIES) {
      throw new Error('Other work holds events that are archived. The next run deletes them.')
    }
  }
}
