import type { Queryable } from '../../database/sql.ts'
import { findEventJson, listEventsJson } from '../../log/events/read.ts'
import { noFilters } from '../../log/events/search-filters.ts'
import { parseSaved } from '../../log/events/search-query.ts'
import { findView, toAddress } from './editing.ts'
import { toEventRequest, type ProjectContext } from './message.ts'
import { changeOwnRequest, NO_OWN_REQUEST } from './own-request.ts'
import type { WebhookRequest } from './presets.ts'
import { CONTENT_TYPE } from './signing.ts'
import type { NewWebhook, WebhookPreview } from './webhook-schema.ts'

const MAX_EVENTS = 5

/**
 * Returns what a webhook with these fields would send about the latest events. The search for them
 * has the time limit of a list. Throws `InvalidRequest`.
 */
export async function previewWebhook(
  sql: Queryable,
  projectId: string,
  { url, preset = 'standard', channels, headers = {}, viewId, ...own }: NewWebhook,
): Promise<WebhookPreview> {
  const { body } = changeOwnRequest(NO_OWN_REQUEST, own, false)
  const endpoint = { url: toAddress(url, preset, { body }).href, preset, body }
  const view = viewId ? await findView(sql, projectId, viewId) : undefined
  const found = view && parseSaved(view.search)
  const filters = noFilters()
  filters.channels.is = channels ?? []
  if (view) filters.groups = [{ isExcluded: false, filters: found ? [found] : [] }]
  const page = JSON.parse(await listEventsJson(sql, projectId, filters, { limit: MAX_EVENTS })) as {
    items: { id: string }[]
  }
  const [context] = await sql<[ProjectContext]>`
    select
      json_build_object('id', p.id, 'name', p.name) as project,
      json_build_object('id', o.id, 'name', o.name) as organization
    from projects p
      join organizations o on o.id = p.organization_id
    where p.id = ${projectId}
  `
  const requests: [string, WebhookRequest][] = []
  for (const { id } of page.items) {
    const eventJson = await findEventJson(sql, projectId, id)
    if (eventJson) requests.push([id, toEventRequest(endpoint, eventJson, context)])
  }
  const hidden = Object.fromEntries(Object.keys(headers).map(name => [name, '…']))
  return {
    url: requests[0]?.[1].url ?? endpoint.url,
    headers: { ...hidden, 'Content-Type': CONTENT_TYPE },
    items: requests.map(([eventId, request]) => ({ eventId, body: request.body })),
  }
}
