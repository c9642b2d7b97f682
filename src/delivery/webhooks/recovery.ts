import type { Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import { toConditions } from '../../log/events/event-conditions.ts'
import { resolveFilters } from '../../log/events/resolved-filters.ts'
import { parseSaved } from '../../log/events/search-query.ts'
import { findFirstSeqSince } from '../../log/events/seq-ranges.ts'
import { parseIsoTimestamp } from '../../log/events/timestamp.ts'
import { parseCursor, toCursor } from '../../http/paging.ts'
import { invalidField } from '../../http/validation.ts'
import { newId, parseId } from '../../base/ids.ts'
import { enqueueDeliveries } from '../outbox/enqueue.ts'
import { attemptNotFound } from './attempts.ts'
import { auditWebhook, type Editor } from './editing.ts'
import { matchesChannel, ROOM_AT } from './dispatch.ts'
import type { QueuedEvents, RecoverInput } from './webhook-schema.ts'
import { lockWebhook, type LockedWebhook } from './webhooks.ts'

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
  const { id: targetId } = await lockEnabled(tx, projectId, id)
  const [attempt] = await tx<{ event_id: string | null; is_event: boolean; is_there: boolean }[]>`
    select a.event_id, a.kind = 'event.created' as is_event, e.id is not null as is_there
    from webhook_attempts a
      left join lateral event_by_id(a.project_id, a.event_id) e on e.deleted_at is null
    where a.project_id = ${projectId} and a.webhook_id = ${targetId}
      and a.id = ${parseId('att', attemptId) ?? newId('att').uuid}
  `
  if (!attempt) throw attemptNotFound()
  const { event_id: eventId, is_event: isEvent, is_there: isThere } = attempt
  if (eventId === null) throw new Fault('conflict', 'A test cannot be sent again. Send a new test')
  if (!isEvent) throw new Fault('conflict', 'Only an event can be sent again')
  if (!isThere) throw new Fault('conflict', 'The event of this attempt was deleted')
  await enqueueDeliveries(tx, { kind: 'webhook', projectId, targetId }, [eventId])
  await auditWebhook(tx, editor, 'webhook.resent', targetId, { attempt: attemptId })
  return { events: 1, nextCursor: null }
}

/**
 * Enqueues the events that arrived in a time range, match the webhook and were not delivered to it.
 * These are failed ones, and those from before it was created or while it was disabled. One call
 * reads 5,000 of them; pass its `nextCursor` to continue. Throws `not_found`, or `conflict` if the
 * webhook is disabled or has too many pending deliveries.
 */
export async function recoverEvents(
  tx: Tx,
  editor: Editor,
  { id, ...input }: RecoverInput & { id: string },
): Promise<QueuedEvents> {
  const { projectId } = editor
  const { id: targetId } = await lockEnabled(tx, projectId, id)
  await requireRoom(tx, targetId)
  const [bounds] = await tx<[{ is_known: boolean }]>`
    select ${toDate(input.since)} >= now() - make_interval(days => ${MAX_DAYS}, mins => 5) as is_known
  `
  if (!bounds.is_known) {
    throw invalidField('since', 'out_of_range', `Must be within the last ${MAX_DAYS} days`)
  }
  const { ids, nextCursor } = await findMissedEvents(tx, editor, { targetId, ...input })
  await enqueueDeliveries(tx, { kind: 'webhook', projectId, targetId }, ids)
  await auditWebhook(tx, editor, 'webhook.recovered', targetId, { events: ids.length })
  return { events: ids.length, nextCursor }
}

/** Returns the uuids of missed events, and the cursor to continue. */
async function findMissedEvents(
  tx: Tx,
  { projectId }: Editor,
  { targetId, since, until, cursor }: RecoverInput & { targetId: string },
): Promise<{ ids: string[]; nextCursor: string | null }> {
  const [after] = parseCursor(cursor, [/^\d{1,18}$/]) ?? []
  const findSeq = (text: string) => findFirstSeqSince(tx, projectId, toDate(text))
  const fromSeq = after === undefined ? await findSeq(since) : BigInt(after) + 1n
  const endSeq = until === undefined ? undefined : await findSeq(until)
  const [view] = await tx<{ q: string | null }[]>`
    select v.search as q
    from webhooks w
      left join views v on v.project_id = w.project_id and v.id = w.view_id
    where w.project_id = ${projectId} and w.id = ${targetId} and w.view_id is not null
  `
  const filters = view?.q ? parseSaved(view.q) : undefined
  const resolved = filters && (await resolveFilters(tx, projectId, filters, { namesMs: 0 }))
  const rows = await tx<{ id: string; seq: string; is_missing: boolean }[]>`
    with page as materialized (
      select e.project_id, e.id, e.seq, e.channel_id, (${resolved ? toConditions(tx, resolved) : tx`${!view}`}) as is_found
      from events e
      where e.project_id = ${projectId} and e.deleted_at is null
        and e.seq >= ${String(fromSeq)} ${endSeq === undefined ? tx`` : tx`and e.seq < ${String(endSeq)}`}
      order by e.seq
      limit ${MAX_EVENTS}
    )
    select
      e.id, e.seq,
      e.is_found and ${matchesChannel(tx)} and not exists (
        select from webhook_attempts a
        where a.project_id = e.project_id and a.event_id = e.id and a.outcome = 'delivered' and a.kind = 'event.created'
          -- No index serves this form. An event has few attempts, and a webhook has many.
          and a.webhook_id is not distinct from w.id
      ) as is_missing
    from page e
      join webhooks w on w.project_id = e.project_id and w.id = ${targetId}
    order by e.seq
  `
  const last = rows.length === MAX_EVENTS ? rows.at(-1) : undefined
  return {
    ids: rows.filter(row => row.is_missing).map(row => row.id),
    nextCursor: last ? toCursor([last.seq]) : null,
  }
}

/** Locks a webhook and returns it. Throws `not_found`, or `conflict` if it is disabled. */
async function lockEnabled(tx: Tx, projectId: string, id: string): Promise<LockedWebhook> {
  const webhook = await lockWebhook(tx, projectId, id)
  if (!webhook.isEnabled) throw new Fault('conflict', 'The webhook is disabled. Enable it first')
  return webhook
}

/** Throws `conflict` if one more page of deliveries could fill the backlog of a webhook. */
async function requireRoom(tx: Tx, targetId: string): Promise<void> {
  const [last] = await tx`
    select from outbox o
    where o.kind = 'webhook' and o.target_id = ${targetId}
    order by o.available_at
    limit 1 offset ${ROOM_AT - 1}
  `
  if (!last) return
  const room = ROOM_AT.toLocaleString('en-US')
  throw new Fault(
    'conflict',
    `${room} deliveries or more wait for this webhook. Try again once fewer wait`,
  )
}

function toDate(text: string): Date {
  return new Date(parseIsoTimestamp(text) ?? NaN)
}
