import { computed, useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { ProjectPageProps } from './props.ts'
import { ProjectSidebar } from '../components/project-sidebar.tsx'
import { EventPanel } from '../event/panel.tsx'
import { useNeighbours } from '../event/use-event.ts'
import { useNarrowScreen } from '../event/use-narrow-screen.ts'
import { Chips } from '../feed/chips.tsx'
import { HistogramView } from '../feed/histogram.tsx'
import { LivePill } from '../feed/live-pill.tsx'
import { usePause } from '../feed/use-pause.ts'
import { FeedList } from '../feed/feed-list.tsx'
import { needsServer, isFiltered, parse, readSearch, toSearchPath } from '../feed/search.ts'
import { SearchBox } from '../feed/search-box.tsx'
import { useChannels } from '../feed/use-channels.ts'
import { useFeed } from '../feed/use-feed.ts'
import { useReadMark } from '../feed/use-read-mark.ts'
import { store } from '../storage.ts'
import { createAnnouncer } from '../live/announcer.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { toCount, toPill } from '../live/pill.ts'
import { setBadge, toTitle } from '../live/unseen.ts'
import { TopBar } from '../components/top-bar.tsx'
import { Toast } from '../components/toast.tsx'
import { WaveLine } from '../components/artwork.tsx'
import { PATHS, toSignInPath } from '../paths.ts'
import { findProject, isAllowed, loadSession } from '../session.ts'

/** The live feed of a project. */
export default function FeedPage({ account, project, event }: ProjectPageProps) {
  const { query, url, route } = useLocation()
  const search = readSearch(query)
  const { channelId } = search
  const isSearch = isFiltered(search)
  const channels = useChannels(project)
  const list = useRef<HTMLElement>(null)
  const announcement = useSignal('')
  const announcer = useMemo(
    () => createAnnouncer(SYSTEM_CLOCK, sentence => (announcement.value = sentence)),
    [],
  )
  const title = `${findProject(account, project)?.project.name} · Tidings`
  const feed = useFeed({
    project,
    search,
    onUnseen(count) {
      document.title = toTitle(title, count)
      setBadge(count)
    },
    onShown(rows) {
      channels.onRows(rows)
      announcer.add(rows.length, rows[0]?.title ?? '')
    },
    onChannels: channels.refresh,
  })
  const { resume } = usePause(feed, list)
  // Computed signals, so that the page does not render for every new row.
  const seen = useMemo(
    () => ({
      newestSeq: computed(() => feed.log.value.rows[0]?.seq),
      kind: computed(() => toPill(feed.live.value).kind),
    }),
    [feed],
  )
  const newestSeq = seen.newestSeq.value
  const kind = seen.kind.value
  useReadMark({
    project,
    channelId,
    // A search hides events, so it marks none as read.
    newestSeq: isSearch ? undefined : newestSeq,
    onMarked: channels.refresh,
  })
  const beside = useNeighbours(
    project,
    event,
    feed.log.value.rows,
    isSearch || channelId !== undefined,
  )
  const isBehind = useNarrowScreen() && event !== undefined
  const reading = feed.reading.value
  const searchFailure =
    reading.kind === 'failed' && reading.failure.code === 'invalid' ? reading.failure : undefined
  const waiting = feed.live.value.waiting

  useEffect(() => {
    document.title = title
    store('project', project)
  }, [title, project])
  useEffect(() => () => announcer.stop(), [])
  useEffect(() => {
    if (kind === 'signed_out') route(toSignInPath(url), true)
    // Reloading the account shows which projects are still accessible.
    else if (kind === 'refused') void loadSession().then(() => route(PATHS.home, true))
  }, [kind])

  /** Opens an event by history state, so that the list keeps its rows and scroll position. */
  function go(id: string | undefined) {
    history.pushState(null, '', toSearchPath(project, search, id))
    dispatchEvent(new PopStateEvent('popstate'))
  }

  function close() {
    go(undefined)
    const rows = [...(list.current?.querySelectorAll<HTMLElement>('article') ?? [])]
    const row = rows.find(({ dataset }) => dataset['event'] === event)
    // On narrow screens, the list is inert until the panel is gone.
    requestAnimationFrame(() => (row ?? list.current)?.focus({ preventScroll: row === undefined }))
  }

  return (
    <div class="layout">
      <div class="contents" inert={isBehind}>
        <a class="skip" href="#feed">
          Skip to events
        </a>
        <TopBar account={account} project={project}>
          <LivePill feed={feed} onResume={resume} />
        </TopBar>
        <SearchBox project={project} search={search} failure={searchFailure} />
        <ProjectSidebar account={account} project={project} channels={channels} search={search} />
        <main class="stream">
          <h1 class="visually-hidden">Events</h1>
          {!searchFailure && (isSearch || newestSeq !== undefined || reading.kind === 'first') && (
            <HistogramView project={project} search={search} newestSeq={newestSeq} />
          )}
          <Chips project={project} search={search} channels={channels.list} />
          {!searchFailure && needsServer(parse(search, 0).filters) && (
            <p class="note">New matches for this search appear within two seconds.</p>
          )}
          <WaveLine kind={kind} />
          {waiting > 0 && kind !== 'live' && (
            <button type="button" class="new-rows" onClick={resume}>
              {toCount(waiting)} new
            </button>
          )}
          <FeedList
            feed={feed}
            list={list}
            project={project}
            search={search}
            open={event}
            onOpen={go}
          />
          <p class="visually-hidden" role="status">
            {announcement.value}
          </p>
        </main>
      </div>
      {event !== undefined && (
        <EventPanel
          project={project}
          id={event}
          search={search}
          neighbours={beside}
          isAdmin={isAllowed(account, project, 'admin')}
          onGo={go}
          onClose={close}
        />
      )}
      <Toast />
    </div>
  )
}
