import { useEffect, useMemo, useState } from 'preact/hooks'
import { LevelMark } from '../components/level.tsx'
import { StateMark } from '../components/state.tsx'
import { Timestamp, now } from '../components/timestamp.tsx'
import { toEventPath } from '../paths.ts'
import { isSameDay, toDayName } from '../time.ts'
import { UserName } from '../users/avatar.tsx'
import { collapse, type Entry } from './collapse.ts'
import { times } from './display.tsx'
import type { Row } from './log.ts'
import { channelIcons } from './use-channels.ts'

interface RowsOptions {
  project: string
  rows: readonly Row[]
  /** How many entries are drawn: rows, and groups of equal ones. */
  drawn?: number
  /** Decides whether a row is animated when it appears. */
  hasEntrance(row: Row): boolean
  /** The ID of the event that is open next to the list. */
  open?: string | undefined
}

/**
 * Rows with day separators, and groups of equal rows, which open to them. The order is that in
 * which the server received the events. The separators name the days on which they happened, as
 * their times and the histogram do. Screen readers skip the separators, as each row has its time.
 */
export function Rows({ project, rows, drawn = Infinity, hasEntrance, open }: RowsOptions) {
  const entries = useMemo(() => collapse(rows), [rows])
  const { isOpen, toggle } = useOpenGroups(entries, open)
  let place = 0
  return entries.slice(0, drawn).flatMap((entry, at) => {
    const oldest = entry.rows.at(-1)
    const before = entries[at - 1]?.rows[0]
    if (!oldest) return []
    const isNewDay = !before || !isSameDay(before.atMs, oldest.atMs)
    const isGroup = entry.rows.length > 1
    const shown = isGroup && !isOpen(entry) ? [] : entry.rows
    return [
      isNewDay && <Day key={`before ${oldest.seq}`} atMs={oldest.atMs} />,
      isGroup && (
        <GroupRow
          key={entry.key}
          project={project}
          entry={entry}
          place={++place}
          isOpen={shown.length > 0}
          onToggle={toggle}
        />
      ),
      ...shown.map(row => (
        <article
          key={row.seq}
          class={isGroup ? 'row inside' : hasEntrance(row) ? 'row fresh' : 'row'}
          tabIndex={0}
          data-event={row.id}
          aria-current={row.id === open ? 'true' : undefined}
          aria-labelledby={`title-${row.seq}`}
          aria-posinset={++place}
          aria-setsize={-1}
          onKeyDown={
            isGroup ? event => closeFrom(event, () => toggle(entry.key, false)) : undefined
          }
        >
          <EventRow project={project} row={row} />
        </article>
      )),
    ]
  })
}

/** The groups that are open: those that the reader opened, and the one of the open event. */
function useOpenGroups(entries: readonly Entry<Row>[], open: string | undefined) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const ofEvent =
    open === undefined
      ? undefined
      : entries.find(({ rows }) => rows.length > 1 && rows.some(({ id }) => id === open))?.key
  function toggle(key: string, isOpen: boolean) {
    setOpened(before => new Set([...before].filter(one => one !== key).concat(isOpen ? key : [])))
  }
  // It stays open, so that the focus returns to the row.
  useEffect(() => {
    if (ofEvent !== undefined) toggle(ofEvent, true)
  }, [ofEvent])
  return { isOpen: ({ key }: Entry<Row>) => key === ofEvent || opened.has(key), toggle }
}

interface GroupRowOptions {
  project: string
  entry: Entry<Row>
  place: number
  isOpen: boolean
  onToggle(key: string, isOpen: boolean): void
}

