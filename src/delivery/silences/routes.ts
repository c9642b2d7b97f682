import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import { DeletedId } from '../../access/guard/schema.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { NewSilence, Silence, Silences } from './schema.ts'
import { beginSilence, endSilence, listSilences } from './silences.ts'

const tags = ['Silences']

/** Routes of the dashboard for the silences of a project. */
export function silenceRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'silences' })
    .use(guard)
    .get(
      '/api/projects/:projectId/silences',
      ({ call }) => succeedRead(call, sql => listSilences(sql, call.projectId)),
      {
        project: 'silences.read',
        response: { 200: SuccessOf(Silences) },
        detail: { operationId: 'listSilences', summary: 'List silences', tags },
      },
    )
    .post(
      '/api/projects/:projectId/silences',
      async ({ call, body }) =>
        succeed(call, 201, await transact(call.pool, tx => beginSilence(tx, call, body))),
      {
        project: 'silences.edit',
        body: NewSilence,
        response: { 201: SuccessOf(Silence) },
        detail: {
          operationId: 'createProjectSilence',
          summary: 'Silence a project or a part of it',
          tags,
        },
      },
    )
    .delete(
      '/api/projects/:projectId/silences/:silenceId',
      async ({ call, params: { silenceId: id } }) => {
        await transact(call.pool, tx => endSilence(tx, call, id))
        return succeed(call, 200, { id })
      },
      {
        project: 'silences.edit',
        response: { 200: SuccessOf(DeletedId) },
        detail: { operationId: 'endProjectSilence', summary: 'End a silence', tags },
      },
    )
}
