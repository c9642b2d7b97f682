import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Pool } from '../db/pool.ts'
import { succeed, succeedJson } from '../http/call.ts'
import { Failure, SuccessOf } from '../http/envelope.ts'
import { Text } from '../http/rules.ts'
import { respondToWrite, type KeyGuard } from '../keys/guard.ts'
import type { IdentityWriter } from './identify.ts'
import { Erased, Identified, IdentifyInput, User } from './schema.ts'
import { eraseUser, getUserJson } from './users.ts'

const tags = ['Identities']

interface Parts {
  guard: KeyGuard
  identityWriter: IdentityWriter
  reads: Pool
}

/** Routes of /v1 that identify, read and erase users. */
export function identityRoutes({ guard, identityWriter, reads }: Parts) {
  return new Elysia({ name: 'identities' })
    .use(guard)
    .post(
      '/v1/identify',
      async ({ call, body: input }) => {
        const { key, requestId, claim } = call
        const { projectId } = key
        const written = await identityWriter.identify({ projectId, input, requestId, claim })
        return respondToWrite(call, 200, written)
      },
      {
        scope: 'identities:write',
        body: IdentifyInput,
        response: { 200: SuccessOf(Identified, 'The identity is stored.') },
        detail: {
          operationId: 'identify',
          summary: 'Create or update a user identity',
          description:
            'A repeated call updates the identity. An alias that cannot be created is listed in `failed`, and the rest is stored.',
          tags,
        },
      },
    )
    .get(
      '/v1/users/:userId',
      async ({ call, params: { userId } }) => {
        const { projectId } = call.key
        return succeedJson(call, 200, await reads.run(sql => getUserJson(sql, projectId, userId)))
      },
      {
        scope: 'identities:read',
        params: Type.Object({
          userId: Text({ minLength: 1, maxLength: 255, description: 'A user_id or an alias.' }),
        }),
        response: { 200: SuccessOf(User, 'The user.'), 404: Failure },
        detail: {
          operationId: 'getUser',
          summary: 'Get a user',
          description: 'Finds the user by user_id or by any alias.',
          tags,
        },
      },
    )
    .delete(
      '/v1/users/:userId',
      async ({ call, params: { userId } }) =>
        succeed(call, 200, await eraseUser(reads, call.key.projectId, userId)),
      {
        scope: 'identities:write',
        params: Type.Object({
          userId: Text({ minLength: 1, maxLength: 255, description: 'The exact user_id.' }),
        }),
        response: { 200: SuccessOf(Erased, 'The user is erased.'), 404: Failure },
        detail: {
          operationId: 'eraseUser',
          summary: 'Erase a user',
          description:
            'Deletes identity, properties and aliases for good, and removes the user from events. Requires the exact user_id.',
          tags,
        },
      },
    )
}
