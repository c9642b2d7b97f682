import type { Delivery } from '../../../delivery/outbox/schema.ts'
import type {
  Attempt,
  AttemptDetail,
  CreatedWebhook,
  NewWebhook,
  QueuedEvents,
  RotatedSecret,
  Webhook,
} from '../../../delivery/webhooks/schema.ts'
import type { Page } from '../../../http/envelope.ts'
import { toApiPath } from '../api-paths.ts'
import { request, type Result } from '../request.ts'

export type { Attempt, AttemptDetail, CreatedWebhook, Delivery, NewWebhook, QueuedEvents, Webhook }

/** Identifies a webhook. */
export interface WebhookRef {
  project: string
  webhook: string
}

export function readWebhooks(
  project: string,
  cursor: string | undefined,
): Promise<Result<Page<Webhook>>> {
  return request('GET', `${toApiPath(project)}/webhooks?${toQuery({ cursor })}`)
}

export function createWebhook(
  project: string,
  webhook: NewWebhook,
): Promise<Result<CreatedWebhook>> {
  return request('POST', `${toApiPath(project)}/webhooks`, webhook)
}

export function readWebhook(place: WebhookRef): Promise<Result<Webhook>> {
  return request('GET', toWebhookApiPath(place))
}

export function editWebhook(
  place: WebhookRef,
  changes: Partial<NewWebhook>,
): Promise<Result<Webhook>> {
  return request('PATCH', toWebhookApiPath(place), changes)
}

export function deleteWebhook(place: WebhookRef): Promise<Result<unknown>> {
  return request('DELETE', toWebhookApiPath(place))
}

/** Creates a new secret. The old one also signs for `graceHours`. */
export function rotateSecret(
  place: WebhookRef,
  graceHours: number,
): Promise<Result<RotatedSecret>> {
  return request('POST', `${toWebhookApiPath(place)}/rotate`, { graceHours })
}

export function switchWebhook(
  place: WebhookRef,
  to: 'enable' | 'disable',
): Promise<Result<Webhook>> {
  return request('POST', `${toWebhookApiPath(place)}/${to}`)
}

/** Sends a test and returns the attempt with the receiver's response. */
export function testWebhook(place: WebhookRef): Promise<Result<Attempt>> {
  return request('POST', `${toWebhookApiPath(place)}/test`)
}

export function readAttempts(
  place: WebhookRef,
  cursor: string | undefined,
): Promise<Result<Page<Attempt>>> {
  return request('GET', `${toWebhookApiPath(place)}/attempts?${toQuery({ cursor })}`)
}

export function readAttempt(place: WebhookRef, attempt: string): Promise<Result<AttemptDetail>> {
  return request('GET', `${toWebhookApiPath(place)}/attempts/${attempt}`)
}

export function resendAttempt(place: WebhookRef, attempt: string): Promise<Result<QueuedEvents>> {
  return request('POST', `${toWebhookApiPath(place)}/attempts/${attempt}/resend`)
}

/** Queues the events that a webhook missed between two times. Returns their number. */
export async function recover(
  place: WebhookRef,
  since: string,
  until: string,
): Promise<Result<{ events: number }>> {
  let events = 0
  let cursor: string | null = null
  // Each call covers a limited number of events. Its cursor continues the scan.
  do {
    const result: Result<QueuedEvents> = await request(
      'POST',
      `${toWebhookApiPath(place)}/recover`,
      {
        since,
        ...(until && { until }),
        ...(cursor !== null && { cursor }),
      },
    )
    if (!result.ok) return result
    events += result.data.events
    cursor = result.data.nextCursor
  } while (cursor !== null)
  return { ok: true, data: { events } }
}

export function readDeliveries(
  project: string,
  state: 'pending' | 'dead',
  cursor: string | undefined,
): Promise<Result<Page<Delivery>>> {
  return request('GET', `${toApiPath(project)}/deliveries?${toQuery({ state, cursor })}`)
}

/** Queues a dead delivery again. */
export function replayDelivery(project: string, delivery: string): Promise<Result<Delivery>> {
  return request('POST', `${toApiPath(project)}/deliveries/${delivery}/replay`)
}

function toWebhookApiPath({ project, webhook }: WebhookRef): `/api/${string}` {
  return `${toApiPath(project)}/webhooks/${encodeURIComponent(webhook)}`
}

function toQuery(wanted: Readonly<Record<string, string | undefined>>): URLSearchParams {
  return new URLSearchParams(
    Object.entries(wanted).filter((one): one is [string, string] => one[1] !== undefined),
  )
}
