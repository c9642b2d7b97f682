import { useLocation } from 'preact-iso'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Histogram } from '../../../log/events/search-schema.ts'
import type { Card } from '../../../log/insights/schema.ts'
import { toPlural } from '../plural.ts'
import { toClockTime, toDayAndMonth, toRangeName } from '../time.ts'
import { toRangePath } from './links.ts'
import { assignColours } from './colours.ts'
import { CompleteSince } from './complete-since.tsx'

const HOUR_MS = 3_600_000
/** Periods up to this length have times as labels, and longer ones dates. */
const MAX_CLOCK_MS = 48 * HOUR_MS
const DAY_MS = 24 * HOUR_MS
const LABEL_STEPS = [1, 2, 4, 6, 8, 12, 16, 24, 32]

interface SeriesOptions {
  project: string
  card: Card
  histogram: Histogram
  title: string
}

/** A part of each bar: a channel, or all others together. */
interface Part {
  id: string
  name: string
  counts: readonly number[]
  colour: string
}

/** Counts over time, by channel: a chart, its legend and a table. */
export function Series({ project, card, histogram, title }: SeriesOptions) {
  const { route } = useLocation()
  const [bar, setBar] = useState<number>()
  const { total, completeSince } = histogram
  const parts = toParts(histogram)
  const toMs = (edge: number) => Date.parse(histogram.from) + edge * histogram.stepMs
  const count = (counts: readonly number[]) =>
    bar === undefined ? sum(counts) : (counts[bar] ?? 0)
  const range: [number, number] = bar === undefined ? [0, histogram.others.length] : [bar, bar + 1]
  const shown = bar === undefined ? total : sum(parts.map(({ counts }) => counts[bar] ?? 0))
  const isComplete = completeSince === null || toMs(range[0]) >= Date.parse(completeSince)
  return (
    <>
      <p class="card-summary">
        <strong>
          {!isComplete && '≥ '}
          {toPlural(shown, 'event')}
        </strong>{' '}
        <span>{toRangeName(toMs(range[0]), toMs(range[1]))}</span>
      </p>
      {total === 0 ? (
        <p class="card-empty">No events in this period</p>
      ) : (
        <>
          <Chart
            parts={parts}
            label={`${title}, as a chart. The same counts are in the table below it.`}
            {...toLabels(histogram)}
            onHover={setBar}
            onChoose={(first, end) => route(toRangePath(project, card, toMs(first), toMs(end)))}
          />
          <ul class="legend">
            {parts.map(({ id, name, counts, colour }) => (
              <li key={id}>
                <svg class="swatch" viewBox="0 0 8 8" aria-hidden="true">
                  <rect width="8" height="8" rx="2" fill={`var(${colour})`} />
                </svg>
                <bdi>{name}</bdi> <span>{count(counts).toLocaleString()}</span>
              </li>
            ))}
          </ul>
          <Table parts={parts} toMs={toMs} title={title} />
        </>
      )}
      <CompleteSince at={completeSince} />
    </>
  )
}

interface ChartOptions {
  parts: readonly Part[]
  label: string
  toLabel(bar: number): string
  labelSteps: readonly number[]
  onHover(bar: number | undefined): void
  onChoose(first: number, end: number): void
}

function Chart({ parts, label, toLabel, labelSteps, onHover, onChoose }: ChartOptions) {
  const place = useRef<HTMLDivElement>(null)
  const [isMissing, setMissing] = useState(false)
  const key = JSON.stringify(parts.map(({ colour, counts }) => [colour, counts]))

  useEffect(() => {
    let stop = () => {}
    let isOver = false
    // uPlot is as large as a whole page, so it is loaded on demand.
    import('../charts/plot.ts').then(
      ({ plot }) => {
        if (isOver || !place.current) return
        stop = plot(place.current, {
          series: parts.map(({ counts, colour }) => ({ values: counts, colour })),
          toLabel,
          labelSteps,
          isRoot: true,
          onHover,
          onChoose,
        })
      },
      () => setMissing(true),
    )
    return () => {
      isOver = true
      stop()
    }
  }, [key])
  if (isMissing)
    return <p class="card-empty">The chart could not be loaded. The table has the same counts.</p>
  return <div ref={place} class="chart" role="img" aria-label={label} />
}

interface TableOptions {
  parts: readonly Part[]
  toMs(edge: number): number
  title: string
}

/** The counts of the chart. Rows without events are left out. */
function Table({ parts, toMs, title }: TableOptions) {
  const totals = (parts[0]?.counts ?? []).map((_, at) =>
    sum(parts.map(({ counts }) => counts[at] ?? 0)),
  )
  return (
    <details class="counts">
      <summary>Show as table</summary>
      <div class="counts-table" tabIndex={0} role="group" aria-label={`${title}, as a table`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Events</th>
              {parts.map(({ id, name }) => (
                <th key={id} scope="col">
                  <bdi>{name}</bdi>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {totals.map((total, at) =>
              total === 0 ? null : (
                <tr key={at}>
                  <th scope="row">{toRangeName(toMs(at), toMs(at + 1))}</th>
                  <td>{total.toLocaleString()}</td>
                  {parts.map(({ id, counts }) => (
                    <td key={id}>{(counts[at] ?? 0).toLocaleString()}</td>
                  ))}
                </tr>
              ),
            )}
          </tbody>
        </table>
      </div>
    </details>
  )
}

function toParts({ channels, others }: Histogram): Part[] {
  const colours = assignColours(channels.map(({ id }) => id))
  const parts = channels.map(({ id, name, counts }) => ({
    id,
    name,
    counts,
    colour: colours.get(id) ?? '--series-0',
  }))
  if (sum(others) === 0) return parts
  const rest = { id: '', name: 'Other channels', counts: others, colour: '--series-0' }
  return [...parts, rest]
}

/** Labels of bars: times for a short period, and else one date for each day at most. */
function toLabels({
  from,
  stepMs,
  others,
}: Histogram): Pick<ChartOptions, 'toLabel' | 'labelSteps'> {
  const toMs = (bar: number) => Date.parse(from) + bar * stepMs
  if (others.length * stepMs <= MAX_CLOCK_MS) {
    return { toLabel: bar => toClockTime(toMs(bar)), labelSteps: LABEL_STEPS }
  }
  const barsOfDay = Math.max(Math.round(DAY_MS / stepMs), 1)
  return {
    toLabel: bar => toDayAndMonth(toMs(bar)),
    labelSteps: LABEL_STEPS.map(days => days * barsOfDay),
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