/** A row that stands for equal events, with their number. A button shows or hides their rows. */
function GroupRow({ project, entry: { key, rows }, place, isOpen, onToggle }: GroupRowOptions) {
  const [newest] = rows
  const id = `group-${rows.at(-1)?.seq}`
  if (!newest) return null
  const { icon, title, level, state, channelId, channelName, userId } = newest
  const isOfOneUser = rows.every(row => row.userId === userId)
  const count = rows.length.toLocaleString()
  return (
    <article
      class="row"
      aria-labelledby={id}
      aria-posinset={place}
      aria-setsize={-1}
      onKeyDown={event => {
        if (event.key !== (isOpen ? 'ArrowLeft' : 'ArrowRight')) return
        event.preventDefault()
        onToggle(key, !isOpen)
      }}
    >
      <RowIcon icon={icon ?? channelIcons.value[channelId]} />
      <div class="row-main">
        <h2 id={id}>
          <button type="button" aria-expanded={isOpen} onClick={() => onToggle(key, !isOpen)}>
            <LevelMark level={level} />
            <bdi>{title}</bdi>
            <StateMark state={state} />{' '}
            <span class="count">
              <span aria-hidden="true">×{count}</span>
              <span class="visually-hidden">{count} events</span>
            </span>
          </button>
        </h2>
      </div>
      <p class="row-meta">
        <bdi class="channel">{channelName}</bdi>
        {isOfOneUser && userId !== null && <User project={project} userId={userId} />}
      </p>
      <Timestamp atMs={newest.atMs} isPrecise={times.value === 'absolute'} />
    </article>
  )
}

/** Closes a group from a row inside it, with the focus on the row of the group. */
function closeFrom(event: KeyboardEvent, close: () => void): void {
  const { key, currentTarget } = event
  if (key !== 'ArrowLeft' || !(currentTarget instanceof Element)) return
  event.preventDefault()
  let row: Element | null = currentTarget
  while (row?.matches('.inside')) row = row.previousElementSibling
  row?.querySelector<HTMLElement>('[aria-expanded]')?.focus()
  close()
}

function Day({ atMs }: { atMs: number }) {
  return (
    <div class="day" aria-hidden="true">
      <span>{toDayName(atMs, now.value)}</span>
    </div>
  )
}

/** An event in the feed. Its untrusted text is in `<bdi>`, so that it cannot reverse other text. */
function EventRow({ project, row }: { project: string; row: Row }) {
  const { id, seq, icon, title, description, channelId, channelName, userId, tags } = row
  // A component that reads a signal renders again only if its properties or the signal change. A
  // map of rendered rows would do the same, but each row would keep the list that it came in.
  const icons = channelIcons.value
  return (
    <>
      <RowIcon icon={icon ?? icons[channelId]} />
      <div class="row-main">
        <h2 id={`title-${seq}`}>
          {/* The row itself is focusable, so its link is not a tab stop. */}
          <a href={toEventPath(project, id)} tabIndex={-1}>
            <LevelMark level={row.level} />
            <bdi>{title}</bdi>
            <StateMark state={row.state} thread={row.thread} />
          </a>
        </h2>
        {description !== null && description !== '' && (
          <p class="description">
            <bdi>{description}</bdi>
          </p>
        )}
      </div>
      <p class="row-meta">
        <bdi class="channel">{channelName}</bdi>
        {userId !== null && <User project={project} userId={userId} />}
        {tags.length > 0 && (
          <span class="tags">
            {tags.map(tag => (
              <bdi key={tag} class="tag">
                {tag}
              </bdi>
            ))}
          </span>
        )}
      </p>
      <Timestamp atMs={row.atMs} isPrecise={times.value === 'absolute'} />
    </>
  )
}

/** The icon of an event or its channel, or the place of one. */
function RowIcon({ icon }: { icon: string | null | undefined }) {
  return (
    <span class="icon" aria-hidden="true">
      {icon ?? <span class="no-icon" />}
    </span>
  )
}

/** The name of a user. The panel of the event has the same link, so this one is not a tab stop. */
function User(options: { project: string; userId: string }) {
  return <UserName class="user" tabIndex={-1} {...options} />
}

/** Placeholders for rows that are loading. */
export function RowSkeletons({ count }: { count: number }) {
  return (
    <div class="skeletons" role="status" aria-label="Loading events">
      {Array.from({ length: count }, (_, at) => (
        <div key={at} class="row">
          <span class="icon skeleton" />
          <div class="row-main">
            <span class="skeleton line" />
            <span class="skeleton line short" />
          </div>
        </div>
      ))}
    </div>
  )
}
