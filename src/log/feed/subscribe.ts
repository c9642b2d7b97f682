import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../../database/pool.ts'
import { isUnreachable } from '../../database/sql.ts'
import { toId } from '../../base/ids.ts'
import type { Socket } from '../../base/listener.ts'
import { readPatternsOfTexts } from '../events/text-patterns.ts'
import { findLogState, READER_ROLES, type LogState } from './access.ts'
import { compileFilter, listTexts } from './filter.ts'
import type { Hub, Subscription } from './hub.ts'
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
}

interface SubscribeOptions {
  pool: Pool
  hub: Hub
  replay: Replay
  /** Called when a subscription has started. */
  onSubscribed(projectId: string): void
}

/**
 * Starts the subscription that a client requests. The caller has ended the earlier one for this
 * project.
 */
export async function subscribe(
  { pool, hub, replay, onSubscribed }: SubscribeOptions,
  subscriber: Subscriber,
  { message, projectId }: Requested,
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
  const found = await findStart(pool, subscriber, { message, projectId, isWanted })
  if (!found || !isWanted()) return

  const { state, patterns } = found
  if (!state || !READER_ROLES.includes(state.role)) return refuse(toNotFound(message.project))
  const project = toId('prj', projectId)
  const filter = compileFilter(message.filters ?? {}, patterns)
  const subscription: Subscription = { socket, projectId, project, filter, cursor: 0 }
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
  onSubscribed(projectId)
  await replay(subscription, state.organizationId)
}

/** The data that a subscription starts with. */
interface Start {
  state: LogState | undefined
  patterns: Map<string, string[]>
}

/**
 * Reads what a subscription needs to start. Retries while the client waits for it and the database
 * cannot be reached. Rejects with other errors.
 */
async function findStart(
  pool: Pool,
  { socket }: Subscriber,
  { message, projectId, isWanted }: Requested & { isWanted(): boolean },
): Promise<Start | undefined> {
  const { accountId, sessionId } = socket.data
  const texts = listTexts(message.filters)
  while (isWanted()) {
    try {
      const state = await pool.of(accountId).run(sql => findLogState(sql, { sessionId, projectId }))
      const share = pool.of(state?.organizationId ?? accountId)
      const patterns = await share.run(sql => readPatternsOfTexts(sql, state ? texts : []))
      return { state, patterns }
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
