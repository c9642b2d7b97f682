import { expect, test } from 'bun:test'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { COLUMNS, SCHEMA, type ArchivedEvent } from '../../../src/log/archive/columns.ts'
import { findDamage, readGroup, readMetadata } from '../../../src/log/archive/parquet-reader.ts'
import { startParquet } from '../../../src/log/archive/parquet-writer.ts'
import type { ArchiveObject } from '../../../src/log/archive/store.ts'

const eventOf = (seq: bigint): ArchivedEvent => ({
  ...{ id: `evt_${seq}`, seq, channelId: 'chn_1', channelName: 'payments', title: `Event ${seq}` },
  ...{ description: 'More', icon: '💰', tags: ['a', 'b'], metadata: '{"n":1.10}' },
  ...{ userId: 'ada', userRef: 'ada', source: 'api', notify: true },
  ...{ timestamp: new Date(1_795_167_000_000), createdAt: new Date(1_795_167_000_000) },
})

test('a file goes on where the former one ends, whose row groups are copied', async () => {
  const base = await write([eventOf(1n), eventOf(2n)])
  const { object, written } = await write([eventOf(3n)], base.object)
  expect([written.copiedGroups, await findDamage(object, written)]).toEqual([1, undefined])
  expect(await readAll(object)).toEqual([eventOf(1n), eventOf(2n), eventOf(3n)])
})

test('a file after one of an earlier version, which lacks a column, has null there', async () => {
  const former = toObject(writeWithout('description', [eventOf(1n), eventOf(2n)]))
  const { object, written } = await write([eventOf(3n)], former)
  expect([written.copiedGroups, await findDamage(object, written)]).toEqual([0, undefined])
  const unknown = { description: null }
  expect(await readAll(object)).toEqual([
    { ...eventOf(1n), ...unknown },
    { ...eventOf(2n), ...unknown },
    eventOf(3n),
  ])
})

async function write(events: readonly ArchivedEvent[], base?: ArchiveObject) {
  const parts: Uint8Array[] = []
  const output = await startParquet(async part => void parts.push(part), { about: {}, base })
  await output.add(events)
  const written = await output.finish()
  return { object: toObject(new Uint8Array(Buffer.concat(parts))), written }
}

/** Returns the bytes of a file without one of the columns. */
function writeWithout(missing: keyof ArchivedEvent, events: readonly ArchivedEvent[]): Uint8Array {
  const [root, ...elements] = SCHEMA
  const buffer = new ByteWriter()
  const writer = new ParquetWriter({
    writer: buffer,
    schema: [
      { ...root!, num_children: COLUMNS.length - 1 },
      ...elements.filter(({ name }) => name !== missing),
    ],
  })
  const columnData = COLUMNS.filter(name => name !== missing).map(name => ({
    name,
    data: events.map(event => event[name]),
    offsetIndex: false,
  }))
  writer.write({ columnData, rowGroupSize: events.length })
  writer.finish()
  return buffer.getBytes().slice()
}

function toObject(bytes: Uint8Array): ArchiveObject {
  return {
    byteLength: bytes.length,
    read: async (start, end) => bytes.slice(start, end),
    close: async () => {},
  }
}

async function readAll(object: ArchiveObject): Promise<ArchivedEvent[]> {
  const metadata = await readMetadata(object)
  const groups = metadata.row_groups.map(group => readGroup(object, metadata, group, COLUMNS))
  return (await Promise.all(groups)).flat()
}
