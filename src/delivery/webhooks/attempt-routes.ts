import { succeedRead } from '../../access/guard/guard.ts'
import { Elysia } from 'elysia'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import { getAttempt, listAttempts } from './attempts.ts'
import { recoverEvents, resendAttempt } from './recovery.ts'
import { Attempt, AttemptDetail, QueuedEvents, RecoverInput } from './webhook-schema.ts'
import { testWebhook } from './test-webhook.ts'
import type { WebhookParts } from './webhook-routes.ts'

const tags = ['Webhooks']

/**
 * Routes for the attempts of a webhook, and for sending events again. Only admins may use them,
 * because a stored response can contain anything.
 */
export function attemptRoutes({ guard, ...parts }: WebhookParts) {
  const { secrets } = parts
  return new Elysia({ name: 'webhooks.attempts' })
    .use(guard)
    .get(
      '/api/projects/:projectId/webhooks/:webhookId/attempts',
      async ({ call, params: { webhookId: id }, query }) => {
        const place = { projectId: call.projectId, id }
        return succeedRead(call, sql => listAttempts(sql, place, query))
      },
      {
        project: 'webhooks.readAttempts',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(Attempt)) },
        detail: { operationId: 'listAttempts', summary: 'List the attempts of a webhook', tags },
      },
    )
    .get(
      '/api/projects/:projectId/webhooks/:webhookId/attempts/:attemptId',
      async ({ call, params: { webhookId: id, attemptId } }) => {
        const attempt = { projectId: call.projectId, id, attemptId }
        return succeedRead(call, sql => getAttempt(sql, attempt, secrets))
      },
      {
        project: 'webhooks.readAttempts',
        response: { 200: SuccessOf(AttemptDetail) },
        detail: {
          operationId: 'getAttempt',
          summary: 'Get an attempt with its request and response',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/webhooks/:webhookId/test',
      async ({ call, params: { webhookId: id } }) => {
        return succeed(call, 200, await testWebhook({ ...parts, pool: call.pool }, call, id))
      },
      {
        project: 'webhooks.operate',
        response: { 200: SuccessOf(Attempt) },
        detail: { operationId: 'testWebhook', summary: 'Send a test to a webhook', tags },
      },
    )
    .post(
      '/api/projects/:projectId/webhooks/:webhookId/recover',
      async ({ call, params: { webhookId: id }, body }) => {
        const queued = await transact(call.pool, tx => recoverEvents(tx, call, { ...body, id }))
        return succeed(call, 200, queued)
      },
      {
        project: 'webhooks.operate',
        body: RecoverInput,
        response: { 200: SuccessOf(QueuedEvents) },
        detail: { operationId: 'recoverEvents', summary: 'Send a range of events again', tags },
      },
    )
    .post(
      '/api/projects/:projectId/webhooks/:webhookId/attempts/:attemptId/resend',
      async ({ call, params: { webhookId: id, attemptId } }) => {
        const queued = await transact(call.pool, tx => resendAttempt(tx, call, { id, attemptId }))
        return succeed(call, 200, queued)
      },
      {
        project: 'webhooks.operate',
        response: { 200: SuccessOf(QueuedEvents) },
        detail: { operationId: 'resendAttempt', summary: 'Send one delivery again', tags },
      },
    )
}
