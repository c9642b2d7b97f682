import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import { writeAudit } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { PageOf } from '../http/envelope.ts'
import { listAliasChanges } from './alias-history.ts'
import { addAlias, removeAlias } from './aliases.ts'
import { Erased } from './schema.ts'
import { getUserDetailJson, listUsersJson } from './user-pages.ts'
import {
  AliasChange,
  AliasHistoryQuery,
  AliasInput,
  OwnAlias,
  RemovedAlias,
  UserDetail,
  UserQuery,
  UserRow,
} from './user-schema.ts'
import { eraseUser } from './users.ts'

/** The users of a project and their aliases, as people see and change them. */
export function userRoutes({ pool }: { pool: Pool }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/users',
      action: 'users.read',
      query: UserQuery,
      success: { status: 200, data: PageOf(UserRow) },
      handle: ({ projectId, query }) => pool.run(sql => listUsersJson(sql, projectId, query)),
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/users/:userId',
      action: 'users.read',
      success: { status: 200, data: UserDetail },
      handle: ({ projectId, params }) =>
        pool.run(sql => getUserDetailJson(sql, projectId, params['userId'] ?? '')),
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/projects/:projectId/users/:userId',
      action: 'users.erase',
      success: { status: 200, data: Erased },
      async handle({ actor, organizationId, projectId, params }) {
        const erased = await eraseUser(
          pool,
          projectId,
          params['userId'] ?? '',
          // Never the user_id: the entry outlives the erasure.
          (tx, { identityId, events }) =>
            writeAudit(tx, actor, {
              action: 'user.erased',
              organizationId,
              projectId,
              target: identityId,
              details: { events },
            }),
        )
        return JSON.stringify(erased)
      },
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/users/:userId/aliases/history',
      action: 'users.read',
      query: AliasHistoryQuery,
      success: { status: 200, data: PageOf(AliasChange) },
      handle: async ({ projectId, params, query }) =>
        JSON.stringify(
          await pool.run(sql => listAliasChanges(sql, projectId, params['userId'] ?? '', query)),
        ),
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/projects/:projectId/users/:userId/aliases',
      action: 'users.editAliases',
      body: AliasInput,
      success: { status: 201, data: OwnAlias },
      async handle({ actor, organizationId, projectId, params, body }) {
        const place = { organizationId, projectId, userId: params['userId'] ?? '' }
        return JSON.stringify(await transact(pool, tx => addAlias(tx, actor, place, body)))
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/projects/:projectId/users/:userId/aliases/:alias',
      action: 'users.editAliases',
      success: { status: 200, data: RemovedAlias },
      async handle({ actor, organizationId, projectId, params }) {
        const { userId = '', alias = '' } = params
        const place = { organizationId, projectId, userId }
        await transact(pool, tx => removeAlias(tx, actor, place, alias))
        return JSON.stringify({ userId, alias })
      },
    }),
  ]
}
