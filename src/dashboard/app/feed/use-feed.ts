import { useEffect, useMemo } from 'preact/hooks'
import { PAGE_ROWS } from '../early-requests.ts'
import { BROWSER, watchBrowser } from '../live/browser.ts'
import { request, type Result } from '../request.ts'
import { createFeed, type Feed, type FeedDependencies } from './feed.ts'
import { toRow, type NewestPage } from './log.ts'
import { readUserName } from '../users/names.ts'
import { toEveryMs, toQuery, type Search } from './search.ts'

interface FeedOptions extends Pick<
  FeedDependencies,
  'project' | 'onUnseen' | 'onShown' | 'onChannels'
> {
  search: Search
}

/** The feed of a project in this browser, for the lifetime of the component. */
export function useFeed({ project, search, ...on }: FeedOptions): Feed {
  const { channelId, text, from, to } = search
  const feed = useMemo(() => {
    const toSearch = () => toQuery(search, Date.now())
    const end = new AbortController()
    const feed = createFeed({
      ...on,
      project,
      toSearch,
      readPage: cursor => readEvents(project, toSearch(), cursor, end.signal),
      everyMs: toEveryMs(search, Date.now()),
      ...BROWSER,
      isHidden: () => document.hidden,
    })
    const stop = () => {
      feed.stop()
      end.abort()
    }
    return { ...feed, stop }
  }, [project, channelId, text, from, to])
  useEffect(() => {
    const end = watchBrowser(feed)
    document.addEventListener('visibilitychange', feed.updateVisibility)
    return () => {
      end()
      document.removeEventListener('visibilitychange', feed.updateVisibility)
      feed.stop()
    }
  }, [feed])
  return feed
}

/** One page of the events that match `wanted`, newest first. */
async function readEvents(
  projectId: string,
  wanted: Readonly<Record<string, string>>,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Result<NewestPage>> {
  const input = { projectId, ...wanted, cursor, limit: PAGE_ROWS }
  const result = await request('GET /api/projects/:projectId/events', input, signal)
  if (!result.ok) return result
  // Slow devices draw the rows in parts, each of which would ask for its own.
  for (const { userId } of result.data.items) if (userId) readUserName(projectId, userId)
  return { ok: true, data: { ...result.data, items: result.data.items.map(toRow) } }
}
