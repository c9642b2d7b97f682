import { createHash } from 'node:crypto'
import {
  parquetMetadataAsync,
  parquetReadObjects,
  type AsyncBuffer,
  type FileMetaData,
  type RowGroup,
} from 'hyparquet'
import { COLUMNS, toDigest, type ArchivedEvent } from './columns.ts'
import type { ArchiveObject } from './store.ts'

/** The content that a file must have. It is compared with what can be read from it. */
export interface WrittenFile {
  rows: number
  bytes: number
  /** Of the whole file, in hex. */
  sha256: string
  /** The number of row groups that were copied from another file. */
  copiedGroups: number
  /** The digests of the other row groups. */
  digests: string[]
}

const READ_BYTES = 4 * 1024 * 1024
// The decoder of the library removes a byte order mark from the start of a text.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const parsers = { stringFromBytes: (bytes: Uint8Array) => bytes && decoder.decode(bytes) }

export function readMetadata(object: ArchiveObject): Promise<FileMetaData> {
  return parquetMetadataAsync(toBuffer(object))
}

/** Returns true if a file has all columns. Files of earlier versions may lack some. */
export function hasAllColumns({ schema }: FileMetaData): boolean {
  return COLUMNS.every(column => schema.some(({ name }) => name === column))
}

/**
 * Returns the events of a row group, with the given columns alone. A column that the file lacks is
 * null.
 */
export async function readGroup<Name extends keyof ArchivedEvent>(
  object: ArchiveObject,
  metadata: FileMetaData,
  group: RowGroup,
  columns: readonly Name[],
): Promise<Pick<ArchivedEvent, Name>[]> {
  const isWhole = columns.length === COLUMNS.length
  const present = new Set(metadata.schema.map(({ name }) => name))
  const rows = await parquetReadObjects({
    file: isWhole ? await loadGroup(object, group) : toBuffer(object),
    metadata: { ...metadata, row_groups: [group], num_rows: group.num_rows },
    columns: columns.filter(name => present.has(name)),
    parsers,
  })
  for (const name of columns) if (!present.has(name)) for (const row of rows) row[name] = null
  // The schema of the file guarantees the types.
  return rows as unknown as Pick<ArchivedEvent, Name>[]
}

/** Reads a row group at once, because each column would be a request to a bucket. */
async function loadGroup(object: ArchiveObject, { columns }: RowGroup): Promise<AsyncBuffer> {
  const chunks = columns.map(({ meta_data }) => {
    const {
      dictionary_page_offset,
      data_page_offset = 0n,
      total_compressed_size = 0n,
    } = meta_data ?? {}
    const start = Number(dictionary_page_offset ?? data_page_offset)
    return { start, end: start + Number(total_compressed_size) }
  })
  const first = Math.min(...chunks.map(({ start }) => start))
  const bytes = await object.read(first, Math.max(...chunks.map(({ end }) => end)))
  return {
    byteLength: object.byteLength,
    slice: (start, end) =>
      bytes.slice(start - first, end === undefined ? undefined : end - first).buffer as ArrayBuffer,
  }
}

/**
 * Reads a file back. Returns why it differs from what was written, or undefined if it does not:
 * its size, its checksum, its number of rows, and the values of every event in it.
 */
export async function findDamage(
  object: ArchiveObject,
  written: WrittenFile,
): Promise<string | undefined> {
  const change = await findChange(object, written)
  if (change !== undefined) return change
  const metadata = await readMetadata(object)
  const groups = metadata.row_groups
  const count = groups.reduce((sum, group) => sum + Number(group.num_rows), 0)
  if (Number(metadata.num_rows) !== written.rows || count !== written.rows) {
    return `It has ${count} events instead of ${written.rows}`
  }
  if (groups.length !== written.copiedGroups + written.digests.length) {
    return `It has ${groups.length} row groups`
  }
  for (const [index, digest] of written.digests.entries()) {
    const group = groups[written.copiedGroups + index]
    const events = group && (await readGroup(object, metadata, group, COLUMNS))
    if (!events || toDigest(events) !== digest) {
      return `The events of row group ${written.copiedGroups + index} differ`
    }
  }
  return undefined
}

/**
 * Says how a file differs from the size and checksum that it was verified with. Undefined if it
 * does not.
 */
export async function findChange(
  object: ArchiveObject,
  { bytes, sha256 }: Pick<WrittenFile, 'bytes' | 'sha256'>,
): Promise<string | undefined> {
  if (object.byteLength !== bytes) {
    return `It has ${object.byteLength} bytes instead of ${bytes}`
  }
  return (await toSha256(object)) === sha256 ? undefined : 'Its checksum differs'
}

async function toSha256(object: ArchiveObject): Promise<string> {
  const hash = createHash('sha256')
  for (let at = 0; at < object.byteLength; at += READ_BYTES) {
    hash.update(await object.read(at, Math.min(at + READ_BYTES, object.byteLength)))
  }
  return hash.digest('hex')
}

function toBuffer(object: ArchiveObject): AsyncBuffer {
  return {
    byteLength: object.byteLength,
    async slice(start, end = object.byteLength) {
      const from = start < 0 ? object.byteLength + start : start
      // `read` returns an array of its own, from the first byte of its buffer.
      return (await object.read(from, end)).buffer as ArrayBuffer
    },
  }
}
