import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { respondToWrite, toKeyActor, type KeyCall, type KeyGuard } from '../../access/keys/guard.ts'
import { DeletedId } from '../../access/guard/schema.ts'
import { transact, type Pool } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { Failure, SuccessOf, toSuccess } from '../../http/envelope.ts'
import { storeOnce, type InFlightRequests } from '../../http/limits/idempotency.ts'
import { NewSilence, Silence } from './schema.ts'
import { beginSilence, endSilence, type SilenceCall } from './silences.ts'

const tags = ['Silences']

interface Parts {
  guard: KeyGuard
  inflight: InFlightRequests
  lists: Pool
  /** Returns the client's address, for the audit log. */
  toAddress(request: Request): string
}

/** Routes of /v1 that begin and end silences. */
export function keySilenceRoutes({ guard, inflight, lists, toAddress }: Parts) {
  const toSilenceCall = ({ key }: KeyCall, request: Request): SilenceCall => ({
    ...key,
    actor: toKeyActor(key, request, toAddress),
  })

  return new Elysia({ name: 'silences.key' })
    .use(guard)
    .post(
      '/v1/silences',
      async ({ call, request, body }) => {
        const { key, requestId, claim } = call
        const pool = lists.of(key.organizationId)
        const write = () =>
          transact(pool, tx =>
            storeOnce(tx, { projectId: key.projectId, claim }, async () => {
              const silence = await beginSilence(tx, toSilenceCall(call, request), body)
              return toSuccess(JSON.stringify(silence), requestId)
            }),
          )
        const written = await (claim ? inflight.once(key.projectId, claim, write) : write())
        return respondToWrite(call, 201, written, stored => stored)
      },
      {
        scope: 'events:write',
        body: NewSilence,
        response: { 201: SuccessOf(Silence, 'The silence.') },
        detail: {
          operationId: 'createSilence',
          summary: 'Silence a project or a part of it',
          description:
            'Members are not told of events in it. When it ends, they are told once of threads that still fire. Requires one of `minutes`, `untilResolved` and `hours`.',
          tags,
        },
      },
    )
    .delete(
      '/v1/silences/:id',
      async ({ call, request, params: { id } }) => {
        await transact(lists.of(call.key.organizationId), tx =>
          endSilence(tx, toSilenceCall(call, request), id),
        )
        return succeed(call, 200, { id })
      },
      {
        scope: 'events:write',
        params: Type.Object({
          id: Type.String({ minLength: 1, description: 'The id of the silence.' }),
        }),
        response: { 200: SuccessOf(DeletedId, 'The silence has ended.'), 404: Failure },
        detail: { operationId: 'endSilence', summary: 'End a silence', tags },
      },
    )
}
