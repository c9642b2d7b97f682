import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import { transact } from '../db/transaction.ts'
import { PageOf } from '../http/envelope.ts'
import { PageQuery } from '../http/paging.ts'
import { getAttempt, listAttempts } from './attempts.ts'
import { recoverEvents, resendAttempt } from './recovery.ts'
import { Attempt, AttemptDetail, Queued, RecoverInput } from './schema.ts'
import { testWebhook } from './testing.ts'
import { toId, type WebhookParts } from './webhook-routes.ts'

const ONE = '/api/projects/:projectId/webhooks/:webhookId'

/** What was sent to a webhook, and ways to send it again; for admins, because answers may tell anything. */
export function attemptRoutes(parts: WebhookParts): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: `${ONE}/attempts`,
      action: 'webhooks.readAttempts',
      query: PageQuery,
      success: { status: 200, data: PageOf(Attempt) },
      handle: async ({ projectId, params, query }) =>
        JSON.stringify(
          await parts.pool.run(sql => listAttempts(sql, { projectId, id: toId(params) }, query)),
        ),
    }),
    apiEndpoint({
      method: 'GET',
      path: `${ONE}/attempts/:attemptId`,
      action: 'webhooks.readAttempts',
      success: { status: 200, data: AttemptDetail },
      handle: async ({ projectId, params }) => {
        const attempt = { projectId, id: toId(params), attemptId: params['attemptId'] ?? '' }
        return JSON.stringify(await parts.pool.run(sql => getAttempt(sql, attempt, parts.secrets)))
      },
    }),
    apiEndpoint({
      method: 'POST',
      path: `${ONE}/test`,
      action: 'webhooks.operate',
      success: { status: 200, data: Attempt },
      handle: async call => JSON.stringify(await testWebhook(parts, call, toId(call.params))),
    }),
    apiEndpoint({
      method: 'POST',
      path: `${ONE}/recover`,
      action: 'webhooks.operate',
      body: RecoverInput,
      success: { status: 200, data: Queued },
      handle: async call =>
        JSON.stringify(
          await transact(parts.pool, tx =>
            recoverEvents(tx, call, { ...call.body, id: toId(call.params) }, parts.queue),
          ),
        ),
    }),
    apiEndpoint({
      method: 'POST',
      path: `${ONE}/attempts/:attemptId/resend`,
      action: 'webhooks.operate',
      success: { status: 200, data: Queued },
      handle: async call =>
        JSON.stringify(
          await transact(parts.pool, tx =>
            resendAttempt(
              tx,
              call,
              { id: toId(call.params), attemptId: call.params['attemptId'] ?? '' },
              parts.queue,
            ),
          ),
        ),
    }),
  ]
}
