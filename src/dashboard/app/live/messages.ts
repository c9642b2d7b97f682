import { parseExact } from '../../../http/exact-json.ts'
import type { Event } from '../../../log/events/schema.ts'

/** The filters of a subscription. An absent field matches everything. */
export interface Filters {
  channels?: string[]
  tags?: string[]
  userId?: string
  source?: string
  text?: string
  /** An event matches one of them. */
  any?: Filters[]
}

export type ClientMessage =
  | {
      type: 'subscribe'
      project: string
      /** The last seq received; null to start now. */
      after: number | null
      epoch?: string
      filters: Filters
    }
  | { type: 'watch' }

/** The heads of logs, by the id of their project. */
export type Heads = Readonly<Record<string, number>>

export type ServerMessage =
  /** An older server has no `build`. */
  | { type: 'hello'; epoch: string; build?: string }
  | { type: 'subscribed'; project: string; head: number; recovered: boolean }
  | { type: 'event'; project: string; seq: number; event: Event }
  | { type: 'deleted'; project: string; seq: number }
  | { type: 'restored'; project: string; seq: number; event?: Event }
  | { type: 'gap'; project: string; reason: string; head: number }
  /** Everything up to `head` was sent. Without `project`, no project is followed. */
  | { type: 'heartbeat'; project?: string; head?: number }
  | { type: 'heads'; heads: Heads }
  | { type: 'unread'; project: string }
  | { type: 'error'; code: string; message: string }

/** The required fields of each message type. */
const FIELDS: Record<ServerMessage['type'], Record<string, 'string' | 'number' | 'object'>> = {
  hello: { epoch: 'string' },
  subscribed: { project: 'string', head: 'number' },
  event: { project: 'string', seq: 'number', event: 'object' },
  deleted: { project: 'string', seq: 'number' },
  restored: { project: 'string', seq: 'number' },
  gap: { project: 'string', head: 'number' },
  heartbeat: {},
  heads: { heads: 'object' },
  unread: { project: 'string' },
  error: { code: 'string', message: 'string' },
}

/** Parses a message. Returns undefined for unknown ones, which a newer server may send. */
export function parseMessage(text: string): ServerMessage | undefined {
  let value: unknown
  try {
    value = parseExact(text).value
  } catch {
    return undefined
  }
  if (!isObject(value) || typeof value['type'] !== 'string') return undefined
  if (!Object.hasOwn(FIELDS, value['type'])) return undefined
  const fields = FIELDS[value['type'] as ServerMessage['type']]
  for (const [name, type] of Object.entries(fields)) {
    if (typeof value[name] !== type || value[name] === null) return undefined
  }
  // The fields were checked above. The server's schema guarantees the content of events.
  return value as unknown as ServerMessage
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
