import { toId } from '../../base/ids.ts'
import { VERSION } from '../../base/version.ts'
import { rest, type Archive, type DueMonth } from './archive.ts'
import { COLUMNS, type ArchivedEvent } from './columns.ts'
import { readDueEvents } from './due-events.ts'
import {
  announceFile,
  commitFile,
  findCurrent,
  forgetFile,
  setState,
  type ArchiveFile,
} from './files.ts'
import {
  findChange,
  findDamage,
  readGroup,
  readMetadata,
  type WrittenFile,
} from './parquet-reader.ts'
import { startParquet, type ParquetOutput } from './parquet-writer.ts'
import type { ArchiveObject } from './store.ts'

/** A turn ends after so many events. The next turn of the project adds more to the same file. */
const MAX_EVENTS = 5_000_000

/**
 * Writes the due events of a month to its file, after the events that the file has already.
 * Verifies the file, and then makes it the current one. Returns the number of added events. No row
 * is deleted.
 */
export async function writeMonth(archive: Archive, due: DueMonth): Promise<number> {
  const base = await findBase(archive, due)
  try {
    const earlier = base?.file.events ?? 0
    const written = await writeFile(archive, due, base, async output => {
      let added = 0
      for await (const events of readDueEvents(archive, due)) {
        await output.add(events)
        added += events.length
        if (added >= MAX_EVENTS) break
      }
      return added > 0
    })
    return written ? written.rows - earlier : 0
  } finally {
    await base?.object.close()
  }
}

/**
 * Writes a file again. `change` returns the events of a row group that the new file has. All rows
 * of the file must be deleted.
 */
export async function rewriteFile(
  archive: Archive,
  file: ArchiveFile,
  change: (events: ArchivedEvent[]) => ArchivedEvent[],
): Promise<void> {
  const object = await openVerified(archive, file)
  if (!object) return
  try {
    const metadata = await readMetadata(object)
    await writeFile(archive, file, { file, object, isReplaced: true }, async output => {
      for (const group of metadata.row_groups) {
        const startedMs = performance.now()
        await output.add(change(await readGroup(object, metadata, group, COLUMNS)))
        await rest(archive, startedMs)
      }
      return true
    })
  } finally {
    await object.close()
  }
}

interface Base {
  file: ArchiveFile
  object: ArchiveObject
  /** True if the new file does not begin with the row groups of this one. */
  isReplaced?: boolean
}

/** Finds the file that a month has. */
async function findBase(archive: Archive, due: DueMonth): Promise<Base | undefined> {
  const file = await findCurrent(archive.sql, due)
  const object = file && (await openVerified(archive, file))
  return file && object && { file, object }
}

/**
 * Opens a current file. One that is gone from the archive is recorded as missing. Throws if the
 * file has changed since it was verified. Such a file replaces no rows and is copied into no other.
 */
export async function openVerified(
  { sql, store }: Archive,
  file: ArchiveFile,
): Promise<ArchiveObject | undefined> {
  const object = await store.open(file.name)
  if (!object) {
    await setState(sql, file, 'missing')
    return undefined
  }
  const change = await findChange(object, file).catch(async (error: unknown) => {
    await object.close()
    throw error
  })
  if (change === undefined) return object
  await object.close()
  throw new Error(
    `The file ${file.name} in ${store.location} has changed since it was written. ${change}. No event was deleted. Restore the file from a copy.`,
  )
}

/**
 * Writes, verifies and commits a file. `fill` returns false if there is nothing to write. Until the
 * commit, the rows and the earlier file stay as they are. The end of the run deletes the earlier
 * file.
 */
async function writeFile(
  archive: Archive,
  { projectId, month }: Pick<ArchiveFile, 'projectId' | 'month'>,
  base: Base | undefined,
  fill: (output: ParquetOutput) => Promise<boolean>,
): Promise<WrittenFile | undefined> {
  const { sql, store } = archive
  const file = await announceFile(sql, projectId, month)
  const upload = await store.create(file.name)
  let written: WrittenFile | undefined
  try {
    const output = await startParquet(bytes => upload.write(bytes), {
      about: { project: toId('prj', projectId), month, version: VERSION },
      base: base?.isReplaced ? undefined : base?.object,
    })
    if (await fill(output)) {
      written = await output.finish()
      await upload.finish()
      await verify(archive, file, written)
    }
  } catch (error) {
    await upload.abort()
    await store.remove(file.name)
    await forgetFile(sql, file)
    throw error
  }
  if (!written) {
    await upload.abort()
    await forgetFile(sql, file)
    return undefined
  }
  const { rows } = written
  const deleted = base?.isReplaced ? rows : (base?.file.deleted ?? 0)
  const complete = written
  await sql.begin(tx => commitFile(tx, file, complete, { base: base?.file, deleted }))
  return written
}

async function verify({ store }: Archive, file: ArchiveFile, written: WrittenFile): Promise<void> {
  const object = await store.open(file.name)
  try {
    const damage = object ? await findDamage(object, written) : 'It does not exist'
    if (damage === undefined) return
    throw new Error(
      `The file ${file.name} in ${store.location} is not what was written. ${damage}. No event was deleted.`,
    )
  } finally {
    await object?.close()
  }
}
