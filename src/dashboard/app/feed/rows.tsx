import type { VNode } from 'preact'
import { Timestamp, now } from '../components/timestamp.tsx'
import { toEventPath } from '../paths.ts'
import { isSameDay, toDayName } from '../time.ts'
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

/** Rows with day separators. Screen readers skip the separators, as each row has its time. */
export function Rows({ project, rows, hasEntrance, open }: RowsOptions) {
  return rows.flatMap((row, at) => {
    const before = rows[at - 1]
    const isNewDay = !before || !isSameDay(before.atMs, row.atMs)
    return [
      isNewDay && <Day key={`before ${row.seq}`} atMs={row.atMs} />,
      <article
        key={row.seq}
        class={hasEntrance(row) ? 'row fresh' : 'row'}
        tabIndex={0}
        data-event={row.id}
        aria-current={row.id === open ? 'true' : undefined}
        aria-labelledby={`title-${row.seq}`}
        aria-posinset={at + 1}
        aria-setsize={-1}
      >
        {toContent(project, row)}
      </article>,
    ]
  })
}

// Preact skips identical vnodes, so only new rows are rendered.
const contents = new WeakMap<Row, VNode>()

function toContent(project: string, row: Row): VNode {
  const known = contents.get(row) ?? <EventRow project={project} row={row} />
  contents.set(row, known)
  return known
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
  const { id, seq, icon, title, description, channelId, channelName, userId, tags, atMs } = row
  return (
    <>
      <span class="icon" aria-hidden="true">
        {icon ?? channelIcons.value[channelId] ?? <span class="no-icon" />}
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
        <p class="row-meta">
          <bdi class="channel">{channelName}</bdi>
          {userId !== null && <bdi class="user">{userId}</bdi>}
          {tags.map(tag => (
            <bdi key={tag} class="tag">
              {tag}
            </bdi>
          ))}
        </p>
      </div>
      <Timestamp atMs={atMs} />
    </>
  )
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
