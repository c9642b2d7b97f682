import { computed, type ReadonlySignal } from '@preact/signals'
import { useMemo, useState } from 'preact/hooks'
import type { Event } from '../../../log/events/schema.ts'
import { isOpen } from '../../../log/events/state.ts'
import { Details } from '../components/item.tsx'
import { capitalize, LevelMark } from '../components/level.tsx'
import { PagedList, toGroups, usePages } from '../components/pages.tsx'
import { StateMark } from '../components/state.tsx'
import { Moment } from '../components/timestamp.tsx'
import { toVisibleTitle, type Log, type Row } from '../feed/log.ts'
import { alarmChanges } from '../live/connection.ts'
import { toEventPath } from '../paths.ts'
import { toDuration } from '../time.ts'

/** The shortest time between two requests that other events cause. */
const REFRESH_MS = 1_000
const MAX_SHOWN = 3

interface HistoryOptions {
  project: string
  /** The open event, which has a thread. */
  event: Event
  /** The log of the list, which knows of later events and deleted ones. */
  log: ReadonlySignal<Log>
  onGo(id: string): void
}

/**
 * The events of a thread, the newest first, with the times between them. Equal neighbours are one
 * item. The open event is there at once, so that less moves when the others are loaded.
 */
export function History({ project, event, log, onGo }: HistoryOptions) {
  const { threadSeq } = event
  const changes = useThreadChanges(log, threadSeq)
  const pages = usePages(
    'GET /api/projects/:projectId/events',
    { projectId: project, threadSeq, limit: 10 },
    { when: changes, pauseMs: REFRESH_MS, isKept: true },
  )
  const { loadMore } = pages
  const [isAll, setIsAll] = useState(false)
  const items = pages.data ? pages.items : [event]
  const [newest] = items
  const groups = toGroups(items, ({ title, state, level }) => `${state} ${level} ${title}`)
  const isOpened = (one: Event) => one.id === event.id
  const open = groups.findIndex(group => group.some(isOpened))
  const shown = isAll ? groups : groups.slice(0, Math.max(MAX_SHOWN, open + 1))
  const showMore = shown.length < groups.length ? () => setIsAll(true) : loadMore
  return (
    <section class="metadata" aria-labelledby="panel-history">
      <div class="metadata-top">
        <h3 id="panel-history">History</h3>
        {newest?.state && !isOpen(newest.state) && !loadMore && (
          <span class="item-details">
            {capitalize(newest.state)} {toPassed(newest, items.at(-1), 'after %')}
          </span>
        )}
      </div>
      <PagedList
        pages={{ ...pages, data: items, items: shown, loadMore: showMore }}
        className="timeline"
        empty={null}
      >
        {group => {
          const one = group.find(isOpened) ?? group[0]!
          const isLast = group === groups.at(-1)
          return (
            <li key={group.at(-1)!.id}>
              <a
                href={toEventPath(project, one.id)}
                aria-current={isOpened(one) ? 'true' : undefined}
                onClick={click => {
                  if (click.ctrlKey || click.metaKey || click.shiftKey) return
                  // The router would scroll the list to its start.
                  click.preventDefault()
                  click.stopPropagation()
                  onGo(one.id)
                }}
              >
                <StateMark state={one.state} thread={one.thread} /> <LevelMark level={one.level} />
                <span>
                  <bdi>{toVisibleTitle(one.title)}</bdi>
                  {group.length > 1 && ` ×${group.length}${isLast && loadMore ? '+' : ''}`}
                </span>
              </a>
              <Details>
                <Moment at={group[0]!.timestamp} />
                {toPassed(
                  group.at(-1),
                  groups[groups.indexOf(group) + 1]?.[0],
                  '% after the one before',
                )}
              </Details>
            </li>
          )
        }}
      </PagedList>
    </section>
  )
}

/** A signal that changes with the events of a thread, and with who takes care of alarms. */
export function useThreadChanges(log: HistoryOptions['log'], threadSeq: number | undefined) {
  const findChanges = () => {
    const { waiting, rows, deleted } = log.value
    const isOne = (row: Row) => threadSeq !== undefined && row.threadSeq === threadSeq
    return `${[...waiting, ...rows].find(isOne)?.seq} ${deleted} ${alarmChanges.value}`
  }
  return useMemo(() => computed(findChanges), [log, threadSeq])
}

/** Says how long after an earlier event another one happened. Empty if that is not known. */
function toPassed(event: Event | undefined, earlier: Event | undefined, words: string): string {
  const passedMs = Date.parse(event?.timestamp ?? '') - Date.parse(earlier?.timestamp ?? '')
  return passedMs >= 0 && event !== earlier ? words.replace('%', toDuration(passedMs)) : ''
}
