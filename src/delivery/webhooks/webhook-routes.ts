import { Elysia } from 'elysia'
import { succeedRead, type CallOn, type SessionGuard } from '../../access/guard/guard.ts'
import { lockOrganization } from '../../access/organizations/organizations.ts'
import { isAtLeast } from '../../access/guard/permissions.ts'
import { transact, type Pool } from '../../database/pool.ts'
import type { Egress } from '../../http/egress/egress.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import type { Quotas } from '../../http/limits/quotas.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import {
  checkUrl,
  createWebhook,
  deleteWebhook,
  disableWebhook,
  editWebhook,
  enableWebhook,
  rotateWebhook,
} from './editing.ts'
import { previewWebhook } from './preview.ts'
import {
  CreatedWebhook,
  DeletedWebhook,
  NewWebhook,
  RotatedSecret,
  SecretRotation,
  Webhook,
  WebhookChanges,
  WebhookPreview,
} from './webhook-schema.ts'
import { getWebhook, listWebhooks, type WebhookView } from './webhooks.ts'

const tags = ['Webhooks']

export interface WebhookParts {
  guard: SessionGuard
  secrets: Secrets
  egress: Egress
  quotas: Pick<Quotas, 'checkWebhook'>
  /** For previews, which search events. */
  searches: Pool
}

/**
 * Routes for the webhooks of a project. Every member sees that they exist; only admins see their
 * URLs and change them.
 */
export function webhookRoutes({ guard, secrets, egress, quotas, searches }: WebhookParts) {
  const toView = ({ projectId, role }: CallOn<'project'>): WebhookView => ({
    projectId,
    isAdmin: isAtLeast(role, 'admin'),
    secrets,
  })

  return new Elysia({ name: 'webhooks' })
    .use(guard)
    .get(
      '/api/projects/:projectId/webhooks',
      ({ call, query }) => succeedRead(call, sql => listWebhooks(sql, toView(call), query)),
      {
        project: 'webhooks.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(Webhook)) },
        detail: { operationId: 'listWebhooks', summary: 'List webhooks', tags },
      },
    )
    .post(
      '/api/projects/:projectId/webhooks',
      async ({ call, body }) => {
        checkUrl(egress, body.url)
        const created = await transact(call.pool, async tx => {
          // The lock checks the role again: a member who has just lost it receives no events.
          await lockOrganization(tx, call, 'webhooks.create')
          await quotas.checkWebhook(tx, call.organizationId)
          const { id, secret } = await createWebhook(tx, call, body, secrets)
          return { ...(await getWebhook(tx, toView(call), id)), secret }
        })
        return succeed(call, 201, created)
      },
      {
        project: 'webhooks.create',
        body: NewWebhook,
        response: { 201: SuccessOf(CreatedWebhook) },
        detail: {
          operationId: 'createWebhook',
          summary: 'Create a webhook',
          description: 'The response contains the secret. It cannot be read again.',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/webhooks/preview',
      async ({ call, body }) => {
        checkUrl(egress, body.url)
        const { projectId, organizationId } = call
        const preview = await searches
          .of(organizationId)
          .run(sql => previewWebhook(sql, projectId, body))
        return succeed(call, 200, preview)
      },
      {
        project: 'webhooks.preview',
        body: NewWebhook,
        response: { 200: SuccessOf(WebhookPreview) },
        detail: {
          operationId: 'previewWebhook',
          summary: 'Preview what a webhook would send',
          description: 'Nothing is stored or sent.',
          tags,
        },
      },
    )
    .get(
      '/api/projects/:projectId/webhooks/:webhookId',
      ({ call, params: { webhookId } }) =>
        succeedRead(call, sql => getWebhook(sql, toView(call), webhookId)),
      {
        project: 'webhooks.read',
        response: { 200: SuccessOf(Webhook) },
        detail: { operationId: 'getWebhook', summary: 'Get a webhook', tags },
      },
    )
    .patch(
      '/api/projects/:projectId/webhooks/:webhookId',
      async ({ call, params: { webhookId: id }, body: changes }) => {
        if (changes.url !== undefined) checkUrl(egress, changes.url)
        const edited = await transact(call.pool, async tx => {
          await lockOrganization(tx, call, 'webhooks.edit')
          await editWebhook(tx, call, { id, changes }, secrets)
          return getWebhook(tx, toView(call), id)
        })
        return succeed(call, 200, edited)
      },
      {
        project: 'webhooks.edit',
        body: WebhookChanges,
        response: { 200: SuccessOf(Webhook) },
        detail: { operationId: 'editWebhook', summary: 'Change a webhook', tags },
      },
    )
    .delete(
      '/api/projects/:projectId/webhooks/:webhookId',
      async ({ call, params: { webhookId: id } }) => {
        await transact(call.pool, async tx => {
          await lockOrganization(tx, call, 'webhooks.delete')
          await deleteWebhook(tx, call, id)
        })
        return succeed(call, 200, { id })
      },
      {
        project: 'webhooks.delete',
        response: { 200: SuccessOf(DeletedWebhook) },
        detail: { operationId: 'deleteWebhook', summary: 'Delete a webhook', tags },
      },
    )
    .post(
      '/api/projects/:projectId/webhooks/:webhookId/rotate',
      async ({ call, params: { webhookId: id }, body: { graceHours = 24 } }) => {
        const { secret, previousUntil } = await transact(call.pool, async tx => {
          await lockOrganization(tx, call, 'webhooks.rotate')
          return rotateWebhook(tx, call, { id, graceHours }, secrets)
        })
        const previousSecretUntil = previousUntil?.toISOString() ?? null
        return succeed(call, 200, { id, secret, previousSecretUntil } satisfies RotatedSecret)
      },
      {
        project: 'webhooks.rotate',
        body: SecretRotation,
        response: { 200: SuccessOf(RotatedSecret) },
        detail: {
          operationId: 'rotateWebhookSecret',
          summary: 'Rotate the secret of a webhook',
          description: 'Both secrets sign until the grace period ends.',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/webhooks/:webhookId/enable',
      async ({ call, params: { webhookId: id } }) => {
        const enabled = await transact(call.pool, async tx => {
          await enableWebhook(tx, call, id)
          return getWebhook(tx, toView(call), id)
        })
        return succeed(call, 200, enabled)
      },
      {
        project: 'webhooks.operate',
        response: { 200: SuccessOf(Webhook) },
        detail: {
          operationId: 'enableWebhook',
          summary: 'Enable a webhook',
          description: 'Its pending deliveries resume.',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/webhooks/:webhookId/disable',
      async ({ call, params: { webhookId: id } }) => {
        const disabled = await transact(call.pool, async tx => {
          await disableWebhook(tx, call, { id, reason: 'An admin disabled it' })
          return getWebhook(tx, toView(call), id)
        })
        return succeed(call, 200, disabled)
      },
      {
        project: 'webhooks.operate',
        response: { 200: SuccessOf(Webhook) },
        detail: { operationId: 'disableWebhook', summary: 'Disable a webhook', tags },
      },
    )
}
