import { computed } from '@preact/signals'
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { ErrorNotice } from '../components/standalone-page.tsx'
import { FirstEventCommand } from '../components/first-event-command.tsx'
import { toFeedPath, toStartPath } from '../paths.ts'
import type { Feed } from './feed.ts'
import { MAX_ROWS, type Row } from './log.ts'
import { Rows, RowSkeletons } from './rows.tsx'
import { EMPTY_SEARCH, isFiltered, toSearchPath, type Search } from './search.ts'

/** How far above the end the next page is asked for. */
const AHEAD = '1200px'
const FIRST_ROWS = 8
/** Larger groups have no entrance: at 100 events a second each would be gone before it ends. */
const MOST_ENTRANCES = 3

interface ListOptions {
  feed: Feed
  list: RefObject<HTMLElement | null>
  project: string
  search: Search
  /** The id of the event that is open beside the list. */
  open?: string | undefined
  onOpen(event: string): void
  /** What is said where there is nothing. */
  empty?: ComponentChildren
}

/** The rows of a feed in every state: loading, empty, broken, and on to the oldest. */
export function FeedList({ feed, list, project, search, open, onOpen, empty }: ListOptions) {
  const rows = useMemo(() => computed(() => feed.log.value.rows), [feed]).value
  const reading = feed.reading.value
  const entrances = useEntrances(feed, rows)
  const { older } = feed.log.value
  // The box says what is wrong with a search.
  const isUnclear = reading.kind === 'failed' && reading.failure.code === 'invalid'
  const isBusy = reading.kind === 'first' || reading.kind === 'older'
  const isFailed = (what: 'first' | 'older') => reading.kind === 'failed' && reading.what === what
  const trouble = reading.kind === 'failed' && (
    <ErrorNotice failure={reading.failure} onRetry={feed.retry} />
  )
  return (
    <>
      {isFailed('first') && !isUnclear && trouble}
      {rows.length === 0 && isBusy && <RowSkeletons count={FIRST_ROWS} />}
      {rows.length === 0 &&
        reading.kind === 'nothing' &&
        (older.kind === 'more' ? (
          <NotYet onGoOn={() => void feed.readOlder()} />
        ) : (
          (empty ?? <Nothing project={project} search={search} />)
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
        <Rows project={project} rows={rows} hasEntrance={row => entrances.has(row)} open={open} />
      </section>
      {isFailed('older') && trouble}
      {rows.length > 0 && <End feed={feed} />}
    </>
  )
}

/** Opens the row that is pressed, unless its text was selected or the browser opens it elsewhere. */
function openRow(event: MouseEvent | KeyboardEvent, onOpen: (id: string) => void): void {
  const { target, ctrlKey, metaKey, shiftKey, altKey } = event
  const row = target instanceof Element ? target.closest<HTMLElement>('article') : null
  if (!row || ctrlKey || metaKey || shiftKey || altKey) return
  if ('key' in event && (row !== target || (event.key !== 'Enter' && event.key !== 'o'))) return
  if (!('key' in event) && getSelection()?.isCollapsed === false) return
  event.preventDefault()
  // The router would follow the link in the row, whatever was prevented.
  event.stopPropagation()
  onOpen(row.dataset['event'] ?? '')
}

/** Nothing among the newest: the rest of a large log is looked through only for who waits for it. */
function NotYet({ onGoOn }: { onGoOn(): void }) {
  return (
    <div class="empty-state">
      <h2>Nothing found so far</h2>
      <p>The newest events have been looked through. There are older ones.</p>
      <p>
        <button type="button" class="button" onClick={onGoOn}>
          Look further back
        </button>
      </p>
    </div>
  )
}

function Nothing({ project, search }: { project: string; search: Search }) {
  if (isFiltered(search)) {
    const { channelId } = search
    return (
      <div class="empty-state">
        <h2>Nothing found</h2>
        <p>No event fits this search. One that comes and does appears here at once.</p>
        <p>
          <a href={toSearchPath(project, { ...EMPTY_SEARCH, channelId })}>Clear the search</a>
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
        <h2>Nothing in this channel</h2>
        <p>
          What is sent to it appears here at once. <a href={toFeedPath(project)}>All events</a>
        </p>
      </div>
    )
  }
  return (
    <div class="empty-state">
      <h2>Still water</h2>
      <p>No event has come yet. Send the first one, and watch it arrive:</p>
      <FirstEventCommand />
      <p>
        <a href={toStartPath(project)}>Get a key for it</a> ·{' '}
        <a href="/docs/sending-events">How to send events</a>
      </p>
    </div>
  )
}

/** The end of what is loaded; coming near it loads more. */
function End({ feed }: { feed: Feed }) {
  const end = useRef<HTMLDivElement>(null)
  const { kind } = feed.log.value.older
  const reading = feed.reading.value.kind
  const mayRead = (kind === 'more' || kind === 'cut') && reading === 'nothing'
  const oldest = feed.log.value.rows.at(-1)?.seq

  useEffect(() => {
    if (!end.current || !mayRead) return
    const observer = new IntersectionObserver(
      entries => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) void feed.readOlder()
      },
      { rootMargin: AHEAD },
    )
    observer.observe(end.current)
    return () => observer.disconnect()
  }, [feed, mayRead, oldest])

  return (
    <div ref={end} class="list-end">
      {reading === 'older' && <RowSkeletons count={3} />}
      {kind === 'end' && <p>That is the beginning.</p>}
      {kind === 'full' && <p>{MAX_ROWS} events are shown, as many as fit in one list.</p>}
    </div>
  )
}

/** The rows that have arrived in small groups since the list was first read. */
function useEntrances(feed: Feed, rows: readonly Row[]): WeakSet<Row> {
  const known = useRef<{ feed: Feed; newest: number; entrances: WeakSet<Row> }>(undefined)
  if (known.current?.feed !== feed) {
    known.current = { feed, newest: Infinity, entrances: new WeakSet() }
  }
  const { newest, entrances } = known.current
  const count = rows.findIndex(({ seq }) => seq <= newest)
  const arrived = rows.slice(0, count < 0 ? rows.length : count)
  if (arrived.length <= MOST_ENTRANCES) for (const row of arrived) entrances.add(row)
  if (feed.reading.value.kind === 'nothing') known.current.newest = rows[0]?.seq ?? 0
  return entrances
}
