import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { respondToWrite, toKeyActor, type KeyCall, type KeyGuard } from '../../access/keys/guard.ts'
import type { Pool } from '../../database/pool.ts'
import { succeed, succeedJson } from '../../http/call.ts'
import { Failure, SuccessOf } from '../../http/envelope.ts'
import { Text } from '../../http/rules.ts'
import { toErased, type Eraser } from './erasure.ts'
import { toIdentifyResponse, type IdentityWriter } from './identify.ts'
import { Erased, Identified, IdentifyInput, User } from './schema.ts'
import { getUserJson } from './users.ts'

const tags = ['Identities']
const toParameters = (description: string) =>
  Type.Object({ userId: Text({ minLength: 1, maxLength: 255, description }) })
const NAMED = toParameters('A user_id or an alias.')
const EXACT = toParameters('The exact user_id.')
const USER_RESPONSES = { 200: SuccessOf(User, 'The user.'), 404: Failure }
const ERASED_RESPONSES = {
  200: SuccessOf(Erased, 'The user is erased.'),
  202: SuccessOf(
    Erased,
    'The identity, its properties and aliases are deleted. The rest follows. The request can be repeated to wait for the end.',
  ),
  404: Failure,
}
/** Why a user can be named by a parameter. */
const WHY = 'It also reaches the names `.` and `..`, which clients remove from paths.'

interface Parts {
  guard: KeyGuard
  identityWriter: IdentityWriter
  eraser: Eraser
  lists: Pool
  /** Returns the client's address, for the audit log. */
  toAddress(request: Request): string
}

/** Routes of /v1 that identify, read and erase users. */
export function identityRoutes(parts: Parts) {
  const { guard, identityWriter, eraser, lists, toAddress } = parts

  async function respondWithUser(call: KeyCall, userId: string): Promise<Response> {
    const { projectId, organizationId } = call.key
    const json = await lists.of(organizationId).run(sql => getUserJson(sql, projectId, userId))
    return succeedJson(call, 200, json)
  }

  async function erase(call: KeyCall, request: Request, userId: string): Promise<Response> {
    const { projectId, organizationId } = call.key
    const actor = toKeyActor(call.key, request, toAddress)
    const state = await eraser.erase({ organizationId, projectId, userId }, actor)
    return succeed(call, state.isDone ? 200 : 202, toErased(userId, state))
  }

  return new Elysia({ name: 'identities' })
    .use(guard)
    .post(
      '/v1/identify',
      async ({ call, body: input }) => {
        const { key, requestId, claim } = call
        const { projectId, organizationId } = key
        const job = { organizationId, projectId, input, requestId, claim }
        const written = await identityWriter.identify(job)
        return respondToWrite(call, 200, written, (body, mayReadUsers) =>
          toIdentifyResponse(body, input, mayReadUsers),
        )
      },
      {
        scope: 'identities:write',
        body: IdentifyInput,
        response: { 200: SuccessOf(Identified, 'The identity is stored.') },
        detail: {
          operationId: 'identify',
          summary: 'Create or update a user identity',
          description:
            'A repeated call updates the identity. An alias that cannot be created is listed in `failed`, and the rest is stored. ' +
            'A key without `identities:read` gets back only what it sent.',
          tags,
        },
      },
    )
    .get('/v1/users/:userId', ({ call, params }) => respondWithUser(call, params.userId), {
      scope: 'identities:read',
      params: NAMED,
      response: USER_RESPONSES,
      detail: {
        operationId: 'getUser',
        summary: 'Get a user',
        description: 'Finds the user by user_id or by any alias.',
        tags,
      },
    })
    .get('/v1/users', ({ call, query }) => respondWithUser(call, query.userId), {
      scope: 'identities:read',
      query: NAMED,
      response: USER_RESPONSES,
      detail: {
        operationId: 'findUser',
        summary: 'Get a user by a parameter',
        description: `The same as \`GET /v1/users/{userId}\`. ${WHY}`,
        tags,
      },
    })
    .delete(
      '/v1/users/:userId',
      ({ call, request, params }) => erase(call, request, params.userId),
      {
        scope: 'identities:erase',
        params: EXACT,
        response: ERASED_RESPONSES,
        detail: {
          operationId: 'eraseUser',
          summary: 'Erase a user',
          description:
            'Deletes identity, properties and aliases for good, and removes the user from events. Requires the exact user_id.',
          tags,
        },
      },
    )
    .delete('/v1/users', ({ call, request, query }) => erase(call, request, query.userId), {
      scope: 'identities:erase',
      query: EXACT,
      response: ERASED_RESPONSES,
      detail: {
        operationId: 'eraseFoundUser',
        summary: 'Erase a user by a parameter',
        description: `The same as \`DELETE /v1/users/{userId}\`. ${WHY}`,
        tags,
      },
    })
}
