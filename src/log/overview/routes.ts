import { Elysia } from 'elysia'
import type { SessionGuard } from '../../access/guard/guard.ts'
import type { Pool } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { getOverview } from './overview.ts'
import { Overview } from './schema.ts'

/** The route of the overview of all projects of an account. */
export function overviewRoutes({ guard, searches }: { guard: SessionGuard; searches: Pool }) {
  return new Elysia({ name: 'overview' }).use(guard).get(
    '/api/overview',
    async ({ call }) => {
      const { admitted, pool } = call
      return succeed(call, 200, await getOverview(admitted, { pool, searches, nowMs: Date.now() }))
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
}
