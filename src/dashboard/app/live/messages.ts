import type { Event } from '../../../events/schema.ts'

/** What a subscription lets through; a field that is absent lets everything through. */
export interface Filters {
  channels?: string[]
  tags?: string[]
  userId?: string
  source?: string
  text?: string
}

export type ClientMessage = {
  type: 'subscribe'
  project: string
  /** The last seq that was seen; null for from now on. */
  after: number | null
  epoch?: string
  filters: Filters
}

export type ServerMessage =
  | { type: 'hello'; epoch: string }
  | { type: 'subscribed'; project: string; head: number; recovered: boolean }
  | { type: 'event'; project: string; seq: number; event: Event }
  | { type: 'deleted' | 'restored'; project: string; seq: number }
  | { type: 'gap'; project: string; reason: string; head: number }
  /** All up to `head` has been sent; without a project, there is none that is followed. */
  | { type: 'heartbeat'; project?: string; head?: number }
  | { type: 'unread'; project: string }
  | { type: 'error'; code: string }

/** The fields that we rely on, by type of message. */
const FIELDS: Record<ServerMessage['type'], Record<string, 'string' | 'number' | 'object'>> = {
  hello: { epoch: 'string' },
  subscribed: { project: 'string', head: 'number' },
  event: { project: 'string', seq: 'number', event: 'object' },
  deleted: { project: 'string', seq: 'number' },
  restored: { project: 'string', seq: 'number' },
  gap: { project: 'string', head: 'number' },
  heartbeat: {},
  unread: { project: 'string' },
  error: { code: 'string' },
}

/** The message in a frame; undefined for what a newer server may say and we do not know. */
export function parseMessage(text: string): ServerMessage | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(value) || typeof value['type'] !== 'string') return undefined
  if (!Object.hasOwn(FIELDS, value['type'])) return undefined
  const fields = FIELDS[value['type'] as ServerMessage['type']]
  for (const [name, type] of Object.entries(fields)) {
    if (typeof value[name] !== type || value[name] === null) return undefined
  }
  // The fields that are read were looked at above; what is inside an event, the server's own schema guarantees.
  return value as unknown as ServerMessage
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
