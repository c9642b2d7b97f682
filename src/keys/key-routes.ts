import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import { toName } from '../accounts/name.ts'
import { Gone } from '../accounts/organization-schema.ts'
import { lockOrganization } from '../accounts/organizations.ts'
import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import { PageOf } from '../http/envelope.ts'
import { PageQuery } from '../http/paging.ts'
import { getKey, listKeys } from './key-list.ts'
import { createKey, editKey, revokeKey, rotateKey } from './keys.ts'
import { ApiKey, checkKey, KeyBody, KeyChange, NewApiKey, RotateBody } from './schema.ts'

/** The keys of a project, for people; what a key itself may know is in routes.ts. */
export function projectKeyRoutes({ pool }: { pool: Pool }): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/keys',
      action: 'keys.read',
      query: PageQuery,
      success: { status: 200, data: PageOf(ApiKey) },
      handle: async ({ projectId, query }) =>
        JSON.stringify(await pool.run(sql => listKeys(sql, projectId, query))),
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/projects/:projectId/keys',
      action: 'keys.create',
      body: KeyBody,
      alsoCheck: checkKey,
      success: { status: 201, data: NewApiKey },
      async handle(call) {
        const { actor, projectId } = call
        const { name, scopes, limit, expiresAt } = call.body
        return JSON.stringify(
          await transact(pool, async tx => {
            // Whoever loses their role meanwhile gets no secret any more.
            await lockOrganization(tx, call, 'keys.create')
            const { id, token } = await createKey(tx, actor, {
              projectId,
              name: toName(name),
              ...(scopes && { scopes }),
              ...(limit !== undefined && { limit }),
              ...(typeof expiresAt === 'string' && { expiresAt: new Date(expiresAt) }),
            })
            return { ...(await getKey(tx, { projectId, id })), key: token }
          }),
        )
      },
    }),
    apiEndpoint({
      method: 'PATCH',
      path: '/api/projects/:projectId/keys/:keyId',
      action: 'keys.edit',
      body: KeyChange,
      success: { status: 200, data: ApiKey },
      async handle({ actor, projectId, params, body: { name, limit } }) {
        const place = { projectId, id: params['keyId'] ?? '' }
        return JSON.stringify(
          await transact(pool, async tx => {
            await editKey(tx, actor, {
              ...place,
              ...(name !== undefined && { name: toName(name) }),
              ...(limit !== undefined && { limit }),
            })
            return getKey(tx, place)
          }),
        )
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/projects/:projectId/keys/:keyId/rotate',
      action: 'keys.rotate',
      body: RotateBody,
      success: { status: 201, data: NewApiKey },
      async handle(call) {
        const { actor, projectId, params } = call
        const { overlapHours } = call.body
        const old = { projectId, id: params['keyId'] ?? '' }
        return JSON.stringify(
          await transact(pool, async tx => {
            await lockOrganization(tx, call, 'keys.rotate')
            const { id, token } = await rotateKey(tx, actor, { ...old, overlapHours })
            return { ...(await getKey(tx, { projectId, id })), key: token }
          }),
        )
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: '/api/projects/:projectId/keys/:keyId',
      action: 'keys.revoke',
      success: { status: 200, data: Gone },
      async handle({ actor, projectId, params }) {
        const id = params['keyId'] ?? ''
        await transact(pool, tx => revokeKey(tx, actor, { projectId, id }))
        return JSON.stringify({ id })
      },
    }),
  ]
}
