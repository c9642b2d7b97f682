import type { Card, CountsResult } from '../../../log/insights/schema.ts'
import { GROUPS } from './card-texts.ts'
import { toValuePath } from './links.ts'
import { toDateTime, toLength } from '../time.ts'

interface CountsOptions {
  project: string
  card: Card
  result: CountsResult
  title: string
}

/** One number, with its change to the period before. */
export function NumberCard({ card, result }: CountsOptions) {
  const { total, previous, completeSince } = result
  return (
    <>
      <p class="card-number">
        {completeSince !== null && '≥ '}
        {total.toLocaleString()}
      </p>
      <p class="card-change">
        {previous !== null && (
          <>
            <strong>{toChange(total, previous)}</strong> from {previous.toLocaleString()} in the{' '}
            {toLength(card.hours)} before
          </>
        )}
      </p>
      <Limits result={result} />
    </>
  )
}

/** The most frequent values, each with a bar. */
export function TopCard({ project, card, result, title }: CountsOptions) {
  const most = Math.max(...result.values.map(({ total }) => total), 1)
  if (result.values.length === 0) return <NoValues card={card} result={result} />
  return (
    <>
      <table class="top" aria-label={title}>
        <thead class="visually-hidden">
          <tr>
            <th scope="col">
              <bdi>{toGroupName(card)}</bdi>
            </th>
            <th scope="col">Events</th>
          </tr>
        </thead>
        <tbody>
          {result.values.map(one => (
            <tr key={one.value}>
              <th scope="row">
                <Value project={project} card={card} {...one} />
                <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                  <rect width={Math.max((100 * one.total) / most, 1)} height="4" />
                </svg>
              </th>
              <td>{one.total.toLocaleString()}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Limits result={result} />
    </>
  )
}

/** The limits of the counts, if there are any. */
function Limits({ result }: Pick<CountsOptions, 'result'>) {
  return (
    <>
      {result.hasMore && (
        <p class="hint">There are more values. Search more narrowly to see them.</p>
      )}
      <CompleteSince at={result.completeSince} />
    </>
  )
}

interface ValueOptions {
  project: string
  card: Card
  value: string
  name: string | null
}

/** A value that links to its events. */
function Value({ project, card, value, name }: ValueOptions) {
  const text = <bdi>{name ?? (value || '(empty)')}</bdi>
  const path = toValuePath(project, card, value)
  if (path === undefined) return text
  return <a href={path}>{text}</a>
}

function NoValues({ card, result }: Pick<CountsOptions, 'card' | 'result'>) {
  const field = toGroupName(card)
  return (
    <>
      <p class="card-empty">
        {result.total === 0
          ? 'No events in this period'
          : result.total === 1
            ? `The event has no value for “${field}”.`
            : `None of the ${result.total.toLocaleString()} events has a value for “${field}”.`}
      </p>
      <Limits result={result} />
    </>
  )
}

function toGroupName({ groupBy, metadataPath }: Card): string {
  if (groupBy === null || groupBy === 'metadata') return metadataPath ?? ''
  return GROUPS[groupBy]
}

/** The change in percent, with its sign. */
function toChange(total: number, previous: number): string {
  if (previous === 0 && total > 0) return 'new'
  const format = new Intl.NumberFormat(undefined, {
    style: 'percent',
    signDisplay: 'exceptZero',
    maximumFractionDigits: 0,
  })
  return format.format((total - previous) / Math.max(previous, 1))
}

/** Says since when counts are complete; nothing if all of the period was counted. */
export function CompleteSince({ at }: { at: string | null }) {
  if (at === null) return null
  return (
    <p class="hint">
      Complete since {toDateTime(Date.parse(at))}. This search is too broad to count the whole
      period.
    </p>
  )
}
