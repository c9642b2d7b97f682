import { request, type Result } from '../request.ts'
import type { Input } from '../routes.ts'

const ROUTE = 'POST /api/projects/:projectId/webhooks/:webhookId/recover'

/** Identifies a webhook. */
export interface WebhookRef {
  projectId: string
  webhookId: string
}

/** Queues the events that a webhook missed between two times. Returns their number. */
export async function recover(
  place: WebhookRef,
  since: string,
  until: string,
): Promise<Result<{ events: number }>> {
  let events = 0
  const input: Input<typeof ROUTE> = { ...place, since, ...(until && { until }) }
  // Each call covers a limited number of events. Its cursor continues the scan.
  for (;;) {
    const result = await request(ROUTE, input)
    if (!result.ok) return result
    events += result.data.events
    if (result.data.nextCursor === null) return { ok: true, data: { events } }
    input.cursor = result.data.nextCursor
  }
}
