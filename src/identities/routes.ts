import type { Pool } from '../db/pool.ts'
import { Text } from '../http/rules.ts'
import { endpoint, toWriteAnswer, type Endpoint } from '../keys/endpoint.ts'
import type { Identifier } from './identify.ts'
import { Erased, Identified, IdentifyInput, User, checkUserId, withUserId } from './schema.ts'
import { eraseUser, getUserJson } from './users.ts'

const tag = 'Identities'

export function identityRoutes({
  identifier,
  reads,
}: {
  identifier: Identifier
  reads: Pool
}): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/identify',
      operationId: 'identify',
      summary: 'Create or update a user identity',
      description:
        'Repeating it updates the identity. An alias that cannot be created is reported, not refused.',
      tag,
      scope: 'identities:write',
      body: IdentifyInput,
      adapt: withUserId,
      alsoCheck: checkUserId,
      example: { user_id: 'user_123', properties: { plan: 'pro' }, aliases: ['ada@example.com'] },
      success: { status: 200, description: 'The identity is stored.', data: Identified },
      async handle({ key, body, requestId, claim }) {
        return toWriteAnswer(
          200,
          await identifier.identify({ projectId: key.projectId, input: body, requestId, claim }),
        )
      },
    }),
    endpoint({
      method: 'GET',
      path: '/v1/users/:userId',
      operationId: 'getUser',
      summary: 'Get a user',
      description: 'By user_id, or by any alias.',
      tag,
      scope: 'identities:read',
      params: {
        userId: Text({ minLength: 1, maxLength: 255, description: 'A user_id or an alias.' }),
      },
      success: { status: 200, description: 'The user.', data: User },
      hasNotFound: true,
      handle: ({ key, params: [userId = ''] }) =>
        reads.run(sql => getUserJson(sql, key.projectId, userId)),
    }),
    endpoint({
      method: 'DELETE',
      path: '/v1/users/:userId',
      operationId: 'eraseUser',
      summary: 'Erase a user',
      description:
        'Identity, properties and aliases go for good, and events no longer name the user. Takes the exact user_id.',
      tag,
      scope: 'identities:write',
      params: { userId: Text({ minLength: 1, maxLength: 255, description: 'The exact user_id.' }) },
      success: { status: 200, description: 'The user is erased.', data: Erased },
      hasNotFound: true,
      async handle({ key, params: [userId = ''] }) {
        return JSON.stringify(await eraseUser(reads, key.projectId, userId))
      },
    }),
  ]
}
