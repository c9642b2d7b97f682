import { computed } from '@preact/signals'
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ErrorNotice } from '../components/standalone-page.tsx'
import { toShortcutKey } from '../key-press.ts'
import { toFeedPath, toProjectPath } from '../paths.ts'
import type { Feed } from './feed.ts'
import { MAX_LIVE_ROWS, MAX_ROWS, type Row } from './log.ts'
import { Rows, RowSkeletons } from './rows.tsx'
import { EMPTY_SEARCH, isFiltered, toSearchPath, type Search } from './search.ts'

/** How far before the end of the list the next page is loaded. */
const LOAD_MARGIN = '900px'
const FIRST_ROWS = 8
/** Slow devices draw the rows of the first page in smaller parts, and stay responsive. */
const MAX_PART = 8
/** A part that took longer than this is followed by a smaller one. */
const LONG_MS = 6
/** Larger groups have no entrance animation, which would be too short at 100 events a second. */
const MAX_ENTRANCES = 3
const ROW_PX = 36
/** In a burst, rows below the screen are drawn after this time without another one. */
const CALM_MS = 1_500

interface ListOptions {
  feed: Feed
  list: RefObject<HTMLElement | null>
  project: string
  search: Search
  /** The ID of the event that is open next to the list. */
  open?: string | undefined
  onOpen(event: string): void
  /** True for an admin, who gets the command for the first event when the list is empty. */
  isAdmin?: boolean
  /** Shown when the list is empty. */
  empty?: ComponentChildren
}

/** The rows of a feed in every state: loading, empty, failed and complete. */
export function FeedList(options: ListOptions) {
  const { feed, list, project, search, open, onOpen, isAdmin = false, empty } = options
  const own = useMemo(() => computed(() => feed.log.value.rows), [feed]).value
  const reading = feed.reading.value
  // Until the first page of another search, the rows of the one before stay.
  const former = useRef({ project, rows: own })
  const isKept = own.length === 0 && reading.kind === 'first' && former.current.project === project
  const rows = isKept ? former.current.rows : own
  former.current = { project, rows }
  const { entrances, burst } = useArrivals(feed, rows)
  const drawn = useDrawnRows(feed, rows.length, burst)
  const { older } = feed.log.value
  // The search box shows the errors of an invalid search.
  const isInvalid = reading.kind === 'failed' && reading.failure.code === 'invalid'
  const isBusy = reading.kind === 'first' || reading.kind === 'older'
  const isFailed = (page: 'first' | 'older') => reading.kind === 'failed' && reading.page === page
  const trouble = reading.kind === 'failed' && (
    <ErrorNotice failure={reading.failure} onRetry={feed.retry} />
  )
  return (
    <>
      {isFailed('first') && !isInvalid && trouble}
      {rows.length === 0 && isBusy && <RowSkeletons count={FIRST_ROWS} />}
      {rows.length === 0 &&
        reading.kind === 'nothing' &&
        (older.kind === 'more' ? (
          <NoMatchYet onContinue={() => void feed.readOlder()} />
        ) : (
          (empty ?? <EmptyFeed project={project} search={search} isAdmin={isAdmin} />)
        ))}
      <section
        id="feed"
        ref={list}
        role={rows.length > 0 ? 'feed' : undefined}
        aria-label={rows.length > 0 ? 'Events' : undefined}
        aria-busy={isBusy}
        tabIndex={-1}
        onClick={event => openRow(event, onOpen)}
        onKeyDown={event => openRow(event, onOpen)}
      >
        <Rows
          project={project}
          rows={rows}
          drawn={drawn}
          hasEntrance={row => entrances.has(row)}
          open={open}
        />
      </section>
      {isFailed('older') && trouble}
      {rows.length > 0 && drawn === Infinity && (
        <ListEnd feed={feed} isFiltered={isFiltered(search)} />
      )}
    </>
  )
}

/** Opens a row on click or key, unless text is selected or a modifier key is held. */
function openRow(event: MouseEvent | KeyboardEvent, onOpen: (id: string) => void): void {
  const { target, ctrlKey, metaKey, shiftKey, altKey } = event
  const row = target instanceof Element ? target.closest<HTMLElement>('article') : null
  if (!row || ctrlKey || metaKey || shiftKey || altKey) return
  // A mouse reaches the link to the user. A finger opens the event, whose panel has the same link.
  const isTouch = 'pointerType' in event && event.pointerType === 'touch'
  if (!isTouch && target instanceof Element && target.closest('a.user')) return
  if (row.dataset['event'] === undefined) return
  if ('key' in event && (row !== target || !['Enter', 'o'].includes(toShortcutKey(event)))) return
  if (!('key' in event) && getSelection()?.isCollapsed === false) return
  event.preventDefault()
  // The router follows links even if the default was prevented.
  event.stopPropagation()
  onOpen(row.dataset['event'])
}

/** Shown when the newest events have no match. Older ones are searched on request. */
function NoMatchYet({ onContinue }: { onContinue(): void }) {
  return (
    <div class="empty-state">
      <h2>No matches yet</h2>
      <p>The newest events were searched. There are older ones.</p>
      <p>
        <button type="button" class="button" onClick={onContinue}>
          Search older events
        </button>
      </p>
    </div>
  )
}

