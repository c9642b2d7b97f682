import type { Hash } from 'node:crypto'
import type { SchemaElement } from 'hyparquet'
import type { Level } from '../channels/level.ts'
import type { OptionalField } from '../events/new-event.ts'
import type { Event } from '../events/schema.ts'
import type { State } from '../events/state.ts'

/** An event in an exported file. Names and values are those of the API. */
export interface ExportedEvent extends Omit<
  Event,
  'seq' | 'metadata' | 'timestamp' | 'createdAt' | OptionalField
> {
  seq: bigint
  /** JSON as it was sent, so that numbers keep their digits. */
  metadata: string
  /** The user_id or alias that was sent. `userId` is the user whom it named at the export. */
  userRef: string | null
  timestamp: Date
  createdAt: Date
  /** Also `normal`, and null without a url. */
  level: Level
  url: string | null
  /** This and the next two are null without a thread. */
  thread: string | null
  state: State | null
  threadSeq: bigint | null
}

/** The content that a file must have. It is compared with what can be read from it. */
interface Written {
  events: number
  /** Of the events in their order, in hex. */
  sha256: string
}

/** A format of exported files. Memory holds a part of a file. */
export interface Format {
  /** The end of the names of its files. */
  extension: string
  /** Writes a new file. Throws if it exists. */
  write(path: string, pages: AsyncIterable<ExportedEvent[]>): Promise<Written>
  /** Reads a file back. Throws if it is damaged. */
  read(path: string): Promise<Written>
}

const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8' } as const
const REQUIRED = { repetition_type: 'REQUIRED' } as const
const OPTIONAL = { repetition_type: 'OPTIONAL' } as const
const TIME = {
  type: 'INT64',
  converted_type: 'TIMESTAMP_MILLIS',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  ...REQUIRED,
} as const

/** The columns of a file, in their order, as the Parquet schema describes them. */
const ELEMENTS: Record<keyof ExportedEvent, Omit<SchemaElement, 'name'>> = {
  id: { ...TEXT, ...REQUIRED },
  seq: { type: 'INT64', ...REQUIRED },
  channelId: { ...TEXT, ...REQUIRED },
  channelName: { ...TEXT, ...REQUIRED },
  title: { ...TEXT, ...REQUIRED },
  description: { ...TEXT, ...OPTIONAL },
  icon: { ...TEXT, ...OPTIONAL },
  tags: { converted_type: 'LIST', num_children: 1, ...REQUIRED },
  metadata: { ...TEXT, ...REQUIRED },
  userId: { ...TEXT, ...OPTIONAL },
  userRef: { ...TEXT, ...OPTIONAL },
  source: { ...TEXT, ...REQUIRED },
  notify: { type: 'BOOLEAN', ...REQUIRED },
  timestamp: TIME,
  createdAt: TIME,
  level: { ...TEXT, ...REQUIRED },
  url: { ...TEXT, ...OPTIONAL },
  thread: { ...TEXT, ...OPTIONAL },
  state: { ...TEXT, ...OPTIONAL },
  threadSeq: { type: 'INT64', ...OPTIONAL },
}

const LIST: SchemaElement[] = [
  { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
  { name: 'element', ...TEXT, ...REQUIRED },
]

/** The names of the columns, in their order. */
export const COLUMNS = Object.keys(ELEMENTS) as (keyof ExportedEvent)[]

/** The Parquet schema of exported files. */
export const SCHEMA: SchemaElement[] = [
  { name: 'event', num_children: COLUMNS.length },
  ...COLUMNS.flatMap(name => [
    { name, ...ELEMENTS[name] },
    ...(ELEMENTS[name].converted_type === 'LIST' ? LIST : []),
  ]),
]

/** Adds the values of all events to a hash, in their order. */
export function addToHash(hash: Hash, events: readonly ExportedEvent[]): void {
  for (const event of events) {
    hash.update(
      JSON.stringify(
        COLUMNS.map(name => {
          const value = event[name]
          if (typeof value === 'bigint') return value.toString()
          return value instanceof Date ? value.getTime() : (value ?? null)
        }),
      ),
    )
  }
}

/** Returns about how many bytes the texts of an event take. */
export function toSize(event: ExportedEvent): number {
  const { title, description, metadata, url } = event
  return 200 + title.length + (description?.length ?? 0) + metadata.length + (url?.length ?? 0)
}
