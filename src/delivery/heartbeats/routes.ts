import { Elysia } from 'elysia'
import { succeedRead, type CallOn, type SessionGuard } from '../../access/guard/guard.ts'
import { DeletedId } from '../../access/guard/schema.ts'
import { transact } from '../../database/pool.ts'
import type { Tx } from '../../database/sql.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import type { Site } from '../../http/site.ts'
import {
  createHeartbeat,
  deleteHeartbeat,
  editHeartbeat,
  listHeartbeats,
  listPings,
  type HeartbeatCall,
} from './heartbeats.ts'
import type { PingParts } from './ping-routes.ts'
import { Heartbeat, HeartbeatEdit, HeartbeatPings, Heartbeats, NewHeartbeat } from './schema.ts'

const tags = ['Heartbeats']

type Work = (tx: Tx, call: HeartbeatCall) => Promise<object>

export interface HeartbeatParts extends Pick<PingParts, 'onAppended'> {
  guard: SessionGuard
  site: Site
}

/** Routes of the dashboard for the heartbeats of a project. */
export function heartbeatRoutes({ guard, site, onAppended }: HeartbeatParts) {
  const toCall = (call: CallOn<'project'>): HeartbeatCall => ({ ...call, baseUrl: site.url })

  /** Makes a change, which may append an event. */
  async function change(call: CallOn<'project'>, status: 200 | 201, work: Work) {
    const result = await transact(call.pool, tx => work(tx, toCall(call)))
    onAppended(new Set([call.projectId]))
    return succeed(call, status, result)
  }

  return new Elysia({ name: 'heartbeats' })
    .use(guard)
    .get(
      '/api/projects/:projectId/heartbeats',
      ({ call }) => succeedRead(call, sql => listHeartbeats(sql, toCall(call))),
      {
        project: 'heartbeats.read',
        response: { 200: SuccessOf(Heartbeats) },
        detail: { operationId: 'listHeartbeats', summary: 'List heartbeats', tags },
      },
    )
    .post(
      '/api/projects/:projectId/heartbeats',
      ({ call, body }) => change(call, 201, (tx, on) => createHeartbeat(tx, on, body)),
      {
        project: 'heartbeats.edit',
        body: NewHeartbeat,
        response: { 201: SuccessOf(Heartbeat) },
        detail: { operationId: 'createHeartbeat', summary: 'Create a heartbeat', tags },
      },
    )
    .get(
      '/api/projects/:projectId/heartbeats/:heartbeatId/pings',
      ({ call, params: { heartbeatId } }) =>
        succeedRead(call, sql => listPings(sql, call.projectId, heartbeatId)),
      {
        project: 'heartbeats.read',
        response: { 200: SuccessOf(HeartbeatPings) },
        detail: { operationId: 'listPings', summary: 'List the newest pings', tags },
      },
    )
    .patch(
      '/api/projects/:projectId/heartbeats/:heartbeatId',
      ({ call, params: { heartbeatId: id }, body }) =>
        change(call, 200, (tx, on) => editHeartbeat(tx, on, id, body)),
      {
        project: 'heartbeats.edit',
        body: HeartbeatEdit,
        response: { 200: SuccessOf(Heartbeat) },
        detail: { operationId: 'editHeartbeat', summary: 'Change or pause a heartbeat', tags },
      },
    )
    .delete(
      '/api/projects/:projectId/heartbeats/:heartbeatId',
      ({ call, params: { heartbeatId: id } }) =>
        change(call, 200, async (tx, on) => {
          await deleteHeartbeat(tx, on, id)
          return { id }
        }),
      {
        project: 'heartbeats.edit',
        response: { 200: SuccessOf(DeletedId) },
        detail: { operationId: 'deleteHeartbeat', summary: 'Delete a heartbeat', tags },
      },
    )
}
