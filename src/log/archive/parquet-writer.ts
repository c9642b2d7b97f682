import { createHash } from 'node:crypto'
import type { FileMetaData } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { COLUMNS, SCHEMA, toDigest, toSize, type ArchivedEvent } from './columns.ts'
import { hasAllColumns, readGroup, readMetadata, type WrittenFile } from './parquet-reader.ts'
import type { ArchiveObject } from './store.ts'

/** A row group has at most this many rows, and about this many bytes of text. */
const GROUP_ROWS = 20_000
const GROUP_BYTES = 16 * 1024 * 1024
const COPY_BYTES = 4 * 1024 * 1024
/** `PAR1`, with which every Parquet file begins. */
const HEADER_BYTES = 4

export interface ParquetOutput {
  /** Adds events. Memory holds one row group. */
  add(events: readonly ArchivedEvent[]): Promise<void>
  finish(): Promise<WrittenFile>
}

interface ParquetOptions {
  /** Key and value pairs of the file. */
  about: Readonly<Record<string, string>>
  /**
   * A file of the same kind, whose events come first. Its row groups are copied byte by byte,
   * unless it lacks a column.
   */
  base?: ArchiveObject | undefined
}

/** Starts a Parquet file. `write` gets its bytes in order. */
export async function startParquet(
  write: (bytes: Uint8Array) => Promise<void>,
  { about, base }: ParquetOptions,
): Promise<ParquetOutput> {
  const hash = createHash('sha256')
  let bytes = 0
  const put = async (part: Uint8Array) => {
    hash.update(part)
    bytes += part.length
    await write(part)
  }
  const buffer = new ByteWriter()
  const flush = async () => {
    const part = buffer.getBytes().slice()
    buffer.index = 0
    await put(part)
  }
  const writer = new ParquetWriter({
    writer: Object.assign(buffer, { flush, finish: flush }),
    schema: SCHEMA,
    createdBy: 'Tidings',
    kvMetadata: Object.entries(about).map(([key, value]) => ({ key, value })),
  })
  const digests: string[] = []
  let copiedGroups = 0
  const former = base && { object: base, metadata: await readMetadata(base) }
  const isCopied = former !== undefined && hasAllColumns(former.metadata)
  if (isCopied) {
    await flush()
    buffer.offset += await copyGroups(former.object, former.metadata, put)
    writer.row_groups.push(...former.metadata.row_groups)
    writer.num_rows = former.metadata.num_rows
    copiedGroups = former.metadata.row_groups.length
  }

  let group: ArchivedEvent[] = []
  let groupBytes = 0
  async function endGroup(): Promise<void> {
    if (group.length === 0) return
    const events = group
    ;[group, groupBytes] = [[], 0]
    digests.push(toDigest(events))
    const columnData = COLUMNS.map(name => ({
      name,
      data: events.map(event => event[name]),
      // Page indexes would stand between the row groups and the metadata.
      offsetIndex: false,
    }))
    await writer.write({ columnData, rowGroupSize: events.length })
  }

  async function add(events: readonly ArchivedEvent[]): Promise<void> {
    for (const event of events) {
      group.push(event)
      groupBytes += toSize(event)
      if (group.length === GROUP_ROWS || groupBytes >= GROUP_BYTES) await endGroup()
    }
  }

  if (former && !isCopied) {
    const { object, metadata } = former
    for (const one of metadata.row_groups)
      await add(await readGroup(object, metadata, one, COLUMNS))
  }
  return {
    add,
    async finish() {
      await endGroup()
      await writer.finish()
      const rows = Number(writer.num_rows)
      return { rows, bytes, sha256: hash.digest('hex'), copiedGroups, digests }
    },
  }
}

/** Copies the bytes of all row groups, which stay at their offsets. Returns their number. */
async function copyGroups(
  base: ArchiveObject,
  metadata: FileMetaData,
  put: (bytes: Uint8Array) => Promise<void>,
): Promise<number> {
  // The metadata and its length of four bytes come last, before another PAR1.
  const end = base.byteLength - 2 * HEADER_BYTES - metadata.metadata_length
  for (let at = HEADER_BYTES; at < end; at += COPY_BYTES) {
    await put(await base.read(at, Math.min(at + COPY_BYTES, end)))
  }
  return end - HEADER_BYTES
}
