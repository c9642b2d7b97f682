import type { Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { parseIsoTimestamp } from '../events/timestamp.ts'
import { parseCursor, toCursor } from '../http/paging.ts'
import { invalidField } from '../http/validation.ts'
import { newId, parseId } from '../ids.ts'
import { enqueueDeliveries } from '../outbox/enqueue.ts'
import { attemptNotFound } from './attempts.ts'
import { auditWebhook, type Editor } from './editing.ts'
import { matchesChannel } from './dispatch.ts'
import type { QueuedEvents, RecoverInput } from './schema.ts'
import { lockWebhook } from './webhooks.ts'

/** Attempts are kept for 30 days. It is unknown which older events were delivered. */
const MAX_DAYS = 30
/** The number of events that one call reads. */
const MAX_EVENTS = 5_000

/**
 * Enqueues the event of an attempt again. Throws `not_found`, or `conflict` if the webhook is
 * disabled or the event was deleted.
 */
export async function resendAttempt(
  tx: Tx,
  editor: Editor,
  { id, attemptId }: { id: string; attemptId: string },
): Promise<QueuedEvents> {
  const { projectId } = editor
  const targetId = await lockEnabled(tx, projectId, id)
  const [attempt] = await tx<{ event_id: string | null; is_there: boolean }[]>`
    select a.event_id, e.id is not null as is_there
    from webhook_attempts a
      left join events e on e.project_id = a.project_id and e.id = a.event_id and e.deleted_at is null
    where a.project_id = ${projectId} and a.webhook_id = ${targetId}
      and a.id = ${parseId('att', attemptId) ?? newId('att').uuid}
  `
  if (!attempt) throw attemptNotFound()
  const { event_id: eventId, is_there: isThere } = attempt
  if (eventId === null) throw new Fault('conflict', 'A test cannot be sent again. Send a new test')
  if (!isThere) throw new Fault('conflict', 'The event of this attempt was deleted')
  await enqueueDeliveries(tx, { kind: 'webhook', projectId, targetId }, [eventId])
  await auditWebhook(tx, editor, 'webhook.resent', targetId, { attempt: attemptId })
  return { events: 1, nextCursor: null }
}

/**
 * Enqueues the events of a time range that match the webhook and were not delivered to it. These
 * are failed events, and events from before it was created or while it was disabled. One call reads
 * 5,000 events; pass its `nextCursor` to continue. Throws `not_found`, or `conflict` if the webhook
 * is disabled.
 */
export async function recoverEvents(
  tx: Tx,
  editor: Editor,
  { id, since, until, cursor }: RecoverInput & { id: string },
): Promise<QueuedEvents> {
  const { projectId } = editor
  const targetId = await lockEnabled(tx, projectId, id)
  const [fromMs, fromSeq = '0'] = parseCursor(cursor, [/^\d{1,14}$/, /^\d{1,18}$/]) ?? []
  const [bounds] = await tx<[{ is_known: boolean }]>`
    select ${toDate(since)} >= now() - make_interval(days => ${MAX_DAYS}, mins => 5) as is_known
  `
  if (!bounds.is_known) {
    throw invalidField('since', 'out_of_range', `Must be within the last ${MAX_DAYS} days`)
  }
  const from = fromMs === undefined ? toDate(since) : new Date(Number(fromMs))
  const rows = await tx<{ id: string; seq: string; occurred_at: Date; is_missing: boolean }[]>`
    select
      e.id, e.seq, e.occurred_at,
      ${matchesChannel(tx)} and not exists (
        select from webhook_attempts a
        where a.project_id = e.project_id and a.webhook_id = w.id and a.event_id = e.id
          and a.outcome = 'delivered'
      ) as is_missing
    from webhooks w
      join events e on e.project_id = w.project_id and e.deleted_at is null
    where w.project_id = ${projectId} and w.id = ${targetId}
      and e.occurred_at >= ${from}
      and e.occurred_at < ${until === undefined ? tx`now()` : toDate(until)}
      and (e.occurred_at > ${from} or e.seq > ${fromSeq})
    order by e.occurred_at, e.seq
    limit ${MAX_EVENTS}
  `
  const eventIds = rows.filter(row => row.is_missing).map(row => row.id)
  await enqueueDeliveries(tx, { kind: 'webhook', projectId, targetId }, eventIds)
  await auditWebhook(tx, editor, 'webhook.recovered', targetId, { events: eventIds.length })
  const last = rows.length === MAX_EVENTS ? rows.at(-1) : undefined
  return {
    events: eventIds.length,
    nextCursor: last ? toCursor([last.occurred_at.getTime(), last.seq]) : null,
  }
}

/** Locks a webhook and returns its uuid. Throws `not_found`, or `conflict` if it is disabled. */
async function lockEnabled(tx: Tx, projectId: string, id: string): Promise<string> {
  const { id: uuid, isEnabled } = await lockWebhook(tx, projectId, id)
  if (!isEnabled) throw new Fault('conflict', 'The webhook is disabled. Enable it first')
  return uuid
}

function toDate(text: string): Date {
  return new Date(parseIsoTimestamp(text) ?? NaN)
}
