import { Elysia } from 'elysia'
import type { SessionGuard } from '../../access/guard/guard.ts'
import type { Pool } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { findProjectOf, getOverview } from './overview.ts'
import { Overview, ProjectOfEvent } from './schema.ts'

/** The routes of an account that concern all of its projects. */
export function overviewRoutes({ guard, searches }: { guard: SessionGuard; searches: Pool }) {
  return new Elysia({ name: 'overview' })
    .use(guard)
    .get(
      '/api/overview',
      async ({ call }) => {
        const { admitted, pool } = call
        return succeed(
          call,
          200,
          await getOverview(admitted, { pool, searches, nowMs: Date.now() }),
        )
      },
      {
        account: 'overview.read',
        response: { 200: SuccessOf(Overview) },
        detail: {
          operationId: 'getOverview',
          summary: 'Get the state of all your projects',
          tags: ['Projects'],
        },
      },
    )
    .get(
      '/api/events/:eventId/project',
      async ({ call, params: { eventId } }) =>
        succeed(call, 200, { id: await findProjectOf(eventId, call.admitted, call.pool) }),
      {
        account: 'overview.read',
        response: { 200: SuccessOf(ProjectOfEvent) },
        detail: {
          operationId: 'getProjectOfEvent',
          summary: 'Get the project of an event',
          tags: ['Events'],
        },
      },
    )
}
