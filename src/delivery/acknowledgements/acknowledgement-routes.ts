import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import type { Hints } from '../../base/hints.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { acknowledge, getAcknowledgement } from './acknowledgements.ts'
import { Acknowledgement, AcknowledgementInput, AcknowledgementStatus } from './schema.ts'

const tags = ['Events']

/** Routes that acknowledge a thread, or an event without one. */
export function acknowledgementRoutes({ guard, hints }: { guard: SessionGuard; hints: Hints }) {
  return new Elysia({ name: 'acknowledgements' })
    .use(guard)
    .get(
      '/api/projects/:projectId/events/:eventId/acknowledgement',
      ({ call, params: { eventId } }) =>
        succeedRead(call, sql => getAcknowledgement(sql, { projectId: call.projectId, eventId })),
      {
        project: 'events.read',
        response: { 200: SuccessOf(AcknowledgementStatus) },
        detail: {
          operationId: 'getAcknowledgement',
          summary: 'Get the acknowledgement of an event or its thread',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/events/:eventId/acknowledgement',
      async ({ call, params: { eventId }, body: { minutes } }) => {
        const { projectId } = call
        const made = await transact(call.pool, tx =>
          acknowledge(tx, call, { eventId, ...(minutes !== undefined && { minutes }) }),
        )
        if (made.isNew) hints.send([{ kind: 'acknowledged', projectId, seq: made.seq }])
        return succeed(call, 200, made.acknowledgement)
      },
      {
        project: 'events.acknowledge',
        body: AcknowledgementInput,
        response: {
          200: SuccessOf(Acknowledgement, 'The first acknowledgement, also if it is not this one.'),
        },
        detail: {
          operationId: 'acknowledgeEvent',
          summary: 'Acknowledge an event or its thread',
          description: 'Cancels its repetitions and stages. Only the first acknowledgement counts.',
          tags,
        },
      },
    )
}
