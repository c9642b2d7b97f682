import type { ProjectChannel } from '../../../log/channels/schema.ts'
import { PAGE_ROWS } from '../early-requests.ts'
import { request, type Result } from '../request.ts'
import { toRow, type NewestPage } from './log.ts'

const PAGE_CHANNELS = 100
/** The sidebar shows at most this many channels. */
const MAX_CHANNELS = 200

/** One page of the events that match `wanted`, newest first. */
export async function readEvents(
  projectId: string,
  wanted: Readonly<Record<string, string>>,
  cursor: string | undefined,
): Promise<Result<NewestPage>> {
  const input = { projectId, ...wanted, cursor, limit: PAGE_ROWS }
  const result = await request('GET /api/projects/:projectId/events', input)
  if (!result.ok) return result
  return { ok: true, data: { ...result.data, items: result.data.items.map(toRow) } }
}

/** The first channels of a project, as the sidebar shows them; `total` counts all. */
export async function readChannels(
  projectId: string,
): Promise<Result<{ items: readonly ProjectChannel[]; total: number }>> {
  const items: ProjectChannel[] = []
  for (let cursor: string | undefined; ;) {
    const input = { projectId, limit: PAGE_CHANNELS, cursor }
    const result = await request('GET /api/projects/:projectId/channels', input)
    if (!result.ok) return result
    const { nextCursor, total } = result.data
    items.push(...result.data.items)
    if (nextCursor === null || items.length >= MAX_CHANNELS)
      return { ok: true, data: { items, total } }
    cursor = nextCursor
  }
}
