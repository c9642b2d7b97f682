import { signal } from '@preact/signals'
import {
  type ServerMessage,
  createLiveSocket,
  type LiveSocket,
  type SocketOptions,
} from './socket.ts'
import { closeSeen } from '../push/seen.ts'

export interface ConnectionOptions extends Omit<SocketOptions, 'greet' | 'receive' | 'onDrop'> {
  project: string
  /** Returns the search whose matches are sent, as the query of the list of events. */
  toSearch(): Readonly<Record<string, string>>
  /**
   * The view starts after `head`; earlier events are loaded elsewhere. `isBroken` means that it had
   * a socket before, so known events may have gaps, have changed or belong to another log.
   */
  onStart(head: number, isBroken: boolean): void
  /** The view continues without a gap. Known events may have been deleted or restored meanwhile. */
  onResume(): void
  /** Messages about the view, in log order, each event once. */
  onMessage(message: ServerMessage): void
}

/** Counts changes to acknowledgements, silences and duties. Components that show them reload. */
export const alarmChanges = signal(0)

/** Follows a view of a project over a live socket, without gaps. */
export function createConnection(options: ConnectionOptions): LiveSocket {
  const { project, toSearch } = options
  let epoch: string | undefined
  /** The last seq of the view; undefined until the server has sent the head of the log. */
  let cursor: number | undefined
  /** True once the view has started, or lost a socket. */
  let isBroken = false

  function start(head: number) {
    cursor = head
    options.onStart(head, isBroken)
    isBroken = true
  }

  return createLiveSocket({
    ...options,
    onDrop: () => (isBroken = true),
    greet(next) {
      if (epoch !== next) cursor = undefined
      epoch = next
      return { type: 'subscribe', project, after: cursor ?? null, epoch, search: toSearch() }
    },
    receive(message) {
      if (!('project' in message) || message.project !== project) return false
      if (message.type === 'event') {
        // Before `subscribed`, events cannot belong to this view.
        if (cursor === undefined || message.seq <= cursor) return false
        cursor = message.seq
      }
      if (message.type === 'heartbeat' && cursor !== undefined) {
        // With filters, most events never arrive. The head avoids replaying them on reconnection.
        cursor = Math.max(cursor, message.head ?? 0)
      }
      if (message.type === 'acknowledged') {
        alarmChanges.value += 1
        void closeSeen(({ about }) => about === `${project} ${message.seq}`)
      }
      if (message.type === 'gap') start(message.head)
      const isStart = message.type === 'subscribed'
      if (isStart && cursor === undefined) start(message.head)
      else if (isStart && message.recovered) options.onResume()
      options.onMessage(message)
      return isStart
    },
  })
}
