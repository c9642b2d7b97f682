import type { ReadonlySignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import type { Histogram } from '../../../log/events/search-schema.ts'
import { toDateTime, toRangeName } from '../time.ts'
import { Icon } from '../components/icon.tsx'
import { Bars, type BarRange } from './bars.tsx'
import { TIME_RANGES, toSearchPath, type Search } from './search.ts'
import { useHistogram } from './use-histogram.ts'
import { toPlural } from '../plural.ts'

const SHORT_NAMES = {
  '1h': '1 h',
  '24h': '24 h',
  '7d': '7 d',
  '30d': '30 d',
} as const satisfies Record<keyof typeof TIME_RANGES, string>

interface HistogramOptions {
  project: string
  search: Search
  newestSeq: ReadonlySignal<number | undefined>
}

/** Event counts over time, with buttons and a range selection that set the time filter. */
export function HistogramView({ project, search, newestSeq }: HistogramOptions) {
  const { route } = useLocation()
  const { data: histogram, failure, refetch } = useHistogram(project, search, newestSeq)
  const [hovered, setHovered] = useState<BarRange>()
  // Matters on narrow screens only. Others always show the bars.
  const [isExpanded, setExpanded] = useState(false)
  const counts = histogram ? toTotals(histogram) : []
  const toMs = (edge: number) => Date.parse(histogram?.from ?? '') + edge * (histogram?.stepMs ?? 0)
  const go = (from: string | undefined, to: string | undefined) =>
    route(toSearchPath(project, { ...search, from, to }))
  const span: BarRange = hovered ?? [0, counts.length]

  return (
    <section
      class={isExpanded ? 'histogram expanded' : 'histogram'}
      aria-label="Events over time"
      aria-busy={!histogram && !failure}
    >
      <p class="histogram-summary">
        {!histogram && failure && (
          <>
            {failure.message}{' '}
            <button type="button" class="quiet-button" onClick={() => void refetch()}>
              Retry
            </button>
          </>
        )}
        {!histogram && !failure && 'Counting…'}
        {histogram && (
          <>
            <strong>{toPlural(sum(counts.slice(...span)), 'event')}</strong>{' '}
            <span>{toRangeName(toMs(span[0]), toMs(span[1]))}</span>
          </>
        )}
      </p>
      <button
        type="button"
        class="icon-button expand"
        aria-expanded={isExpanded}
        aria-label="Show the chart"
        onClick={() => setExpanded(!isExpanded)}
      >
        <Icon name="chart" />
      </button>
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
      {histogram && <Table counts={counts} toMs={toMs} completeSince={histogram.completeSince} />}
    </section>
  )
}

interface TableOptions {
  counts: readonly number[]
  toMs(edge: number): number
  completeSince: string | null
}

/** The same counts as a table, which is drawn when it opens. */
function Table({ counts, toMs, completeSince }: TableOptions) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button
        type="button"
        class="icon-button counts-button"
        popovertarget="counts"
        aria-label="Show as table"
        title="Show as table"
      >
        <Icon name="table" />
      </button>
      <div
        id="counts"
        class="menu menu-end counts"
        popover="auto"
        onBeforeToggle={({ newState }) => newState === 'open' && setOpen(true)}
        // Later, so that the focus returns to the button.
        onToggle={({ newState }) => newState === 'closed' && setOpen(false)}
      >
        {isOpen && (
          <>
            {completeSince !== null && (
              <p class="note">
                complete since {toDateTime(Date.parse(completeSince))}, partial before
              </p>
            )}
            <div
              class="counts-table"
              tabIndex={0}
              role="group"
              aria-label="Events over time, as a table"
            >
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
          </>
        )}
      </div>
    </>
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

function toMoment(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}
