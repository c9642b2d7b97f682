import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import type { Quotas } from '../../http/limits/quotas.ts'
import { addAlias, listAliasChanges, removeAlias } from './aliases.ts'
import { toErased, type Eraser } from './erasure.ts'
import { Erased } from './schema.ts'
import {
  AliasChange,
  AliasInput,
  UserAlias,
  RemovedAlias,
  UserDetail,
  UserQuery,
  UserListItem,
  UserNames,
  UserNamesInput,
} from './user-schema.ts'
import { listUserNames } from './user-names.ts'
import { getUserDetailJson, listUsersJson } from './users.ts'

const tags = ['Users']

export interface UserRouteParts {
  guard: SessionGuard
  eraser: Eraser
  quotas: Pick<Quotas, 'check' | 'count'>
}

/** Routes of the dashboard for users and their aliases. */
export function userRoutes({ guard, eraser, quotas }: UserRouteParts) {
  return new Elysia({ name: 'identities.project' })
    .use(guard)
    .get(
      '/api/projects/:projectId/users',
      ({ call, query }) => succeedRead(call, sql => listUsersJson(sql, call.projectId, query)),
      {
        project: 'users.read',
        query: UserQuery,
        response: { 200: SuccessOf(PageOf(UserListItem)) },
        detail: { operationId: 'listUsers', summary: 'List users', tags },
      },
    )
    .get(
      '/api/projects/:projectId/users/:userId',
      ({ call, params: { userId } }) =>
        succeedRead(call, sql => getUserDetailJson(sql, call.projectId, userId)),
      {
        project: 'users.read',
        response: { 200: SuccessOf(UserDetail) },
        detail: { operationId: 'getProjectUser', summary: 'Get a user', tags },
      },
    )
    .post(
      '/api/projects/:projectId/users/names',
      async ({ call, body: { userIds } }) =>
        succeed(call, 200, {
          items: await call.pool.run(sql => listUserNames(sql, call.projectId, userIds)),
        }),
      {
        project: 'users.read',
        body: UserNamesInput,
        response: { 200: SuccessOf(UserNames) },
        detail: { operationId: 'listUserNames', summary: 'List names of users', tags },
      },
    )
    .delete(
      '/api/projects/:projectId/users/:userId',
      async ({ call, params: { userId } }) => {
        const { actor, organizationId, projectId } = call
        const target = { organizationId, projectId, userId }
        const state = await eraser.erase(target, actor)
        return succeed(call, state.isDone ? 200 : 202, toErased(userId, state))
      },
      {
        project: 'users.erase',
        response: { 200: SuccessOf(Erased), 202: SuccessOf(Erased) },
        detail: { operationId: 'eraseProjectUser', summary: 'Erase a user', tags },
      },
    )
    .get(
      '/api/projects/:projectId/users/:userId/aliases/history',
      ({ call, params: { userId }, query }) =>
        succeedRead(call, sql => listAliasChanges(sql, call.projectId, userId, query)),
      {
        project: 'users.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(AliasChange)) },
        detail: {
          operationId: 'listAliasChanges',
          summary: 'List the changes of the aliases of a user',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/users/:userId/aliases',
      async ({ call, params: { userId }, body }) => {
        const { actor, organizationId, projectId } = call
        const place = { organizationId, projectId, userId }
        const counted = { organizationId, events: 0, bytes: Buffer.byteLength(body.alias) }
        quotas.check(counted)
        const alias = await transact(call.pool, tx => addAlias(tx, actor, place, body))
        quotas.count(counted)
        return succeed(call, 201, alias)
      },
      {
        project: 'users.editAliases',
        body: AliasInput,
        response: { 201: SuccessOf(UserAlias) },
        detail: { operationId: 'addAlias', summary: 'Add an alias', tags },
      },
    )
    .delete(
      '/api/projects/:projectId/users/:userId/aliases/:alias',
      async ({ call, params: { userId, alias } }) => {
        const { actor, organizationId, projectId } = call
        const place = { organizationId, projectId, userId }
        await transact(call.pool, tx => removeAlias(tx, actor, place, alias))
        return succeed(call, 200, { userId, alias })
      },
      {
        project: 'users.editAliases',
        response: { 200: SuccessOf(RemovedAlias) },
        detail: { operationId: 'removeAlias', summary: 'Remove an alias', tags },
      },
    )
}
