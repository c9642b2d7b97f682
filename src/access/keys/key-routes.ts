import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../guard/guard.ts'
import { requireVerified } from '../guard/authorize.ts'
import { DeletedId, toName } from '../guard/schema.ts'
import { lockOrganization } from '../organizations/organizations.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import { createKey, editKey, getKey, listKeys, revokeKey, rotateKey } from './keys.ts'
import { ApiKey, KeyBody, KeyChange, NewApiKey, RotateBody } from './schema.ts'

const tags = ['API keys']

/** Routes of /api that manage the keys of a project. */
export function projectKeyRoutes({ guard }: { guard: SessionGuard }) {
  return new Elysia({ name: 'keys.project' })
    .use(guard)
    .get(
      '/api/projects/:projectId/keys',
      ({ call, query }) => succeedRead(call, sql => listKeys(sql, call.projectId, query)),
      {
        project: 'keys.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(ApiKey)) },
        detail: { operationId: 'listApiKeys', summary: 'List API keys', tags },
      },
    )
    .post(
      '/api/projects/:projectId/keys',
      async ({ call, body: { name, scopes, limit, expiresAt } }) => {
        const { actor, projectId } = call
        const created = await transact(call.pool, async tx => {
          // The lock checks the role again: a member who has just lost it gets no secret.
          await lockOrganization(tx, call, 'keys.create')
          const { id, token } = await createKey(tx, actor, {
            projectId,
            name: toName(name),
            ...(scopes && { scopes }),
            ...(limit !== undefined && { limit }),
            ...(typeof expiresAt === 'string' && { expiresAt: new Date(expiresAt) }),
          })
          return { ...(await getKey(tx, { projectId, id })), key: token }
        })
        return succeed(call, 201, created)
      },
      {
        project: 'keys.create',
        body: KeyBody,
        response: { 201: SuccessOf(NewApiKey) },
        detail: {
          operationId: 'createApiKey',
          summary: 'Create an API key',
          description: 'The response contains the secret key. It is shown only once.',
          tags,
        },
      },
    )
    .patch(
      '/api/projects/:projectId/keys/:keyId',
      async ({ call, params: { keyId }, body: { name, limit } }) => {
        const ref = { projectId: call.projectId, id: keyId }
        const edited = await transact(call.pool, async tx => {
          const change = {
            ...ref,
            ...(name !== undefined && { name: toName(name) }),
            ...(limit !== undefined && { limit }),
          }
          await editKey(tx, call.actor, change, () => requireVerified(call.admitted))
          return getKey(tx, ref)
        })
        return succeed(call, 200, edited)
      },
      {
        project: 'keys.edit',
        body: KeyChange,
        response: { 200: SuccessOf(ApiKey) },
        detail: {
          operationId: 'editApiKey',
          summary: 'Change the name or rate limit of an API key',
          description: 'A higher limit requires that the password was entered recently.',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/keys/:keyId/rotate',
      async ({ call, params: { keyId }, body: { overlapHours } }) => {
        const { actor, projectId } = call
        const created = await transact(call.pool, async tx => {
          await lockOrganization(tx, call, 'keys.rotate')
          const { id, token } = await rotateKey(tx, actor, { projectId, id: keyId, overlapHours })
          return { ...(await getKey(tx, { projectId, id })), key: token }
        })
        return succeed(call, 201, created)
      },
      {
        project: 'keys.rotate',
        body: RotateBody,
        response: { 201: SuccessOf(NewApiKey) },
        detail: {
          operationId: 'rotateApiKey',
          summary: 'Rotate an API key',
          description: 'The old key stays valid for `overlapHours`, by default 24.',
          tags,
        },
      },
    )
    .delete(
      '/api/projects/:projectId/keys/:keyId',
      async ({ call, params: { keyId } }) => {
        const { actor, projectId } = call
        await transact(call.pool, tx => revokeKey(tx, actor, { projectId, id: keyId }))
        return succeed(call, 200, { id: keyId })
      },
      {
        project: 'keys.revoke',
        response: { 200: SuccessOf(DeletedId) },
        detail: { operationId: 'revokeApiKey', summary: 'Revoke an API key', tags },
      },
    )
}