interface EmptyFeedOptions {
  project: string
  search: Search
  isAdmin: boolean
}

function EmptyFeed({ project, search, isAdmin }: EmptyFeedOptions) {
  if (isFiltered(search)) {
    const { channelId } = search
    return (
      <div class="empty-state">
        <h2>No matching events</h2>
        <p>New matches appear here as they arrive.</p>
        <p>
          <a href={toSearchPath(project, { ...EMPTY_SEARCH, channelId })}>Clear search</a>
          {channelId !== undefined && (
            <>
              {' · '}
              <a href={toSearchPath(project, { ...search, channelId: undefined })}>
                Search all channels
              </a>
            </>
          )}
        </p>
      </div>
    )
  }
  if (search.channelId !== undefined) {
    return (
      <div class="empty-state">
        <h2>No events in this channel</h2>
        <p>
          New events appear here as they arrive. <a href={toFeedPath(project)}>All events</a>
        </p>
      </div>
    )
  }
  return (
    <div class="empty-state">
      <h2>No events yet</h2>
      <p>One command sends the first event, and it appears here as it arrives.</p>
      <p class="actions">
        {isAdmin && (
          <a class="button" href={toProjectPath('start', project)}>
            Send the first event
          </a>
        )}
        <a class="quiet-button" href="/docs/sending-events">
          How to send events
        </a>
      </p>
    </div>
  )
}

/** The end of the loaded rows. Scrolling near it loads more. */
function ListEnd({ feed, isFiltered }: { feed: Feed; isFiltered: boolean }) {
  const end = useRef<HTMLDivElement>(null)
  const { older, rows } = feed.log.value
  const { kind } = older
  const { reasons } = feed.live.value
  const reading = feed.reading.value.kind
  // The end of collapsed rows may be in view. Rows that are read there would be dropped again.
  const isLasting = rows.length < MAX_LIVE_ROWS || reasons.has('scrolled') || reasons.has('manual')
  const mayRead = (kind === 'more' || (kind === 'cut' && isLasting)) && reading === 'nothing'
  const oldest = rows.at(-1)?.seq

  useEffect(() => {
    if (!end.current || !mayRead) return
    const observer = new IntersectionObserver(
      entries => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) void feed.readOlder()
      },
      { rootMargin: LOAD_MARGIN },
    )
    observer.observe(end.current)
    return () => observer.disconnect()
  }, [feed, mayRead, oldest])

  return (
    <div ref={end} class="list-end">
      {reading === 'older' && <RowSkeletons count={3} />}
      {kind === 'end' && (
        <p>{isFiltered ? 'No older matches' : "You've reached the first event"}</p>
      )}
      {kind === 'full' && (
        <p>
          This list shows at most {MAX_ROWS.toLocaleString()} events. Search to find older ones.
        </p>
      )}
    </div>
  )
}

/**
 * How many rows are drawn: at first and after a burst some, later all, one part after another. The
 * rows of a burst that fill no screen are replaced unseen by the next one.
 */
function useDrawnRows(feed: Feed, count: number, burst: number): number {
  const first = burst > 0 ? countOnScreen() : 1
  const [drawn, setDrawn] = useState({ feed, burst, count: first })
  const current = drawn.feed === feed && drawn.burst === burst ? drawn.count : first
  const part = useRef(1)
  const startMs = performance.now()
  useLayoutEffect(() => {
    if (count === 0 || current === Infinity) return
    const isLong = performance.now() - startMs > LONG_MS
    part.current = isLong ? Math.ceil(part.current / 2) : Math.min(part.current * 2, MAX_PART)
  }, [feed, count, current, burst])
  useEffect(() => {
    if (count === 0 || current === Infinity) return
    const next = current < count ? current + part.current : Infinity
    const waitMs = burst > 0 && current === first ? CALM_MS : 0
    const timer = setTimeout(() => setDrawn({ feed, burst, count: next }), waitMs)
    return () => clearTimeout(timer)
  }, [feed, count, current, burst])
  return current
}

/** The most rows that a screen can show. */
function countOnScreen(): number {
  return Math.ceil(screen.height / ROW_PX)
}

interface Arrivals {
  /** The rows that arrived in small groups after the list was loaded. They are animated. */
  entrances: WeakSet<Row>
  /** The newest seq of the last group that was larger than the screen; 0 if there was none. */
  burst: number
}

function useArrivals(feed: Feed, rows: readonly Row[]): Arrivals {
  const known = useRef<Arrivals & { feed: Feed; newest: number }>(undefined)
  if (known.current?.feed !== feed) {
    known.current = { feed, newest: Infinity, entrances: new WeakSet(), burst: 0 }
  }
  const { newest, entrances } = known.current
  const count = rows.findIndex(({ seq }) => seq <= newest)
  const arrived = rows.slice(0, count < 0 ? rows.length : count)
  if (arrived.length <= MAX_ENTRANCES) for (const row of arrived) entrances.add(row)
  if (arrived.length > countOnScreen()) known.current.burst = rows[0]?.seq ?? 0
  if (feed.reading.value.kind === 'nothing') known.current.newest = rows[0]?.seq ?? 0
  return known.current
}
