import { computed, useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { ProjectPageProps } from './props.ts'
import { Sidebar } from '../components/sidebar.tsx'
import { useMedia, BottomBar } from '../components/navigation.tsx'
import { useNeighbours } from '../event/use-neighbours.ts'
import { Chips } from '../feed/chips.tsx'
import { HistogramView } from '../feed/histogram.tsx'
import { useLastEvents } from '../feed/last-events.ts'
import type { Row } from '../feed/log.ts'
import { LivePill } from '../feed/live-pill.tsx'
import { usePause } from '../feed/use-pause.ts'
import { FeedList } from '../feed/feed-list.tsx'
import { isFiltered, readSearch, toSearchPath } from '../feed/search.ts'
import { loadTools, SearchBox } from '../feed/search-box.tsx'
import { useChannels, type ShownEvents } from '../feed/use-channels.ts'
import { useFeed } from '../feed/use-feed.ts'
import { useReadMark, type MarkOptions } from '../feed/use-read-mark.ts'
import { store } from '../storage.ts'
import { createAnnouncer } from '../live/throttle.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { isUnpaused, toCount, toPill } from '../live/pill.ts'
import { DisplayMenu, TopBar } from '../components/menus.tsx'
import { Toast } from '../components/toast.tsx'
import { WaveLine } from '../components/artwork.tsx'
import { PATHS } from '../paths.ts'
import { findProject, isAllowed, loadSession } from '../session.ts'
import { FailedPart, lazyPages } from '../lazy-page.tsx'
import { showContent } from '../first-content.ts'
import { loadAfter } from '../load-after.ts'
import { loadOnDemand } from '../load-on-demand.ts'
import { setBadge } from '../worker/badge.ts'

const ProjectSilence = lazyPages(loadAfter, () => null)('ProjectSilence')
const SampleDataNotice = lazyPages(loadAfter, FailedPart)('SampleDataNotice')
const EventPanel = lazyPages(loadOnDemand, FailedPart)('EventPanel')

/** The same breakpoint as in event.css: wide enough for an event next to the list. */
const BESIDE = '(min-width: 64rem)'
const NO_ROWS: readonly Row[] = []

/** The live feed of a project. */
export default function FeedPage({ account, project, event }: ProjectPageProps) {
  const { query, route } = useLocation()
  const search = readSearch(query)
  const { channelId } = search
  const isSearch = isFiltered(search)
  const shown = useRef<ShownEvents | undefined>(undefined)
  const channels = useChannels(project, shown)
  const list = useRef<HTMLElement>(null)
  const { announcer, sentence } = useAnnouncer()
  const channel =
    channels.list?.find(({ id }) => id === channelId)?.name ??
    (channelId && (channels.list ? channelId : '…'))
  const names = [channel, findProject(account, project)?.project.name, 'Tidings']
  const title = names.filter(Boolean).join(' · ')
  const unseen = useSignal(0)
  const feed = useFeed({
    project,
    search,
    onUnseen: count => (unseen.value = count),
    onShown(rows) {
      channels.onRows(rows)
      announcer.add(rows)
    },
    onChannels: channels.refresh,
  })
  const { resume } = usePause(feed, { list, isOpen: event !== undefined })
  // Computed signals, so that the page does not render for every new row.
  const seen = useMemo(
    () => ({
      newestSeq: computed(() => feed.log.value.rows[0]?.seq),
      hasRows: computed(() => feed.log.value.rows.length > 0),
      kind: computed(() => toPill(feed.live.value).kind),
    }),
    [feed],
  )
  const { newestSeq } = seen
  const [hasRows, kind] = [seen.hasRows.value, seen.kind.value]
  const isBehind = !useMedia(BESIDE) && event !== undefined
  // Most readers of a link on a phone never see the list.
  const isDrawn = useRef(false)
  isDrawn.current ||= !isBehind
  // A search hides events, and an event on a phone hides the list. Neither marks any as read.
  const isHiding = isSearch || isBehind
  const isShowing = () => !isHiding && !document.hidden && isUnpaused(feed.live.peek())
  shown.current = useShownEvents(isShowing, {
    project,
    channelId,
    newestSeq: isHiding ? undefined : newestSeq,
  })
  const beside = useNeighbours(
    project,
    event,
    event === undefined ? NO_ROWS : feed.log.value.rows,
    isSearch || channelId !== undefined,
    feed.readOlder,
  )
  const reading = feed.reading.value
  const searchFailure =
    reading.kind === 'failed' && reading.failure.code === 'invalid' ? reading.failure : undefined

  useEffect(() => store('project', project), [project])
  useEffect(
    () =>
      unseen.subscribe(count => {
        document.title = count === 0 ? title : `(${toCount(count)}) ${title}`
        void setBadge(count)
      }),
    [title],
  )
  useLastEvents(project, feed, !isSearch && channelId === undefined)
  const isRead = reading.kind !== 'first'
  useEffect(() => {
    if (!isRead) return
    showContent()
    // Loads the panel of events, too. Most readers then open one.
    addEventListener('pointermove', loadTools, { once: true })
  }, [isRead])
  useEffect(() => {
    // Reloading the account shows which projects are still accessible.
    if (kind === 'refused') void loadSession().then(() => route(PATHS.home, true))
  }, [kind])

  /** Opens an event by history state, so that the list keeps its rows and scroll position. */
  function go(id: string | undefined) {
    history.pushState(null, '', toSearchPath(project, search, id))
    dispatchEvent(new PopStateEvent('popstate'))
  }

  function close() {
    go(undefined)
    const find = (selector: string) => list.current?.querySelector<HTMLElement>(selector)
    const row = find('[aria-current]')
    // On narrow screens, the list is inert until the panel is gone.
    requestAnimationFrame(() =>
      (row ?? find('article[tabindex]') ?? list.current)?.focus({ preventScroll: !row }),
    )
  }

  return (
    <div class="layout">
      <div class="behind" inert={isBehind}>
        <a class="skip" href="#feed">
          Skip to events
        </a>
        <TopBar account={account} project={project} />
        <SearchBox project={project} search={search} failure={searchFailure} />
        <Sidebar account={account} project={project} channels={channels} search={search} />
        <BottomBar project={project} alarms={channels.alarms} />
        <main class="stream feed">
          <ProjectSilence account={account} project={project} />
          <h1 class={channel === undefined ? 'visually-hidden' : 'channel-name'}>
            <bdi>{channel ?? 'Events'}</bdi>
          </h1>
          {findProject(account, project)?.project.isSample && (
            <div class="sample-notice">
              <SampleDataNotice account={account} project={project} />
            </div>
          )}
          <div class="strip">
            {isDrawn.current && !searchFailure && (isSearch || hasRows || !isRead) && (
              <HistogramView project={project} search={search} newestSeq={newestSeq} />
            )}
            <LivePill feed={feed} onResume={resume} />
            <DisplayMenu />
            <WaveLine kind={kind} />
          </div>
          <Chips
            project={project}
            search={search}
            channels={channels.list}
            isEditor={isAllowed(account, project, 'member')}
          />
          {isDrawn.current && (
            <FeedList
              feed={feed}
              list={list}
              project={project}
              search={search}
              open={event}
              onOpen={go}
              isAdmin={isAllowed(account, project, 'admin')}
            />
          )}
          <p class="visually-hidden" role="status">
            {sentence}
          </p>
        </main>
      </div>
      {event !== undefined && (
        <EventPanel
          project={project}
          id={event}
          search={search}
          neighbours={beside}
          log={feed.log}
          channels={channels.list}
          may={role => isAllowed(account, project, role)}
          onGo={go}
          onClose={close}
        />
      )}
      <Toast />
    </div>
  )
}

/** Announces new events to screen readers, by the sentence that it returns. */
function useAnnouncer() {
  const sentence = useSignal('')
  const announcer = useMemo(
    () => createAnnouncer(SYSTEM_CLOCK, said => (sentence.value = said)),
    [],
  )
  useEffect(() => announcer.stop, [])
  return { announcer, sentence }
}

/** Marks the events on the page as read. `isShowing` tells whether new ones appear at once. */
function useShownEvents(isShowing: () => boolean, marks: MarkOptions): ShownEvents {
  const { channelId } = marks
  const markRead = useReadMark(marks)
  return {
    covers: id => isShowing() && (channelId === undefined || id === channelId),
    mark: async () => {
      if (!isShowing()) await markRead()
    },
  }
}
