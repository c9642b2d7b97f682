import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import { isAtLeast, type Role } from '../accounts/permissions.ts'
import type { Pool } from '../db/pool.ts'
import { transact } from '../db/transaction.ts'
import type { Egress } from '../egress/egress.ts'
import { PageOf } from '../http/envelope.ts'
import { PageQuery } from '../http/paging.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { checkUrl, createWebhook, deleteWebhook, editWebhook, rotateWebhook } from './editing.ts'
import type { Queue } from './queue.ts'
import {
  CreatedWebhook,
  DeletedWebhook,
  NewWebhook,
  RotatedSecret,
  SecretRotation,
  Webhook,
  WebhookChanges,
} from './schema.ts'
import { disableWebhook, enableWebhook } from './switching.ts'
import { getWebhook, listWebhooks, type View } from './webhooks.ts'

export interface WebhookParts {
  pool: Pool
  secrets: Secrets
  egress: Egress
  queue: Queue
}

const ALL = '/api/projects/:projectId/webhooks'
const ONE = `${ALL}/:webhookId` as const

/** The webhooks of a project: everybody sees that they are there, admins have the rest. */
export function webhookRoutes(parts: WebhookParts): ApiEndpoint[] {
  const toView = ({ projectId, role }: { projectId: string; role: Role }): View => ({
    projectId,
    isAdmin: isAtLeast(role, 'admin'),
    secrets: parts.secrets,
  })

  return [
    apiEndpoint({
      method: 'GET',
      path: ALL,
      action: 'webhooks.read',
      query: PageQuery,
      success: { status: 200, data: PageOf(Webhook) },
      handle: async call =>
        JSON.stringify(await parts.pool.run(sql => listWebhooks(sql, toView(call), call.query))),
    }),
    apiEndpoint({
      method: 'POST',
      path: ALL,
      action: 'webhooks.create',
      body: NewWebhook,
      success: { status: 201, data: CreatedWebhook },
      async handle(call) {
        await checkUrl(parts.egress, call.body.url)
        const created = await transact(parts.pool, async tx => {
          const { id, secret } = await createWebhook(tx, call, call.body, parts.secrets)
          return { ...(await getWebhook(tx, toView(call), id)), secret }
        })
        return JSON.stringify(created)
      },
    }),
    apiEndpoint({
      method: 'GET',
      path: ONE,
      action: 'webhooks.read',
      success: { status: 200, data: Webhook },
      handle: async call =>
        JSON.stringify(
          await parts.pool.run(sql => getWebhook(sql, toView(call), toId(call.params))),
        ),
    }),
    apiEndpoint({
      method: 'PATCH',
      path: ONE,
      action: 'webhooks.edit',
      body: WebhookChanges,
      success: { status: 200, data: Webhook },
      async handle(call) {
        const id = toId(call.params)
        if (call.body.url !== undefined) await checkUrl(parts.egress, call.body.url)
        const edited = await transact(parts.pool, async tx => {
          await editWebhook(tx, call, { id, changes: call.body }, parts.secrets)
          return getWebhook(tx, toView(call), id)
        })
        return JSON.stringify(edited)
      },
    }),
    apiEndpoint({
      method: 'DELETE',
      path: ONE,
      action: 'webhooks.delete',
      success: { status: 200, data: DeletedWebhook },
      async handle(call) {
        const id = toId(call.params)
        await transact(parts.pool, tx => deleteWebhook(tx, call, id))
        return JSON.stringify({ id })
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: `${ONE}/rotate`,
      action: 'webhooks.rotate',
      body: SecretRotation,
      success: { status: 200, data: RotatedSecret },
      async handle(call) {
        const id = toId(call.params)
        const graceHours = call.body.graceHours ?? 24
        const { secret, previousUntil } = await transact(parts.pool, tx =>
          rotateWebhook(tx, call, { id, graceHours }, parts.secrets),
        )
        const previousSecretUntil = previousUntil?.toISOString() ?? null
        return JSON.stringify({ id, secret, previousSecretUntil } satisfies RotatedSecret)
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: `${ONE}/enable`,
      action: 'webhooks.operate',
      success: { status: 200, data: Webhook },
      async handle(call) {
        const id = toId(call.params)
        const enabled = await transact(parts.pool, async tx => {
          await enableWebhook(tx, call, id, parts.queue)
          return getWebhook(tx, toView(call), id)
        })
        return JSON.stringify(enabled)
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: `${ONE}/disable`,
      action: 'webhooks.operate',
      success: { status: 200, data: Webhook },
      async handle(call) {
        const id = toId(call.params)
        const disabled = await transact(parts.pool, async tx => {
          await disableWebhook(tx, call, { id, reason: 'An admin has disabled it' })
          return getWebhook(tx, toView(call), id)
        })
        return JSON.stringify(disabled)
      },
    }),
  ]
}

/** The webhook that a path names. */
export function toId(params: Readonly<Record<string, string>>): string {
  return params['webhookId'] ?? ''
}
