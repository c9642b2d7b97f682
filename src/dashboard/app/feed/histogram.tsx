import type { ReadonlySignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import type { Histogram } from '../../../log/events/search-schema.ts'
import { toDateTime, toDuration, toRangeName } from '../time.ts'
import { Icon } from '../components/icon.tsx'
import { IconMenu } from '../components/popover.tsx'
import { lazyPages } from '../lazy-page.tsx'
import { loadAfter } from '../load-after.ts'
import type { BarRange } from '../charts/bars.tsx'
import { toExactTime } from './reader-dates.ts'
import { TIME_RANGES, toSearchPath, toQuery, type Search } from './search.ts'
import { toPlural } from '../locale.ts'
import { QuietButton, Segmented } from '../components/buttons.tsx'
import { useQuery } from '../components/query.tsx'
import { request } from '../request.ts'

const chart = lazyPages(loadAfter, () => null)
const Bars = chart('Bars')
const CountsTable = chart('CountsTable')

/** How long the bars may lag behind the rows. */
const REFRESH_MS = 10_000
/** A chart that ends now moves by one bar. */
const MIN_EVERY_MS = 60_000

interface HistogramOptions {
  project: string
  search: Search
  newestSeq: ReadonlySignal<number | undefined>
}

/** Event counts over time, with buttons and a range selection that set the time filter. */
export function HistogramView({ project, search, newestSeq }: HistogramOptions) {
  const { route } = useLocation()
  const { channelId, text, from, to } = search
  const query = useQuery(
    JSON.stringify([project, channelId, text, from, to]),
    signal =>
      request(
        'GET /api/projects/:projectId/histogram',
        { projectId: project, ...toQuery(search, Date.now()) },
        signal,
      ),
    {
      when: newestSeq,
      pauseMs: REFRESH_MS,
      everyMs: ({ stepMs }) => (to === undefined ? Math.max(stepMs, MIN_EVERY_MS) : undefined),
    },
  )
  const { data: histogram, failure, refetch } = query
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
            {failure.message} <QuietButton onClick={() => void refetch()}>Retry</QuietButton>
          </>
        )}
        {!histogram && !failure && 'Counting…'}
        {histogram && (
          <>
            <strong>{toPlural(sum(counts.slice(...span)), 'event')}</strong>{' '}
            {hovered || from || to ? (
              <span>{toRangeName(toMs(span[0]), toMs(span[1]))}</span>
            ) : (
              `in ${toDuration(toMs(span[1]) - toMs(0))}`
            )}
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
      <div class="bars-place">
        {histogram && (
          <Bars
            key={histogram.stepMs}
            parts={[{ counts, colour: '--accent' }]}
            toLabel={edge => toDateTime(toMs(edge))}
            onHover={setHovered}
            onChoose={([first, end]) => go(toExactTime(toMs(first)), toExactTime(toMs(end)))}
          />
        )}
      </div>
      <Segmented
        label="Time range"
        all={Object.keys(TIME_RANGES)}
        chosen={from}
        toText={name => name.replace(/\D/, ' $&')}
        onChoose={name => go(from === name ? undefined : name, undefined)}
      />
      {histogram && (
        <IconMenu id="counts" icon="table" label="Show as table">
          {histogram.completeSince !== null && (
            <p class="note">
              complete since {toDateTime(Date.parse(histogram.completeSince))}, partial before
            </p>
          )}
          <CountsTable
            label="Events over time, as a table"
            columns={[{ name: 'Events', counts }]}
            toName={bar => toRangeName(toMs(bar), toMs(bar + 1))}
          />
        </IconMenu>
      )}
    </section>
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
