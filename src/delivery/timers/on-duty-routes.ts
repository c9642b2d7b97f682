import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { getOnDuty, setOnDuty } from './on-duty.ts'
import { OnDuty, OnDutyInput } from './on-duty-schema.ts'

const tags = ['Projects']
const path = '/api/projects/:projectId/on-duty'

/** Routes of the member on duty. */
export function onDutyRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'on-duty' })
    .use(guard)
    .get(path, ({ call }) => succeedRead(call, sql => getOnDuty(sql, call.projectId)), {
      project: 'project.read',
      response: { 200: SuccessOf(OnDuty) },
      detail: { operationId: 'getOnDuty', summary: 'Get who is on duty', tags },
    })
    .put(
      path,
      async ({ call, body }) =>
        succeed(call, 200, await transact(call.pool, tx => setOnDuty(tx, call, body))),
      {
        project: 'onDuty.edit',
        body: OnDutyInput,
        response: { 200: SuccessOf(OnDuty) },
        detail: { operationId: 'setOnDuty', summary: 'Put a member on duty', tags },
      },
    )
    .delete(
      path,
      async ({ call }) =>
        succeed(call, 200, await transact(call.pool, tx => setOnDuty(tx, call, null))),
      {
        project: 'onDuty.edit',
        response: { 200: SuccessOf(OnDuty, 'Nobody is on duty.') },
        detail: { operationId: 'endOnDuty', summary: 'End the duty of a member', tags },
      },
    )
}
