import type { Page } from '../../../http/envelope.ts'
import type { Delivery } from '../../../outbox/schema.ts'
import type {
  Attempt,
  AttemptDetail,
  CreatedWebhook,
  NewWebhook,
  Queued,
  RotatedSecret,
  Webhook,
} from '../../../webhooks/schema.ts'
import { toPath } from '../feed/calls.ts'
import { request, type Answer } from '../request.ts'

export type { Attempt, AttemptDetail, CreatedWebhook, Delivery, NewWebhook, Queued, Webhook }

/** A webhook of a project. */
export interface Place {
  project: string
  webhook: string
}

export function readWebhooks(
  project: string,
  cursor: string | undefined,
): Promise<Answer<Page<Webhook>>> {
  return request('GET', `${toPath(project)}/webhooks?${toQuery({ cursor })}`)
}

export function createWebhook(
  project: string,
  webhook: NewWebhook,
): Promise<Answer<CreatedWebhook>> {
  return request('POST', `${toPath(project)}/webhooks`, webhook)
}

export function readWebhook(place: Place): Promise<Answer<Webhook>> {
  return request('GET', toOne(place))
}

export function editWebhook(place: Place, changes: NewWebhook): Promise<Answer<Webhook>> {
  return request('PATCH', toOne(place), changes)
}

export function deleteWebhook(place: Place): Promise<Answer<unknown>> {
  return request('DELETE', toOne(place))
}

/** A new secret; the old one signs as well for so many hours. */
export function rotateSecret(place: Place, graceHours: number): Promise<Answer<RotatedSecret>> {
  return request('POST', `${toOne(place)}/rotate`, { graceHours })
}

export function switchWebhook(place: Place, to: 'enable' | 'disable'): Promise<Answer<Webhook>> {
  return request('POST', `${toOne(place)}/${to}`)
}

/** Sends a test; the answer is what its receiver has answered. */
export function testWebhook(place: Place): Promise<Answer<Attempt>> {
  return request('POST', `${toOne(place)}/test`)
}

export function readAttempts(
  place: Place,
  cursor: string | undefined,
): Promise<Answer<Page<Attempt>>> {
  return request('GET', `${toOne(place)}/attempts?${toQuery({ cursor })}`)
}

export function readAttempt(place: Place, attempt: string): Promise<Answer<AttemptDetail>> {
  return request('GET', `${toOne(place)}/attempts/${attempt}`)
}

export function resendAttempt(place: Place, attempt: string): Promise<Answer<Queued>> {
  return request('POST', `${toOne(place)}/attempts/${attempt}/resend`)
}

/** Has what a webhook missed from one moment to another, or to now, delivered; answers how many events that were. */
export async function recover(
  place: Place,
  since: string,
  until: string,
): Promise<Answer<{ events: number }>> {
  let events = 0
  let cursor: string | null = null
  // A call looks at so many events; with its cursor, which only goes forward, the next one goes on.
  do {
    const answer: Answer<Queued> = await request('POST', `${toOne(place)}/recover`, {
      since,
      ...(until && { until }),
      ...(cursor !== null && { cursor }),
    })
    if (!answer.ok) return answer
    events += answer.data.events
    cursor = answer.data.nextCursor
  } while (cursor !== null)
  return { ok: true, data: { events } }
}

export function readDeliveries(
  project: string,
  state: 'pending' | 'dead',
  cursor: string | undefined,
): Promise<Answer<Page<Delivery>>> {
  return request('GET', `${toPath(project)}/deliveries?${toQuery({ state, cursor })}`)
}

export function replayDelivery(project: string, delivery: string): Promise<Answer<Delivery>> {
  return request('POST', `${toPath(project)}/deliveries/${delivery}/replay`)
}

function toOne({ project, webhook }: Place): `/api/${string}` {
  return `${toPath(project)}/webhooks/${encodeURIComponent(webhook)}`
}

function toQuery(wanted: Readonly<Record<string, string | undefined>>): URLSearchParams {
  return new URLSearchParams(
    Object.entries(wanted).filter((one): one is [string, string] => one[1] !== undefined),
  )
}
