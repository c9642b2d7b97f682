import { Type } from '@sinclair/typebox'
import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import type { Hints } from '../hints.ts'
import { closed, Moment } from '../http/shapes.ts'
import { deleteEvent, restoreEvent } from './deletion.ts'

/** What the deletion of an event answers: until when the dashboard offers to undo it. */
const Deleted = Type.Object({ undoUntil: Moment }, closed)
const Restored = Type.Object({ id: Type.String(), seq: Type.Integer({ minimum: 1 }) }, closed)

/** Deletes events, and undoes that. */
export function eventDeletionRoutes({ pool, hints }: { pool: Pool; hints: Hints }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'DELETE',
      path: '/api/projects/:projectId/events/:eventId',
      action: 'events.delete',
      success: { status: 200, data: Deleted },
      async handle({ actor, organizationId, projectId, params }) {
        const place = { organizationId, projectId, id: params['eventId'] ?? '' }
        const { undoUntil, seq } = await transact(pool, tx => deleteEvent(tx, actor, place))
        hints.tell([{ kind: 'deleted', projectId, seq: Number(seq) }])
        return JSON.stringify({ undoUntil })
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/projects/:projectId/events/:eventId/restore',
      action: 'events.delete',
      success: { status: 200, data: Restored },
      async handle({ actor, organizationId, projectId, params }) {
        const place = { organizationId, projectId, id: params['eventId'] ?? '' }
        const { seq } = await transact(pool, tx => restoreEvent(tx, actor, place))
        hints.tell([{ kind: 'restored', projectId, seq: Number(seq) }])
        return `{"id":${JSON.stringify(place.id)},"seq":${seq}}`
      },
    }),
  ]
}
