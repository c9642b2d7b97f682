import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { SessionGuard } from '../../access/guard/guard.ts'
import type { Hints } from '../../base/hints.ts'
import { transact } from '../../database/pool.ts'
import { succeed, succeedJson } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { closed, Timestamp } from '../../http/schema-parts.ts'
import { deleteEvent, restoreEvent } from './deletion.ts'

const tags = ['Events']
/** The response to a deletion. The dashboard offers to undo it until `undoUntil`. */
const Deleted = Type.Object({ undoUntil: Timestamp }, closed)
const Restored = Type.Object({ id: Type.String(), seq: Type.Integer({ minimum: 1 }) }, closed)

interface Parts {
  guard: SessionGuard
  hints: Hints
}

/** Routes that delete an event and undo the deletion. */
export function eventDeletionRoutes({ guard, hints }: Parts) {
  return new Elysia({ name: 'events.deletion' })
    .use(guard)
    .delete(
      '/api/projects/:projectId/events/:eventId',
      async ({ call, params: { eventId: id } }) => {
        const { actor, organizationId, projectId } = call
        const place = { organizationId, projectId, id }
        const { undoUntil, seq } = await transact(call.pool, tx => deleteEvent(tx, actor, place))
        hints.send([{ kind: 'deleted', projectId, seq: Number(seq) }])
        return succeed(call, 200, { undoUntil })
      },
      {
        project: 'events.delete',
        response: { 200: SuccessOf(Deleted) },
        detail: { operationId: 'deleteEvent', summary: 'Delete an event', tags },
      },
    )
    .post(
      '/api/projects/:projectId/events/:eventId/restore',
      async ({ call, params: { eventId: id } }) => {
        const { actor, organizationId, projectId } = call
        const place = { organizationId, projectId, id }
        const { seq } = await transact(call.pool, tx => restoreEvent(tx, actor, place))
        hints.send([{ kind: 'restored', projectId, seq: Number(seq) }])
        return succeedJson(call, 200, `{"id":${JSON.stringify(id)},"seq":${seq}}`)
      },
      {
        project: 'events.delete',
        response: { 200: SuccessOf(Restored) },
        detail: { operationId: 'restoreEvent', summary: 'Undo the deletion of an event', tags },
      },
    )
}
