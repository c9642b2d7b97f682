import { SERVER, writeAudit, type Actor } from '../../access/audit/audit.ts'
import { toAuthor } from '../../access/guard/caller.ts'
import type { CallOn } from '../../access/guard/guard.ts'
import { isAtLeast, type Role } from '../../access/guard/permissions.ts'
import { Fault } from '../../base/errors.ts'
import { parseId, toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { invalidField } from '../../http/validation.ts'
import { appendOwn } from '../../log/events/append.ts'
import { FORMER_MEMBER } from '../../log/events/threads.ts'
import type { Answer, AnswerStatus } from './schema.ts'

/** The uuids of an event that asks a question. */
export interface QuestionRef {
  projectId: string
  eventId: string
}

/** A question, and the event that asks it. */
export interface Question extends AnswerStatus {
  actions: { id: string; label: string }[]
  role: Role
  callbackUrl: string | null
  /** True once its answer or its end was appended. */
  isOver: boolean
  organizationId: string
  channelId: string
  thread: string
  /** The `threadSeq` of its event. */
  seq: number
  notify: boolean
}

/** Returns the question of an event; undefined without one, or if the event was deleted. */
export async function findQuestion(
  sql: Queryable,
  { projectId, eventId }: QuestionRef,
): Promise<Question | undefined> {
  const [question] = await sql<Question[]>`
    select
      case when q.action is not null then 'answered' when q.ended_at is null and q.expires_at > now() then 'waiting'
        else 'expired' end as state,
      q.action, case when q.action is not null then coalesce(a.name, q.token_name, ${FORMER_MEMBER}) end as by,
      to_iso(coalesce(q.ended_at, case when q.expires_at <= now() then q.expires_at end)) as at,
      to_iso(q.expires_at) as "expiresAt", to_iso(q.received_at) as "receivedAt", q.actions, q.lowest_role as role,
      q.callback_url as "callbackUrl", q.ended_at is not null as "isOver", p.organization_id as "organizationId",
      e.channel_id as "channelId", e.thread, e.thread_seq::float8 as seq, e.notify
    from questions q
      join projects p on p.id = q.project_id
      cross join lateral event_by_id(q.project_id, q.event_id) e
      left join accounts a on a.id = q.account_id
    where q.project_id = ${projectId} and q.event_id = ${eventId} and e.deleted_at is null
  `
  return question
}

/** Returns the uuids of an event and its question. Throws `not_found`. */
export async function getQuestion(
  sql: Queryable,
  { projectId, eventId: id }: QuestionRef,
): Promise<Question & QuestionRef> {
  const ref = { projectId, eventId: parseId('evt', id) ?? '' }
  const question = ref.eventId ? await findQuestion(sql, ref) : undefined
  if (!question) throw new Fault('not_found', 'No event with this id asks a question')
  return { ...question, ...ref }
}

export const toAnswer = ({ state, action, by, at, expiresAt }: Question): Answer => ({
  ...{ state, action, by, at, expiresAt },
})

export const toAnswerStatus = (question: Question): AnswerStatus => ({
  ...toAnswer(question),
  receivedAt: question.receivedAt,
})

/** Locks the log and a question. Answers, expiries and callbacks of it follow each other. */
export async function lockQuestion(tx: Tx, { projectId, eventId }: QuestionRef): Promise<void> {
  await tx`select from event_logs where project_id = ${projectId} for update`
  await tx`
    select from questions where project_id = ${projectId} and event_id = ${eventId} for update
  `
}

/**
 * Answers the question of an event. Throws `not_found`, `forbidden`, and `conflict` with the first
 * answer.
 */
export async function answerQuestion(
  tx: Tx,
  { projectId, actor, admitted, role }: CallOn<'project'>,
  { eventId: id, action }: { eventId: string; action: string },
): Promise<Question> {
  const eventId = parseId('evt', id)
  if (eventId) await lockQuestion(tx, { projectId, eventId })
  const question = await getQuestion(tx, { projectId, eventId: id })
  const { actions, state, by } = question
  const label = (id: string | null) => actions.find(one => one.id === id)?.label
  if (!isAtLeast(role, question.role)) {
    const message = `Answering this question requires the ${question.role} role; you are a ${role}.`
    throw new Fault('forbidden', message)
  }
  if (state !== 'waiting') {
    const message = by ? `${label(question.action)} — answered by ${by}` : 'Nobody answered in time'
    throw new Fault('conflict', message, {}, toAnswer(question))
  }
  if (!label(action)) throw invalidField('action', 'invalid_value', 'The event has no such action')
  const { accountId, tokenName } = toAuthor(admitted)
  await tx`
    update questions set action = ${action}, account_id = ${accountId}, token_name = ${tokenName}
    where project_id = ${projectId} and event_id = ${question.eventId}
  `
  await tx`
    delete from outbox
    where project_id = ${projectId} and event_id = ${question.eventId} and kind = 'timer'
      and target_id = timer_target(${projectId}, 4)
  `
  const answered = await getQuestion(tx, { projectId, eventId: id })
  const title = `${label(action)} — answered by ${answered.by}`
  await endQuestion(tx, answered, { title, actor })
  return getQuestion(tx, { projectId, eventId: id })
}

/** Appends the end of a question to its thread, and starts the timer of its callback. */
export async function endQuestion(
  tx: Tx,
  question: Question & QuestionRef,
  { title, actor = SERVER }: { title: string; actor?: Actor },
): Promise<void> {
  const { projectId, eventId, organizationId, channelId, thread, action, by, notify } = question
  await tx`
    update questions set ended_at = now() where project_id = ${projectId} and event_id = ${eventId}
  `
  const metadata = { answer: { action, by } }
  await appendOwn(
    tx,
    { projectId, channelId },
    { title, thread, state: 'resolved', metadata, notify, source: 'tidings' },
  )
  if (question.callbackUrl) {
    await tx`
      insert into outbox (project_id, event_id, kind, target_id)
      values (${projectId}, ${eventId}, 'timer', timer_target(${projectId}, 5))
      on conflict (project_id, event_id, kind, target_id) do nothing
    `
  }
  await writeAudit(tx, actor, {
    action: action === null ? 'event.expired' : 'event.answered',
    organizationId,
    projectId,
    target: toId('evt', eventId),
  })
}

/** Notes that the program has the answer. Returns false if that was known. */
export async function noteReceived(
  sql: Queryable,
  { projectId, eventId }: QuestionRef,
): Promise<boolean> {
  const noted = await sql`
    update questions set received_at = now()
    where project_id = ${projectId} and event_id = ${eventId} and ended_at is not null and received_at is null
  `
  return noted.count > 0
}
