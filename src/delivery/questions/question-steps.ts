import type { Hint, Hints } from '../../base/hints.ts'
import { toId } from '../../base/ids.ts'
import type { Pool } from '../../database/pool.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Tx } from '../../database/sql.ts'
import type { Egress } from '../../http/egress/egress.ts'
import { lockLog } from '../../log/channels/channels.ts'
import { toCallbackSecret, toSealedCell } from '../../log/events/question.ts'
import { tryToRecord, type DeliveryAttempt, type DeliveryOutcome } from '../outbox/delivery-kind.ts'
import { CONTENT_TYPE, signMessage } from '../webhooks/signing.ts'
import { endQuestion, findQuestion } from './answers.ts'

const TIMEOUT_MS = 10_000
const MIN_PAUSE_MS = 5_000
const MAX_PAUSE_MS = 5 * 3_600_000
const MAX_CALLBACK_MS = 86_400_000

/** The parts of callbacks. */
export interface CallbackParts {
  pool: Pool
  egress: Egress
  secrets: Pick<Secrets, 'derive' | 'open'>
  hints: Hints
}

const GONE = { kind: 'cancelled', reason: 'The event was deleted' } as const

/** Ends a question that nobody has answered in time, also long after that. */
export async function stepExpiry(
  tx: Tx,
  attempt: DeliveryAttempt,
  noteAppended: (hint: Hint) => void,
): Promise<DeliveryOutcome> {
  await lockLog(tx, attempt.projectId)
  const question = await findQuestion(tx, attempt)
  if (!question) return GONE
  if (question.state === 'waiting') {
    const afterMs = Date.parse(question.expiresAt) - Date.now()
    return { kind: 'postponed', afterMs, reason: 'Members can still answer', isAlone: true }
  }
  if (!question.isOver) {
    await endQuestion(tx, question, { title: 'Nobody answered in time' })
    noteAppended({ kind: 'answered', projectId: attempt.projectId, seq: question.seq })
  }
  return { kind: 'done' }
}

/**
 * Calls the program of a question that has ended. It holds no connection to the database during the
 * request. A callback that is not accepted is repeated for a day, at growing intervals.
 */
export async function sendCallback(
  { pool, egress, secrets, hints }: CallbackParts,
  { projectId, eventId, waitedMs, begin }: DeliveryAttempt,
  signal: AbortSignal,
): Promise<DeliveryOutcome> {
  const ref = { projectId, eventId }
  const question = await pool.run(sql => findQuestion(sql, ref))
  if (!question?.callbackUrl) return question?.receivedAt ? { kind: 'done' } : GONE
  const { action, by, at, seq } = question
  const id = toId('evt', eventId)
  const type = action === null ? 'event.expired' : 'event.answered'
  const body = JSON.stringify({ type, timestamp: at, data: { eventId: id, action, by } })
  const message = { id: `msg_answer_${id.slice(4)}`, timestampMs: Date.now(), body }
  const result = await egress.send({
    url: secrets.open(question.callbackUrl, toSealedCell(eventId)),
    body,
    headers: {
      'Content-Type': CONTENT_TYPE,
      ...signMessage(message, [toCallbackSecret(secrets, eventId)]),
    },
    timeoutMs: TIMEOUT_MS,
    maxBodyMs: 1_000,
    share: question.organizationId,
    begin,
    signal,
  })
  const isAccepted = 'status' in result && result.status >= 200 && result.status < 300
  const reason = 'error' in result ? result.message : `The response was ${result.status}`
  if (!isAccepted && waitedMs <= MAX_CALLBACK_MS) {
    const afterMs = Math.min(Math.max(waitedMs, MIN_PAUSE_MS), MAX_PAUSE_MS)
    return { kind: 'postponed', afterMs, reason, isAlone: true }
  }
  await tryToRecord(() =>
    pool.run(
      sql => sql`
        update questions set
          callback_url = null,
          received_at = case when ${isAccepted} then coalesce(received_at, now()) else received_at end
        where project_id = ${projectId} and id = ${eventId}
      `,
    ),
  )
  if (!isAccepted)
    return { kind: 'failed', reason: `The callback was not accepted for a day. ${reason}` }
  hints.send([{ kind: 'answered', projectId, seq }])
  return { kind: 'done' }
}
