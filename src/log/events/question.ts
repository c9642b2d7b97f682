import { createHmac } from 'node:crypto'
import { parseId } from '../../base/ids.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import type { Egress } from '../../http/egress/egress.ts'
import type { Issue } from '../../http/rules.ts'
import { invalidField, InvalidRequest } from '../../http/validation.ts'
import type { NewEvent } from './new-event.ts'
import type { Question } from './question-schema.ts'

/** The most questions of a project that wait. */
const MAX_WAITING = 1_000
const ACTION_ID = /^[a-z0-9_-]+$/

/** A question that was checked. */
export interface AskedQuestion extends Required<Question> {
  /** Returns the secret of its callback, by the uuid of its event. */
  toSecret(eventId: string): string
}

/** The check of callback URLs, and the key that secrets of callbacks come from. */
export interface QuestionParts {
  egress: Pick<Egress, 'findProblem'>
  secrets: Pick<Secrets, 'derive'>
}

/** Returns the question of a request; undefined without one. Throws `InvalidRequest`. */
export function readQuestion(
  { egress, secrets }: QuestionParts,
  { actions, answer }: Question,
): AskedQuestion | undefined {
  if (!actions && !answer) return undefined
  if (!actions) throw invalidField('actions', 'required', '`answer` requires `actions`')
  if (!answer) throw invalidField('answer', 'required', '`actions` require `answer`')
  const ids = actions.map(({ id }) => id)
  const issues = ids.flatMap((id, n): Issue[] => {
    const message = !ACTION_ID.test(id)
      ? 'Must have only lower-case letters, digits, _ and -'
      : ids.indexOf(id) < n
        ? 'Each action must have another id'
        : undefined
    return message ? [{ path: ['actions', String(n), 'id'], code: 'invalid_format', message }] : []
  })
  const problem = answer.callbackUrl && egress.findProblem(answer.callbackUrl)
  if (problem)
    issues.push({ path: ['answer', 'callbackUrl'], code: 'invalid_value', message: problem })
  if (issues.length > 0) throw new InvalidRequest(issues)
  return {
    actions: actions.map(({ id, label }) => ({ id, label: label.trim() })),
    answer,
    toSecret: eventId => toCallbackSecret(secrets, eventId),
  }
}

/** Gives the event of a question a thread, and a state that is on the page Open. */
export function toAskingEvent(event: NewEvent): NewEvent {
  return {
    ...event,
    thread: event.thread ?? `question:${event.id.id}`,
    state: event.state ?? 'running',
  }
}

/** Stores the question of an event that was just appended, and starts the timer of its expiry. */
export async function storeQuestion(
  tx: Tx,
  { projectId, event, createdAtMs }: { projectId: string; event: NewEvent; createdAtMs: number },
  { actions, answer }: AskedQuestion,
): Promise<void> {
  const eventId = event.id.uuid
  const expiresAt = toExpiry(createdAtMs, answer)
  await tx`
    insert into questions (project_id, event_id, actions, expires_at, lowest_role, callback_url)
    values (
      ${projectId}, ${eventId}, ${JSON.stringify(actions)}::text::jsonb, ${expiresAt},
      ${(answer.by ?? 'members').slice(0, -1)}, ${answer.callbackUrl ?? null}
    )
  `
  await tx`
    insert into outbox (project_id, event_id, kind, target_id, available_at, requested_at)
    values (${projectId}, ${eventId}, 'timer', timer_target(${projectId}, 4), ${expiresAt}, ${expiresAt})
  `
  const waiting = await tx`
    select from questions where project_id = ${projectId} and ended_at is null limit ${MAX_WAITING + 1}
  `
  if (waiting.count > MAX_WAITING) {
    const message = `A project has at most ${MAX_WAITING} questions that wait for an answer`
    throw invalidField('actions', 'too_many', message)
  }
}

/**
 * Adds its question to the response to an event. A repeated request gets the same bytes: the rest
 * of the response is stored, and what this adds comes from that and from the request.
 */
export function toAskedResponse(
  stored: string,
  { actions, answer, toSecret }: AskedQuestion,
): string {
  const { data } = JSON.parse(stored) as { data: { id: string; createdAt: string } }
  const asked = {
    expiresAt: toExpiry(Date.parse(data.createdAt), answer).toISOString(),
    by: answer.by ?? 'members',
    ...(answer.callbackUrl && { secret: toSecret(parseId('evt', data.id)!) }),
  }
  const at = stored.lastIndexOf('},"requestId":"')
  return `${stored.slice(0, at)},"actions":${JSON.stringify(actions)},"answer":${JSON.stringify(asked)}${stored.slice(at)}`
}

function toExpiry(createdAtMs: number, { expiresInSeconds }: AskedQuestion['answer']): Date {
  return new Date(createdAtMs + expiresInSeconds * 1000)
}

/** Returns the secret that signs the callback of a question, by the uuid of its event. */
export function toCallbackSecret({ derive }: QuestionParts['secrets'], eventId: string): string {
  const key = createHmac('sha256', derive('callbacks of questions')).update(eventId)
  return `whsec_${key.digest('base64')}`
}

/** Adds its question to the JSON of an event. Only events of threads have one. */
export async function addQuestion(
  sql: Queryable,
  { projectId, id }: { projectId: string; id: string },
  eventJson: string,
): Promise<string> {
  if (!eventJson.includes('"threadSeq":')) return eventJson
  const [row] = await sql<{ actions: string; answer: string }[]>`
    select
      q.actions::text as actions,
      json_build_object('expiresAt', to_iso(q.expires_at), 'by', q.lowest_role || 's')::text as answer
    from questions q
    where q.project_id = ${projectId} and q.event_id = ${parseId('evt', id)!}
  `
  return row
    ? `${eventJson.slice(0, -1)},"actions":${row.actions},"answer":${row.answer}}`
    : eventJson
}
