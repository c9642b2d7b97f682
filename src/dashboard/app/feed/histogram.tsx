import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import type { Histogram } from '../../../events/search-schema.ts'
import { toDateTime, toRangeName } from '../time.ts'
import { Bars, type BarRange } from './bars.tsx'
import { TIME_RANGES, toSearchPath, type Search } from './search.ts'
import { useHistogram } from './use-histogram.ts'

const SHORT_NAMES: Record<keyof typeof TIME_RANGES, string> = {
  '1h': '1 h',
  '24h': '24 h',
  '7d': '7 d',
  '30d': '30 d',
}

interface HistogramOptions {
  project: string
  search: Search
  newestSeq: number | undefined
}

/** Event counts over time, with buttons and a range selection that set the time filter. */
export function HistogramView({ project, search, newestSeq }: HistogramOptions) {
  const { route } = useLocation()
  const state = useHistogram(project, search, newestSeq)
  const [hovered, setHovered] = useState<BarRange>()
  const histogram = state.kind === 'counted' ? state.histogram : undefined
  const counts = histogram ? toTotals(histogram) : []
  const toMs = (edge: number) => Date.parse(histogram?.from ?? '') + edge * (histogram?.stepMs ?? 0)
  const go = (from: string | undefined, to: string | undefined) =>
    route(toSearchPath(project, { ...search, from, to }))
  const span: BarRange = hovered ?? [0, counts.length]

  return (
    <section class="histogram" aria-label="Events over time" aria-busy={state.kind === 'counting'}>
      <div class="histogram-top">
        <p class="histogram-summary">
          {state.kind === 'failed' && (
            <>
              {state.failure.message}{' '}
              <button type="button" class="quiet-button" onClick={state.retry}>
                Try again
              </button>
            </>
          )}
          {state.kind === 'counting' && 'Counting…'}
          {histogram && (
            <>
              <strong>{toEvents(sum(counts.slice(...span)))}</strong>{' '}
              <span>{toRangeName(toMs(span[0]), toMs(span[1]))}</span>
            </>
          )}
        </p>
        <div class="segmented" role="group" aria-label="Time range">
          {(Object.keys(TIME_RANGES) as (keyof typeof TIME_RANGES)[]).map(name => (
            <button
              key={name}
              type="button"
              aria-pressed={search.from === name}
              onClick={() => go(search.from === name ? undefined : name, undefined)}
            >
              {SHORT_NAMES[name]}
            </button>
          ))}
        </div>
      </div>
      {histogram ? (
        <Bars
          key={`${histogram.from} ${histogram.stepMs}`}
          counts={counts}
          toLabel={edge => toDateTime(toMs(edge))}
          onHover={setHovered}
          onChoose={([first, end]) => go(toMoment(toMs(first)), toMoment(toMs(end)))}
        />
      ) : (
        <div class="bars" aria-hidden="true" />
      )}
      {histogram && <Table counts={counts} toMs={toMs} completeSince={histogram.completeSince} />}
    </section>
  )
}

interface TableOptions {
  counts: readonly number[]
  toMs(edge: number): number
  completeSince: string | null
}

/** The same counts as a table. */
function Table({ counts, toMs, completeSince }: TableOptions) {
  return (
    <details class="counts">
      <summary>
        Show as table
        {completeSince !== null && (
          <span> · complete since {toDateTime(Date.parse(completeSince))}, partial before</span>
        )}
      </summary>
      <div class="counts-table" tabIndex={0} role="group" aria-label="Events over time, as a table">
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Events</th>
            </tr>
          </thead>
          <tbody>
            {counts.map((count, at) =>
              count === 0 ? null : (
                <tr key={at}>
                  <th scope="row">{toRangeName(toMs(at), toMs(at + 1))}</th>
                  <td>{count.toLocaleString()}</td>
                </tr>
              ),
            )}
          </tbody>
        </table>
      </div>
    </details>
  )
}

function toTotals({ channels, others }: Histogram): number[] {
  return others.map((count, at) =>
    channels.reduce((total, { counts }) => total + (counts[at] ?? 0), count),
  )
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

function toEvents(count: number): string {
  return `${count.toLocaleString()} ${count === 1 ? 'event' : 'events'}`
}

function toMoment(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}
