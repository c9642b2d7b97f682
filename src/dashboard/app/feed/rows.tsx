import { Timestamp, now } from '../components/timestamp.tsx'
import { toEventPath, toUserPath } from '../paths.ts'
import { isSameDay, toDayName } from '../time.ts'
import { readUserName } from '../users/names.ts'
import { times } from './display.ts'
import type { Row } from './log.ts'
import { channelIcons } from './use-channels.ts'

interface RowsOptions {
  project: string
  rows: readonly Row[]
  /** Decides whether a row is animated when it appears. */
  hasEntrance(row: Row): boolean
  /** The ID of the event that is open next to the list. */
  open?: string | undefined
}

/**
 * Rows with day separators. Rows are in the order in which the server received the events, so the
 * separators name the days of that order. An event of another day shows its own date. Screen
 * readers skip the separators, as each row has its time.
 */
export function Rows({ project, rows, hasEntrance, open }: RowsOptions) {
  return rows.flatMap((row, at) => {
    const before = rows[at - 1]
    const isNewDay = !before || !isSameDay(before.receivedMs, row.receivedMs)
    return [
      isNewDay && <Day key={`before ${row.seq}`} atMs={row.receivedMs} />,
      <article
        key={row.seq}
        class={hasEntrance(row) ? 'row fresh' : 'row'}
        tabIndex={0}
        data-event={row.id}
        data-channel={row.channelId}
        aria-current={row.id === open ? 'true' : undefined}
        aria-labelledby={`title-${row.seq}`}
        aria-posinset={at + 1}
        aria-setsize={-1}
      >
        <EventRow project={project} row={row} />
      </article>,
    ]
  })
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
      <span class="icon" aria-hidden="true">
        {icon ?? icons[channelId] ?? <span class="no-icon" />}
      </span>
      <div class="row-main">
        <h2 id={`title-${seq}`}>
          {/* The row itself is focusable, so its link is not a tab stop. */}
          <a href={toEventPath(project, id)} tabIndex={-1}>
            <bdi>{title}</bdi>
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
      <RowTime row={row} />
    </>
  )
}

/** The name of a user, or the ID, as a link to their page. */
function User({ project, userId }: { project: string; userId: string }) {
  const name = readUserName(project, userId) ?? userId
  const path = toUserPath(project, userId)
  if (path === undefined) return <bdi class="user">{name}</bdi>
  return (
    // The panel of the event has the same link, so this one is not a tab stop.
    <a class="user" href={path} title={userId} tabIndex={-1}>
      <bdi>{name}</bdi>
    </a>
  )
}

/** The time of an event. It has its date, if that is another day than the one of receipt. */
function RowTime({ row: { atMs, receivedMs } }: { row: Row }) {
  const isOfDay = isSameDay(atMs, receivedMs)
  return <Timestamp atMs={atMs} hasDate={!isOfDay} isPrecise={times.value === 'absolute'} />
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
