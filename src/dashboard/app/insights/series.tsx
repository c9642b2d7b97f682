import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import type { Histogram } from '../../../log/events/search-schema.ts'
import type { Card } from '../../../log/insights/schema.ts'
import { Bars, CountsTable, type BarRange } from '../charts/bars.tsx'
import { toPlural } from '../locale.ts'
import { toClockTime, toDayAndMonth, toRangeName } from '../time.ts'
import { toRangePath } from './links.ts'
import { CompleteSince } from './counts.tsx'
import { COLOURS, toColour } from '../users/avatar.tsx'

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
  const [span, setSpan] = useState<BarRange>()
  const { total, completeSince } = histogram
  const parts = toParts(histogram)
  const toMs = (edge: number) => Date.parse(histogram.from) + edge * histogram.stepMs
  const count = (counts: readonly number[]) => sum(counts.slice(...range))
  const range = span ?? [0, histogram.others.length]
  const shown = span ? sum(parts.map(({ counts }) => count(counts))) : total
  const totals = histogram.others.map((_, at) => sum(parts.map(({ counts }) => counts[at] ?? 0)))
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
          <Bars
            key={histogram.stepMs}
            parts={parts}
            label={`${title}, as a chart. The same counts are in the table below it.`}
            {...toLabels(histogram)}
            onHover={setSpan}
            onChoose={([first, end]) => route(toRangePath(project, card, toMs(first), toMs(end)))}
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
          <details class="counts">
            <summary>Show as table</summary>
            <CountsTable
              label={`${title}, as a table`}
              columns={[{ name: 'Events', counts: totals }, ...parts]}
              toName={bar => toRangeName(toMs(bar), toMs(bar + 1))}
            />
          </details>
        </>
      )}
      <CompleteSince at={completeSince} />
    </>
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
  // A channel alone needs no colour of its own.
  if (sum(others) === 0 && parts.length === 1) return [{ ...parts[0]!, colour: '--accent' }]
  if (sum(others) === 0) return parts
  const rest = { id: '', name: 'Other channels', counts: others, colour: '--series-0' }
  return [...parts, rest]
}

/** Labels of bars: times for a short period, and else one date for each day at most. */
function toLabels({ from, stepMs, others }: Histogram) {
  const toMs = (bar: number) => Date.parse(from) + bar * stepMs
  if (others.length * stepMs <= MAX_CLOCK_MS) {
    return { toLabel: (bar: number) => toClockTime(toMs(bar)), labelSteps: LABEL_STEPS }
  }
  const barsOfDay = Math.max(Math.round(DAY_MS / stepMs), 1)
  return {
    toLabel: (bar: number) => toDayAndMonth(toMs(bar)),
    labelSteps: LABEL_STEPS.map(days => days * barsOfDay),
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

/**
 * Returns the CSS variable of the colour of each channel. A channel has the same colour in every
 * card, unless a larger channel in the card has it. `--series-0` is for all others.
 */
function assignColours(ids: readonly string[]): Map<string, string> {
  const taken = new Map<number, string>()
  for (const id of ids) {
    const wanted = toColour(id)
    const steps = Array.from({ length: COLOURS }, (_, step) => (wanted + step) % COLOURS)
    taken.set(steps.find(place => !taken.has(place)) ?? wanted, id)
  }
  return new Map([...taken].map(([place, id]) => [id, `--series-${place + 1}`]))
}
