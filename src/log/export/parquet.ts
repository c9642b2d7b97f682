import { createHash } from 'node:crypto'
import { open, type FileHandle } from 'node:fs/promises'
import { parquetMetadataAsync, parquetReadObjects, type AsyncBuffer } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { addToHash, COLUMNS, SCHEMA, toSize, type ExportedEvent, type Format } from './columns.ts'

/** A row group has at most this many rows, and about this many bytes of text. */
const GROUP_ROWS = 20_000
const GROUP_BYTES = 16 * 1024 * 1024
// The decoder of the library removes a byte order mark from the start of a text.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const parsers = { stringFromBytes: (bytes: Uint8Array) => bytes && decoder.decode(bytes) }

/** Apache Parquet, with a row group for up to 20,000 events. */
export const parquet: Format = {
  extension: 'parquet',
  async write(path, pages) {
    await using file = await open(path, 'wx', 0o600)
    const hash = createHash('sha256')
    let events = 0
    const buffer = new ByteWriter()
    const flush = async () => {
      await file.appendFile(buffer.getBytes())
      buffer.index = 0
    }
    const writer = new ParquetWriter({
      writer: Object.assign(buffer, { flush, finish: flush }),
      schema: SCHEMA,
      createdBy: 'Tidings',
    })
    for await (const group of toGroups(pages)) {
      addToHash(hash, group)
      events += group.length
      const columnData = COLUMNS.map(name => ({ name, data: group.map(event => event[name]) }))
      await writer.write({ columnData, rowGroupSize: group.length })
    }
    await writer.finish()
    return { events, sha256: hash.digest('hex') }
  },
  async read(path) {
    await using file = await open(path)
    const buffer = await toBuffer(file)
    const metadata = await parquetMetadataAsync(buffer)
    const hash = createHash('sha256')
    let events = 0
    for (const group of metadata.row_groups) {
      const rows = await parquetReadObjects({
        file: buffer,
        metadata: { ...metadata, row_groups: [group], num_rows: group.num_rows },
        columns: [...COLUMNS],
        parsers,
      })
      // The schema of the file guarantees the types.
      addToHash(hash, rows as unknown as ExportedEvent[])
      events += rows.length
    }
    return { events, sha256: hash.digest('hex') }
  },
}

async function* toGroups(pages: AsyncIterable<ExportedEvent[]>): AsyncGenerator<ExportedEvent[]> {
  let group: ExportedEvent[] = []
  let bytes = 0
  for await (const page of pages) {
    for (const event of page) {
      group.push(event)
      bytes += toSize(event)
      if (group.length < GROUP_ROWS && bytes < GROUP_BYTES) continue
      yield group
      ;[group, bytes] = [[], 0]
    }
  }
  if (group.length > 0) yield group
}

async function toBuffer(file: FileHandle): Promise<AsyncBuffer> {
  const { size } = await file.stat()
  return {
    byteLength: size,
    async slice(start, end = size) {
      const bytes = new Uint8Array(end - start)
      for (let at = 0; at < bytes.length;) {
        const { bytesRead } = await file.read(bytes, at, bytes.length - at, start + at)
        if (bytesRead === 0) throw new Error(`The file ends at byte ${start + at}`)
        at += bytesRead
      }
      return bytes.buffer
    },
  }
}
