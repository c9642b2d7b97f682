import { createHash } from 'node:crypto'
import type { SchemaElement } from 'hyparquet'

/** An event in an archive file. Names and values are those of the API. */
export interface ArchivedEvent {
  id: string
  seq: bigint
  channelId: string
  channelName: string
  title: string
  description: string | null
  icon: string | null
  tags: string[]
  /** JSON as it was sent, so that numbers keep their digits. */
  metadata: string
  /** The user that `userRef` named when the event was archived. */
  userId: string | null
  /** The user_id or alias that was sent. */
  userRef: string | null
  source: string
  notify: boolean
  timestamp: Date
  createdAt: Date
}

/** The columns of a file, in their order. */
export const COLUMNS = [
  'id',
  'seq',
  'channelId',
  'channelName',
  'title',
  'description',
  'icon',
  'tags',
  'metadata',
  'userId',
  'userRef',
  'source',
  'notify',
  'timestamp',
  'createdAt',
] as const satisfies (keyof ArchivedEvent)[]

const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8' } as const
const REQUIRED = { repetition_type: 'REQUIRED' } as const
const OPTIONAL = { repetition_type: 'OPTIONAL' } as const
const TIME = {
  type: 'INT64',
  converted_type: 'TIMESTAMP_MILLIS',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  ...REQUIRED,
} as const

/** The Parquet schema of archive files. */
export const SCHEMA: SchemaElement[] = [
  { name: 'event', num_children: COLUMNS.length },
  { name: 'id', ...TEXT, ...REQUIRED },
  { name: 'seq', type: 'INT64', ...REQUIRED },
  { name: 'channelId', ...TEXT, ...REQUIRED },
  { name: 'channelName', ...TEXT, ...REQUIRED },
  { name: 'title', ...TEXT, ...REQUIRED },
  { name: 'description', ...TEXT, ...OPTIONAL },
  { name: 'icon', ...TEXT, ...OPTIONAL },
  { name: 'tags', converted_type: 'LIST', num_children: 1, ...REQUIRED },
  { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
  { name: 'element', ...TEXT, ...REQUIRED },
  { name: 'metadata', ...TEXT, ...REQUIRED },
  { name: 'userId', ...TEXT, ...OPTIONAL },
  { name: 'userRef', ...TEXT, ...OPTIONAL },
  { name: 'source', ...TEXT, ...REQUIRED },
  { name: 'notify', type: 'BOOLEAN', ...REQUIRED },
  { name: 'timestamp', ...TIME },
  { name: 'createdAt', ...TIME },
]

/** Returns a SHA-256 of the values of all events, in hex. It depends on their order. */
export function toDigest(events: readonly ArchivedEvent[]): string {
  const hash = createHash('sha256')
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
  return hash.digest('hex')
}

/** Returns about how many bytes the texts of an event take. */
export function toSize(event: ArchivedEvent): number {
  const { title, description, metadata } = event
  return 200 + title.length + (description?.length ?? 0) + metadata.length
}
