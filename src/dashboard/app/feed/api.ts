import type { ProjectChannel, ProjectChannels } from '../../../log/channels/schema.ts'
import type { EventPage, Histogram } from '../../../log/events/search-schema.ts'
import { toApiPath, toEventsApiPath } from '../api-paths.ts'
import { request, type Result } from '../request.ts'
import { toRow, type NewestPage } from './log.ts'

const PAGE_CHANNELS = 100
/** The sidebar shows at most this many channels. */
const MAX_CHANNELS = 200

/** One page of the events that match `wanted`, newest first. */
export async function readEvents(
  project: string,
  wanted: Readonly<Record<string, string>>,
  cursor: string | undefined,
): Promise<Result<NewestPage>> {
  const query = { ...wanted, ...(cursor !== undefined && { cursor }) }
  const result = await request<EventPage>('GET', toEventsApiPath(project, query))
  if (!result.ok) return result
  return { ok: true, data: { ...result.data, items: result.data.items.map(toRow) } }
}

/** Counts over time of the events that match `wanted`. */
export function readHistogram(
  project: string,
  wanted: Readonly<Record<string, string>>,
): Promise<Result<Histogram>> {
  return request<Histogram>('GET', `${toApiPath(project)}/histogram?${new URLSearchParams(wanted)}`)
}

/** One page of the channels that match `wanted`, newest first. */
export function readChannelPage(
  project: string,
  wanted: Readonly<Record<string, string>>,
  cursor: string | undefined,
): Promise<Result<ProjectChannels>> {
  const query = new URLSearchParams({ ...wanted, ...(cursor !== undefined && { cursor }) })
  return request('GET', `${toApiPath(project)}/channels?${query}`)
}

/** The first channels of a project, as the sidebar shows them; `total` counts all. */
export async function readChannels(
  project: string,
): Promise<Result<{ items: readonly ProjectChannel[]; total: number }>> {
  const items: ProjectChannel[] = []
  for (let cursor: string | undefined; ;) {
    const result = await readChannelPage(project, { limit: String(PAGE_CHANNELS) }, cursor)
    if (!result.ok) return result
    const { nextCursor, total } = result.data
    items.push(...result.data.items)
    if (nextCursor === null || items.length >= MAX_CHANNELS)
      return { ok: true, data: { items, total } }
    cursor = nextCursor
  }
}

/** Marks events up to `seq` as read, in one channel or in all. */
export function markRead(
  project: string,
  channelId: string | undefined,
  seq: number,
): Promise<Result<unknown>> {
  return request('PUT', `${toApiPath(project)}/read`, { seq, ...(channelId && { channelId }) })
}
