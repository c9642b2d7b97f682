import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import { DeletedId } from '../../access/guard/schema.ts'
import { lockOrganization } from '../../access/organizations/organizations.ts'
import { transact } from '../../database/pool.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import type { Site } from '../../http/site.ts'
import {
  createHook,
  deleteHook,
  editHook,
  listHooks,
  listRequests,
  previewHook,
  rotateHook,
} from './hooks.ts'
import {
  Hook,
  HookAddress,
  HookChanges,
  HookPreview,
  HookRequestRecords,
  Hooks,
  NewHook,
  PreviewInput,
} from './schema.ts'

const tags = ['Inbound hooks']
const PATH = '/api/projects/:projectId/hooks'

interface Parts {
  guard: SessionGuard
  secrets: Secrets
  site: Site
}

/** Routes of the inbound hooks of a project. */
export function hookRoutes({ guard, secrets, site }: Parts) {
  const toAddress = ({ hook, token }: { hook: Hook; token: string }) => ({
    ...hook,
    url: new URL(`/in/${token}`, site.url).href,
  })

  return new Elysia({ name: 'hooks' })
    .use(guard)
    .get(PATH, ({ call }) => succeedRead(call, sql => listHooks(sql, call.projectId)), {
      project: 'hooks.read',
      response: { 200: SuccessOf(Hooks) },
      detail: { operationId: 'listHooks', summary: 'List inbound hooks', tags },
    })
    .post(
      PATH,
      async ({ call, body }) => {
        const created = await transact(call.pool, async tx => {
          // The lock checks the role again: a member who has just lost it gets no address.
          await lockOrganization(tx, call, 'hooks.create')
          return createHook(tx, call, body, { secrets })
        })
        return succeed(call, 201, toAddress(created))
      },
      {
        project: 'hooks.create',
        body: NewHook,
        response: { 201: SuccessOf(HookAddress) },
        detail: {
          operationId: 'createHook',
          summary: 'Create an inbound hook',
          description: 'The response contains the address. It is shown only once.',
          tags,
        },
      },
    )
    .patch(
      `${PATH}/:hookId`,
      async ({ call, params: { hookId }, body }) =>
        succeed(
          call,
          200,
          await transact(call.pool, tx => editHook(tx, call, hookId, body, { secrets })),
        ),
      {
        project: 'hooks.edit',
        body: HookChanges,
        response: { 200: SuccessOf(Hook) },
        detail: { operationId: 'editHook', summary: 'Change an inbound hook', tags },
      },
    )
    .delete(
      `${PATH}/:hookId`,
      async ({ call, params: { hookId: id } }) => {
        await transact(call.pool, tx => deleteHook(tx, call, id))
        return succeed(call, 200, { id })
      },
      {
        project: 'hooks.edit',
        response: { 200: SuccessOf(DeletedId) },
        detail: { operationId: 'deleteHook', summary: 'Delete an inbound hook', tags },
      },
    )
    .post(
      `${PATH}/:hookId/token`,
      async ({ call, params: { hookId } }) => {
        const rotated = await transact(call.pool, async tx => {
          await lockOrganization(tx, call, 'hooks.rotate')
          return rotateHook(tx, call, hookId)
        })
        return succeed(call, 200, toAddress(rotated))
      },
      {
        project: 'hooks.rotate',
        response: { 200: SuccessOf(HookAddress) },
        detail: {
          operationId: 'rotateHookToken',
          summary: 'Replace the address of an inbound hook',
          description: 'The former address ends at once. The new one is shown only once.',
          tags,
        },
      },
    )
    .get(
      `${PATH}/:hookId/requests`,
      ({ call, params: { hookId } }) =>
        succeedRead(call, sql => listRequests(sql, call.projectId, hookId)),
      {
        project: 'hooks.read',
        response: { 200: SuccessOf(HookRequestRecords) },
        detail: {
          operationId: 'listHookRequests',
          summary: 'List the last requests to an inbound hook',
          tags,
        },
      },
    )
    .post(
      `${PATH}/:hookId/preview`,
      ({ call, params: { hookId }, body }) =>
        succeedRead(call, sql => previewHook(sql, call.projectId, hookId, body)),
      {
        project: 'hooks.edit',
        body: PreviewInput,
        response: { 200: SuccessOf(HookPreview) },
        detail: {
          operationId: 'previewHook',
          summary: 'Preview what a request would become',
          description: 'Nothing is stored.',
          tags,
        },
      },
    )
}
