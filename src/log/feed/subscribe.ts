import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../../database/pool.ts'
import { isUnreachable } from '../../database/sql.ts'
import { toId } from '../../base/ids.ts'
import type { Socket } from '../../base/listener.ts'
import type { SearchFilters } from '../events/search-filters.ts'
import { findLogState, type LogState } from './access.ts'
import { hasUserNames, prepareFilters } from './filter.ts'
import type { Hub, Subscription } from './hub.ts'
import type { LogTailer } from './log-tailer.ts'
import { toMessage } from './messages.ts'
import { logFailure } from './read-events.ts'
import type { Replay } from './replay.ts'
import type { GapReason, Subscribe } from './schema.ts'
import type { SocketSession } from './socket-guard.ts'

const MAX_SUBSCRIPTIONS_PER_SOCKET = 10
const RETRY_MS = 500

/** An open socket with its subscriptions. */
export interface Subscriber {
  socket: Socket<SocketSession>
  /** By the uuid of the project. `subscription` is absent while it is being started. */
  subscriptions: Map<string, { subscription?: Subscription }>
  isClosed: boolean
}

/** The request of a client. */
interface Requested {
  message: Subscribe
  projectId: string
  filters: SearchFilters
}

/** A hub, and what reads the logs for it. */
export interface Lane {
  hub: Hub
  tailer: LogTailer
  replay: Replay
}

export interface SubscribeOptions {
  pool: Pool
  /** Follows the logs for filters without names of users, and for those with them. */
  lanes: readonly [Lane, Lane]
}

/**
 * Starts the subscription that a client requests. The caller has ended the earlier one for this
 * project.
 */
export async function subscribe(
  { pool, lanes }: SubscribeOptions,
  subscriber: Subscriber,
  { message, projectId, filters: requested }: Requested,
): Promise<void> {
  const { socket, subscriptions } = subscriber
  const refuse = (text: string) => {
    subscriptions.delete(projectId)
    socket.send(text)
  }
  const tooMany = (text: string) =>
    refuse(toMessage({ type: 'error', code: 'too_many', message: text, project: message.project }))
  if (subscriptions.size >= MAX_SUBSCRIPTIONS_PER_SOCKET)
    return tooMany(`A socket follows at most ${MAX_SUBSCRIPTIONS_PER_SOCKET} projects`)
  const pending: { subscription?: Subscription } = {}
  subscriptions.set(projectId, pending)
  // Meanwhile the client may have sent another request, or disconnected.
  const isWanted = () => !subscriber.isClosed && subscriptions.get(projectId) === pending
  const found = await findStart(pool, subscriber, { filters: requested, projectId, isWanted })
  if (!found || !isWanted()) return

  const { state, filters } = found
  if (!state) return refuse(toNotFound(message.project))
  const project = toId('prj', projectId)
  const subscription: Subscription = { socket, projectId, project, filters, cursor: 0 }
  const { hub, replay, tailer } = lanes[hasUserNames(filters) ? 1 : 0]
  if (!hub.add(subscription, state.head))
    return tooMany('The project has too many subscriptions with different filters')
  pending.subscription = subscription
  const gap = findGap(message, state)
  const after = message.after ?? null
  // The hub's position may be behind the head of the log.
  const position = hub.toPosition(projectId) ?? state.head
  const isFromNow = after === null || gap === 'epoch' || gap === 'ahead'
  const head = isFromNow ? position : Math.max(position, state.head)
  subscription.cursor = isFromNow ? position : after
  socket.send(toMessage({ type: 'subscribed', project, head, recovered: gap === undefined }))
  if (gap) socket.send(toMessage({ type: 'gap', project, reason: gap, head }))
  tailer.wake([projectId])
  await replay(subscription, state.organizationId)
}

/** The data that a subscription starts with. */
interface Start {
  state: LogState | undefined
  /** Prepared for `matches`. */
  filters: SearchFilters
}

/**
 * Reads what a subscription needs to start. Retries while the client waits for it and the database
 * cannot be reached. Rejects with other errors.
 */
async function findStart(
  pool: Pool,
  { socket }: Subscriber,
  { filters, projectId, isWanted }: Omit<Requested, 'message'> & { isWanted(): boolean },
): Promise<Start | undefined> {
  const { accountId, sessionId } = socket.data
  while (isWanted()) {
    try {
      const state = await pool.of(accountId).run(sql => findLogState(sql, { sessionId, projectId }))
      if (!state) return { state, filters }
      return {
        state,
        filters: await pool.of(state.organizationId).run(sql => prepareFilters(sql, filters)),
      }
    } catch (error) {
      if (!isUnreachable(error)) throw error
      logFailure('Starting a subscription failed', error)
      await sleep(RETRY_MS)
    }
  }
  return undefined
}

/** Returns the message that no project has an id. */
export function toNotFound(project: string): string {
  return toMessage({ type: 'error', code: 'not_found', message: 'No project has this id', project })
}

/** Returns why events are missing between those that the client has and those that follow. */
function findGap({ after, epoch }: Subscribe, state: LogState): GapReason | undefined {
  if (after === null || after === undefined) return undefined
  if (epoch !== undefined && epoch !== state.epoch) return 'epoch'
  if (after > state.head) return 'ahead'
  return after > 0 && after < state.expiredSeq ? 'retention' : undefined
}
