import { SERVER, writeAudit, type Actor } from '../../access/audit/audit.ts'
import { toAuthor } from '../../access/guard/caller.ts'
import type { CallOn } from '../../access/guard/guard.ts'
import { isAtLeast, type Role } from '../../access/guard/permissions.ts'
import { Fault } from '../../base/errors.ts'
import { parseId, toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { invalidField } from '../../http/validation.ts'
import { lockLog } from '../../log/channels/channels.ts'
import { appendOwn } from '../../log/events/append.ts'
import { FORMER_MEMBER } from '../../log/events/threads.ts'
import type { Answer } from './schema.ts'

/** The uuids of an event that asks a question. */
export interface QuestionRef {
  projectId: string
  eventId: string
}

/** A question, and the event that asks it. */
export interface Question extends Answer, QuestionRef {
  actions: { id: string; label: string }[]
  role: Role
  accountId: string | null
  tokenName: string | null
  /** Sealed. Null without a callback, or once that was accepted or given up. */
  callbackUrl: string | null
  /** True once its answer or its end was appended. */
  isOver: boolean
  organizationId: string
  channelId: string
  title: string
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
      q.project_id as "projectId", q.id as "eventId",
      case when q.action is not null then 'answered' when q.ended_at is null and q.expires_at > now() then 'waiting'
        else 'expired' end as state,
      q.action, case when q.action is not null then coalesce(a.name, q.token_name, ${FORMER_MEMBER}) end as by,
      to_iso(case when q.ended_at is not null or q.expires_at <= now() then least(q.ended_at, q.expires_at) end) as at,
      to_iso(q.expires_at) as "expiresAt", to_iso(q.received_at) as "receivedAt", q.actions, q.lowest_role as role,
      q.account_id as "accountId", q.token_name as "tokenName", q.callback_url as "callbackUrl", q.ended_at is not null as "isOver", p.organization_id as "organizationId",
      e.channel_id as "channelId", e.title, e.thread, e.thread_seq::float8 as seq, e.notify
    from questions q
      join projects p on p.id = q.project_id
      cross join lateral event_by_id(q.project_id, q.id) e
      left join accounts a on a.id = q.account_id
    where q.project_id = ${projectId} and q.id = ${eventId} and e.deleted_at is null
  `
  return question
}

/** Returns the question of the event with this public id. Throws `not_found`. */
export async function getQuestion(
  sql: Queryable,
  { projectId, eventId: id }: QuestionRef,
): Promise<Question> {
  const eventId = parseId('evt', id)
  const question = eventId && (await findQuestion(sql, { projectId, eventId }))
  if (!question) throw new Fault('not_found', 'No event with this id asks a question')
  return question
}

export const toAnswer = ({ state, action, by, at, expiresAt, receivedAt }: Question): Answer => ({
  ...{ state, action, by, at, expiresAt, receivedAt },
})

/**
 * Answers the question of an event. Throws `not_found`, `forbidden`, and `conflict` with the first
 * answer.
 */
export async function answerQuestion(
  tx: Tx,
  { projectId, actor, admitted, role }: CallOn<'project'>,
  { eventId, action }: { eventId: string; action: string },
): Promise<Question> {
  await lockLog(tx, projectId)
  const question = await getQuestion(tx, { projectId, eventId })
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
  const answered = {
    ...{ ...question, action, accountId, tokenName, by: tokenName ?? admitted.account.name },
    state: 'answered' as const,
  }
  const title = `${label(action)} — answered by ${answered.by}`
  return { ...answered, at: await endQuestion(tx, answered, { title, actor }) }
}

/**
 * Appends the end of a question to its thread, and starts the timer of its callback. Returns the
 * time.
 */
export async function endQuestion(
  tx: Tx,
  question: Question,
  { title, actor = SERVER }: { title: string; actor?: Actor },
): Promise<string> {
  const { projectId, eventId, organizationId, action, by, thread, notify } = question
  const [ended] = await tx<[{ at: string }]>`
    with ended as (
      update questions set
        ended_at = now(), action = ${action}, account_id = ${question.accountId}, token_name = ${question.tokenName}
      where project_id = ${projectId} and id = ${eventId}
      returning *
    ), expiry as (
      delete from outbox o using ended e
      where o.project_id = e.project_id and o.event_id = e.id and o.kind = 'timer'
        and o.target_id = timer_target(e.project_id, 4) and e.action is not null
    ), callback as (
      insert into outbox (project_id, event_id, kind, target_id)
      select e.project_id, e.id, 'timer', e.callback_target from ended e where e.callback_target is not null
    )
    select to_iso(ended_at) as at from ended
  `
  const metadata = { answer: { action, by } }
  await appendOwn(tx, question, {
    title,
    description: question.title,
    thread,
    state: 'resolved',
    metadata,
    notify,
    source: 'tidings',
  })
  await writeAudit(tx, actor, {
    action: action === null ? 'event.expired' : 'event.answered',
    ...{ organizationId, projectId, target: toId('evt', eventId) },
  })
  return ended.at
}

/** Notes that the program has the answer. Returns since when. */
export async function noteReceived(
  sql: Queryable,
  { projectId, eventId }: QuestionRef,
): Promise<string | null> {
  const [noted] = await sql<{ receivedAt: string }[]>`
    update questions set received_at = coalesce(received_at, now())
    where project_id = ${projectId} and id = ${eventId}
    returning to_iso(received_at) as "receivedAt"
  `
  return noted?.receivedAt ?? null
}
