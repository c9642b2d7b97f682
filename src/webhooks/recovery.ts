import type { Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { parseTimestamp } from '../events/moment.ts'
import { invalidField } from '../http/validation.ts'
import { newId, parseId } from '../ids.ts'
import { noAttempt } from './attempts.ts'
import { audit, type Editor } from './editing.ts'
import { isWanted } from './filter.ts'
import type { Queue } from './queue.ts'
import type { Queued, RecoverInput } from './schema.ts'
import { noWebhook, toWebhookUuid } from './webhooks.ts'

/** As long as attempts are kept: what was delivered before is not known. */
const MAX_DAYS = 30
/** Events that one call looks at. */
const WINDOW = 5_000

/** Has the event of an attempt delivered once more. */
export async function resendAttempt(
  tx: Tx,
  editor: Editor,
  { id, attemptId }: { id: string; attemptId: string },
  queue: Queue,
): Promise<Queued> {
  const { projectId } = editor
  const targetId = await holdEnabled(tx, projectId, id)
  const [attempt] = await tx<{ event_id: string | null; is_there: boolean }[]>`
    select a.event_id, e.id is not null as is_there
    from webhook_attempts a
      left join events e on e.project_id = a.project_id and e.id = a.event_id and e.deleted_at is null
    where a.project_id = ${projectId} and a.webhook_id = ${targetId}
      and a.id = ${parseId('att', attemptId) ?? newId('att').uuid}
  `
  if (!attempt) throw noAttempt()
  const { event_id: eventId, is_there: isThere } = attempt
  if (eventId === null) throw new Fault('conflict', 'A test is not sent again: send another one')
  if (!isThere) throw new Fault('conflict', 'Its event was deleted')
  await queue.enqueue(tx, { projectId, targetId, eventIds: [eventId] })
  await audit(tx, editor, 'webhook.resent', targetId, { attempt: attemptId })
  return { events: 1, nextCursor: null }
}

/**
 * Has those events of a time delivered that the webhook is for and has not had: failed ones, and those from before it was
 * there, or while it was disabled. A call looks at so many events; its cursor says where the next one goes on.
 */
export async function recoverEvents(
  tx: Tx,
  editor: Editor,
  { id, since, until, cursor }: RecoverInput & { id: string },
  queue: Queue,
): Promise<Queued> {
  const { projectId } = editor
  const targetId = await holdEnabled(tx, projectId, id)
  const position = cursor === undefined ? undefined : parsePosition(cursor)
  if (cursor !== undefined && !position) {
    throw invalidField('cursor', 'invalid_format', 'Must be a nextCursor of this endpoint')
  }
  const [bounds] = await tx<[{ is_known: boolean }]>`
    select ${toDate(since)} >= now() - make_interval(days => ${MAX_DAYS}, mins => 5) as is_known
  `
  if (!bounds.is_known) {
    throw invalidField('since', 'out_of_range', `Must be within the last ${MAX_DAYS} days`)
  }
  const from = position?.at ?? toDate(since)
  const rows = await tx<{ id: string; seq: string; occurred_at: Date; is_missing: boolean }[]>`
    select
      e.id, e.seq, e.occurred_at,
      ${isWanted(tx)} and not exists (
        select from webhook_attempts a
        where a.project_id = e.project_id and a.webhook_id = w.id and a.event_id = e.id
          and a.outcome = 'delivered'
      ) as is_missing
    from webhooks w
      join events e on e.project_id = w.project_id and e.deleted_at is null
    where w.project_id = ${projectId} and w.id = ${targetId}
      and e.occurred_at >= ${from}
      and e.occurred_at < ${until === undefined ? tx`now()` : toDate(until)}
      and (e.occurred_at > ${from} or e.seq > ${position?.seq ?? '0'})
    order by e.occurred_at, e.seq
    limit ${WINDOW}
  `
  const eventIds = rows.filter(row => row.is_missing).map(row => row.id)
  if (eventIds.length > 0) {
    await queue.enqueue(tx, { projectId, targetId, eventIds })
  }
  await audit(tx, editor, 'webhook.recovered', targetId, { events: eventIds.length })
  const last = rows.length === WINDOW ? rows.at(-1) : undefined
  return {
    events: eventIds.length,
    nextCursor: last ? toCursor(last.occurred_at, last.seq) : null,
  }
}

/** The uuid of a webhook that is sent events, locked. */
async function holdEnabled(tx: Tx, projectId: string, id: string): Promise<string> {
  const [row] = await tx<{ id: string; is_enabled: boolean }[]>`
    select id, disabled_at is null as is_enabled
    from webhooks
    where project_id = ${projectId} and id = ${toWebhookUuid(id)} and deleted_at is null
    for no key update
  `
  if (!row) throw noWebhook()
  if (!row.is_enabled) throw new Fault('conflict', 'The webhook is disabled: enable it first')
  return row.id
}

function toDate(text: string): Date {
  return new Date(parseTimestamp(text) ?? NaN)
}

function toCursor(at: Date, seq: string): string {
  return Buffer.from(`${at.getTime()} ${seq}`).toString('base64url')
}

function parsePosition(cursor: string): { at: Date; seq: string } | undefined {
  const [, ms, seq] =
    /^(\d{1,14}) (\d{1,18})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? []
  return ms === undefined || seq === undefined ? undefined : { at: new Date(Number(ms)), seq }
}
