import { parseExact } from '../../../http/exact-json.ts'
import type { Event } from '../../../log/events/schema.ts'

export type ClientMessage =
  | {
      type: 'subscribe'
      project: string
      /** The last seq received; null to start now. */
      after: number | null
      epoch?: string
      /** The query of the list of events. Only its matches are sent. */
      search: Readonly<Record<string, string>>
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
  | { type: 'restored'; project: string; seq: number; event: Event }
  | { type: 'gap'; project: string; reason: string; head: number }
  /** Everything up to `head` was sent. Without `project`, no project is followed. */
  | { type: 'heartbeat'; project?: string; head?: number }
  | { type: 'heads'; heads: Heads }
  | { type: 'unread'; project: string }
  | { type: 'error'; code: string; message: string }

/** Parses a message; undefined if it is not one. The server's schema guarantees its content. */
export function parseMessage(text: string): ServerMessage | undefined {
  try {
    const { value } = parseExact(text)
    return value instanceof Object && 'type' in value ? (value as ServerMessage) : undefined
  } catch {
    return undefined
  }
}
