import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { KeyCall, KeyGuard } from '../../access/keys/guard.ts'
import type { Hints } from '../../base/hints.ts'
import type { Pool } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { Failure, SuccessOf } from '../../http/envelope.ts'
import { getQuestion, noteReceived, toAnswer } from './answers.ts'
import type { AnswerWaits } from './answer-waits.ts'
import { Answer, AnswerQuery } from './schema.ts'

export interface AnswerParts {
  lists: Pool
  answerWaits: AnswerWaits
  hints: Hints
}

/**
 * Returns a function that responds with the answer to the question of an event, at once or when a
 * member answers. `wait` is in seconds.
 */
export function createAnswerReader({ lists, answerWaits, hints }: AnswerParts) {
  return async (
    call: KeyCall,
    signal: AbortSignal,
    { id, wait }: { id: string; wait: number },
  ): Promise<Response> => {
    const { projectId, organizationId } = call.key
    const pool = lists.of(organizationId)
    // Requests that wait have a limit of their own.
    if (wait > 0) {
      call.release?.()
      call.release = undefined
    }
    const waiting = { organizationId, projectId, waitMs: wait * 1000, signal }
    const question = await answerWaits.until(waiting, () =>
      pool.run(sql => getQuestion(sql, { projectId, eventId: id })),
    )
    const { state, seq, receivedAt } = question
    if (state === 'answered' && receivedAt === null && !signal.aborted) {
      question.receivedAt = await pool.run(sql => noteReceived(sql, question))
      hints.send([{ kind: 'answered', projectId, seq }])
    }
    return succeed(call, 200, toAnswer(question))
  }
}

/** The route of /v1 by which a program fetches the answer to its question. */
export function keyAnswerRoutes({ guard, ...parts }: AnswerParts & { guard: KeyGuard }) {
  const read = createAnswerReader(parts)
  return new Elysia({ name: 'answers.key' })
    .use(guard)
    .get(
      '/v1/events/:id/answer',
      ({ call, request: { signal }, params: { id }, query: { wait = 0 } }) =>
        read(call, signal, { id, wait }),
      {
        scope: 'events:read',
        params: Type.Object({
          id: Type.String({ minLength: 1, description: 'The id of the event.' }),
        }),
        query: AnswerQuery,
        response: { 200: SuccessOf(Answer, 'The answer, or `waiting`.'), 404: Failure },
        detail: {
          operationId: 'getAnswer',
          summary: 'Get the answer to the question of an event',
          description:
            'With `wait`, the response comes as soon as a member answers. Ask again while the state is `waiting`.',
          tags: ['Events'],
        },
      },
    )
}
