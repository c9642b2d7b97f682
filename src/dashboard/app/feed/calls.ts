import type { ProjectChannel } from '../../../channels/schema.ts'
import type { EventPage, Histogram } from '../../../events/search-schema.ts'
import type { Page } from '../../../http/envelope.ts'
import { request, type Answer } from '../request.ts'
import { toRow, type NewestPage } from './log.ts'

const PAGE_ROWS = 50
const MOST_CHANNELS = 100

/** A page of those of a project's events that a query finds, newest first. */
export async function readEvents(
  project: string,
  wanted: Readonly<Record<string, string>>,
  cursor: string | undefined,
): Promise<Answer<NewestPage>> {
  const query = new URLSearchParams({ ...wanted, limit: String(PAGE_ROWS) })
  if (cursor !== undefined) query.set('cursor', cursor)
  const answer = await request<EventPage>('GET', `${toPath(project)}/events?${query}`)
  if (!answer.ok) return answer
  return { ok: true, data: { ...answer.data, items: answer.data.items.map(toRow) } }
}

/** How many of a project's events that a query finds happened when. */
export function readHistogram(
  project: string,
  wanted: Readonly<Record<string, string>>,
): Promise<Answer<Histogram>> {
  return request<Histogram>('GET', `${toPath(project)}/histogram?${new URLSearchParams(wanted)}`)
}

/** The channels of a project, as many as a list for people holds. */
export async function readChannels(project: string): Promise<Answer<readonly ProjectChannel[]>> {
  const path = `${toPath(project)}/channels?limit=${MOST_CHANNELS}` as const
  const answer = await request<Page<ProjectChannel>>('GET', path)
  return answer.ok ? { ok: true, data: answer.data.items } : answer
}

/** Says how far the reader has come, in one channel or in all. */
export async function markRead(
  project: string,
  channelId: string | undefined,
  seq: number,
): Promise<void> {
  await request('PUT', `${toPath(project)}/read`, { seq, ...(channelId && { channelId }) })
}

export function toPath(project: string): `/api/${string}` {
  return `/api/projects/${encodeURIComponent(project)}`
}
