import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import type { Hints } from '../../base/hints.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { answerQuestion, getQuestion, toAnswer } from './answers.ts'
import { Answer, AnswerInput } from './schema.ts'

const tags = ['Events']
const path = '/api/projects/:projectId/events/:eventId/answer'

interface Parts {
  guard: SessionGuard
  hints: Hints
  onAppended(projectIds: ReadonlySet<string>): void
}

/** Routes of members, who answer the question of an event. */
export function answerRoutes({ guard, hints, onAppended }: Parts) {
  return new Elysia({ name: 'answers' })
    .use(guard)
    .get(
      path,
      ({ call, params: { eventId } }) =>
        succeedRead(call, async sql =>
          toAnswer(await getQuestion(sql, { projectId: call.projectId, eventId })),
        ),
      {
        project: 'events.read',
        response: { 200: SuccessOf(Answer) },
        detail: {
          operationId: 'getAnswerStatus',
          summary: 'Get the answer to the question of an event',
          tags,
        },
      },
    )
    .post(
      path,
      async ({ call, params: { eventId }, body: { action } }) => {
        const { projectId } = call
        const question = await transact(call.pool, tx =>
          answerQuestion(tx, call, { eventId, action }),
        )
        onAppended(new Set([projectId]))
        hints.send([{ kind: 'answered', projectId, seq: question.seq }])
        return succeed(call, 200, toAnswer(question))
      },
      {
        project: 'events.answer',
        body: AnswerInput,
        response: { 200: SuccessOf(Answer, 'This is the answer.') },
        detail: {
          operationId: 'answerEvent',
          summary: 'Answer the question of an event',
          description:
            'Only the first answer counts. A later one is a 409 with the first in `details`.',
          tags,
        },
      },
    )
}
