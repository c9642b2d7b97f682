import type { AlikeTitles } from '../../../log/insights/schema.ts'
import { Sparkline } from '../channels/sparkline.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import type { Search } from '../feed/search.ts'
import { toPlural } from '../plural.ts'
import { toRangeName } from '../time.ts'
import { CompleteSince } from './complete-since.tsx'
import { toShapePath } from './links.ts'

type Group = AlikeTitles['groups'][number]

interface AlikeTableOptions {
  project: string
  search: Search
  titles: AlikeTitles
}

/** Groups of alike titles, each with its events over time. A title links to the events. */
export function AlikeTable({ project, search, titles }: AlikeTableOptions) {
  const { groups, total, completeSince, hasMore } = titles
  const most = completeSince === null ? '' : '≥ '
  if (groups.length === 0) {
    return (
      <div class="empty-state">
        <h2>No events in this time</h2>
        <p>Choose a longer period, or search for fewer words.</p>
        <CompleteSince at={completeSince} />
      </div>
    )
  }
  return (
    <>
      <p class="card-summary" role="status">
        <strong>
          {most}
          {toPlural(total, 'event')}
        </strong>{' '}
        in{' '}
        {hasMore
          ? `more than ${toPlural(groups.length, 'group')}`
          : toPlural(groups.length, 'group')}
      </p>
      <table class="values alike" aria-label="Alike titles">
        <thead>
          <tr>
            <th scope="col">Title</th>
            <th scope="col" class="wide">
              Channel
            </th>
            <th scope="col">Over time</th>
            <th scope="col">Events</th>
            <th scope="col" class="wide">
              First
            </th>
            <th scope="col" class="wide">
              Last
            </th>
          </tr>
        </thead>
        <tbody>
          {groups.map(group => (
            <tr key={group.shape}>
              <th scope="row">
                <Shape path={toShapePath(project, search, group.shape)} shape={group.shape} />
                {group.example !== group.shape && (
                  <p class="item-details">
                    <bdi>{group.example}</bdi>
                  </p>
                )}
                <p class="item-details narrow">
                  <Channels group={group} /> · last{' '}
                  <Timestamp atMs={Date.parse(group.lastAt)} hasDate />
                </p>
              </th>
              <td class="wide">
                <Channels group={group} />
              </td>
              <td>
                <Sparkline counts={group.counts} />
                <span class="visually-hidden">{toPeak(titles, group)}</span>
              </td>
              <td>
                {most}
                {group.total.toLocaleString()}
              </td>
              <td class="wide">
                {completeSince === null ? (
                  <Timestamp atMs={Date.parse(group.firstAt)} hasDate />
                ) : (
                  '–'
                )}
              </td>
              <td class="wide">
                <Timestamp atMs={Date.parse(group.lastAt)} hasDate />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {hasMore && (
        <p class="hint">These are the largest groups. Search more narrowly to see the others.</p>
      )}
      <CompleteSince at={completeSince} />
    </>
  )
}

function Shape({ path, shape }: { path: string | undefined; shape: string }) {
  const text = <bdi>{shape}</bdi>
  return path === undefined ? text : <a href={path}>{text}</a>
}

function Channels({ group: { channels, channelCount } }: { group: Group }) {
  const more = channelCount - channels.length
  return (
    <>
      {channels.map(({ id, name }, at) => (
        <span key={id}>
          {at > 0 && ', '}
          <bdi>{name}</bdi>
        </span>
      ))}
      {more > 0 && ` and ${more.toLocaleString()} more`}
    </>
  )
}

/** Says in words what the chart shows: the time with the most events. */
function toPeak({ from, stepMs }: AlikeTitles, { counts }: Group): string {
  const peak = counts.indexOf(Math.max(...counts))
  const startMs = Date.parse(from) + peak * stepMs
  return `Most: ${(counts[peak] ?? 0).toLocaleString()}, ${toRangeName(startMs, startMs + stepMs)}`
}
