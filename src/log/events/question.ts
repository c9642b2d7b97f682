import { createHash, createHmac } from 'node:crypto'
import { parseId } from '../../base/ids.ts'
import { toArray } from '../../database/arrays.ts'
import type { SecretLoss } from '../../database/secrets/reset.ts'
import type { SealedCell, Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import type { Egress } from '../../http/egress/egress.ts'
import { invalidField, InvalidRequest } from '../../http/validation.ts'
import type { NewEvent } from './new-event.ts'
import type { Question } from './question-schema.ts'
import type { EventInput } from './schema.ts'

/** The most questions of a project that wait. */
const MAX_WAITING = 1_000
/** Timers of callbacks have this number or more, by host: one that hangs delays only its own. */
export const FIRST_CALLBACK = 1_000

/** A question that was checked. */
export interface AskedQuestion extends Required<Question> {
  secrets: QuestionParts['secrets']
}

/** The check of callback URLs, and the keys that seal them and sign callbacks. */
export interface QuestionParts {
  egress: Pick<Egress, 'findProblem'>
  secrets: Pick<Secrets, 'derive' | 'seal'>
}

/** The sealed column, for the rotation of APP_SECRET. */
export const SEALED_QUESTIONS = { table: 'questions', columns: ['callback_url'] } as const

/** Drops callbacks whose URL cannot be opened. */
export const QUESTION_LOSS: SecretLoss = {
  ...SEALED_QUESTIONS,
  describe: count => `Callbacks of questions dropped: ${count}. Programs can fetch the answers`,
  async drop(tx, ids) {
    await tx`update questions set callback_url = null where id = any(${toArray(ids)}::uuid[])`
  },
}

/** Returns the cell that the callback URL of a question is sealed for. */
export function toSealedCell(eventId: string): SealedCell {
  return { table: SEALED_QUESTIONS.table, column: 'callback_url', rowId: eventId }
}

/** Returns the question of a request; undefined without one. Throws `InvalidRequest`. */
export function readQuestion(
  { egress, secrets }: QuestionParts,
  { actions, answer, thread, state }: Question & Pick<EventInput, 'thread' | 'state'>,
): AskedQuestion | undefined {
  if (!actions && !answer) return undefined
  if (!actions) throw invalidField('actions', 'required', '`answer` requires `actions`')
  if (!answer) throw invalidField('answer', 'required', '`actions` require `answer`')
  for (const [field, value] of Object.entries({ thread, state }))
    if (value !== undefined)
      throw invalidField(field, 'invalid_value', `A question has a ${field} of its own`)
  const refuse = (path: string[], message: string) =>
    new InvalidRequest([{ path, code: 'invalid_value', message }])
  for (const [n, { id }] of actions.entries())
    if (!/^[a-z0-9_-]+$/.test(id) || actions.findIndex(one => one.id === id) < n)
      throw refuse(
        ['actions', String(n), 'id'],
        'Must be its own, and have only lower-case letters, digits, _ and -',
      )
  const problem = answer.callbackUrl && egress.findProblem(answer.callbackUrl)
  if (problem) throw refuse(['answer', 'callbackUrl'], problem)
  return {
    actions: actions.map(({ id, label }) => ({ id, label: label.trim() })),
    ...{ answer, secrets },
  }
}

/** Returns the thread of a question, which no other has, and which its end resolves. */
export const toQuestionThread = ({ id }: Pick<NewEvent, 'id'>) =>
  ({ thread: `question:${id.id}`, state: 'running' }) as const

/** Stores the question of an event that was just appended, and starts the timer of its expiry. */
export async function storeQuestion(
  tx: Tx,
  { projectId, event, createdAtMs }: { projectId: string; event: NewEvent; createdAtMs: number },
  { actions, answer, secrets }: AskedQuestion,
): Promise<void> {
  const { uuid } = event.id
  const url = answer.callbackUrl
  const digest = url && createHash('sha256').update(new URL(url).host).digest()
  await tx`
    with q as (
      insert into questions (project_id, id, actions, expires_at, lowest_role, callback_url, callback_target)
      values (
        ${projectId}, ${uuid}, ${JSON.stringify(actions)}::text::jsonb, ${toExpiry(createdAtMs, answer)},
        ${(answer.by ?? 'members').slice(0, -1)}, ${url ? secrets.seal(url, toSealedCell(uuid)) : null},
        timer_target(${projectId}, ${digest ? FIRST_CALLBACK + (digest.readUInt16BE() % 9_000) : null}::int)
      )
      returning *
    )
    insert into outbox (project_id, event_id, kind, target_id, available_at, requested_at)
    select q.project_id, q.id, 'timer', timer_target(q.project_id, 4), q.expires_at, q.expires_at from q
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
  { actions, answer, secrets }: AskedQuestion,
): string {
  const { data } = JSON.parse(stored) as { data: { id: string; createdAt: string } }
  const asked = {
    expiresAt: toExpiry(Date.parse(data.createdAt), answer).toISOString(),
    by: answer.by ?? 'members',
    ...(answer.callbackUrl && { secret: toCallbackSecret(secrets, parseId('evt', data.id)!) }),
  }
  return insertQuestion(stored, stored.lastIndexOf('},"requestId":"'), actions, asked)
}

/** Inserts a question at the end of its event's JSON. */
const insertQuestion = (text: string, end: number, actions: object, answer: object): string =>
  `${text.slice(0, end)},${JSON.stringify({ actions, answer }).slice(1, -1)}${text.slice(end)}`

function toExpiry(createdAtMs: number, { expiresInSeconds }: AskedQuestion['answer']): Date {
  return new Date(createdAtMs + expiresInSeconds * 1000)
}

/** Returns the secret that signs the callback of a question, by the uuid of its event. */
export function toCallbackSecret({ derive }: Pick<Secrets, 'derive'>, eventId: string): string {
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
  const [row] = await sql<{ actions: object; answer: object }[]>`
    select actions, json_build_object('expiresAt', to_iso(expires_at), 'by', lowest_role || 's') as answer
    from questions
    where project_id = ${projectId} and id = ${parseId('evt', id)!}
  `
  return row ? insertQuestion(eventJson, eventJson.length - 1, row.actions, row.answer) : eventJson
}
