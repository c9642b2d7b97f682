import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { ErrorBoundary, useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import type { Histogram } from '../../../log/events/search-schema.ts'
import { toDateTime, toRangeName } from '../time.ts'
import { Icon } from '../components/icon.tsx'
import { Popover } from '../components/popover.tsx'
import { lazyPages } from '../lazy-page.tsx'
import type { BarRange } from '../charts/bars.tsx'
import { TIME_RANGES, toSearchPath, toQuery, type Search } from './search.ts'
import { toPlural } from '../plural.ts'
import { QuietButton } from '../components/quiet-button.tsx'
import { useQuery, type Query } from '../components/query.tsx'
import { request } from '../request.ts'

// The rows come first.
const chart = lazyPages(
  () => import('../charts/bars.tsx'),
  () => null,
)
const Bars = chart(all => all.Bars)
const CountsTable = chart(all => all.CountsTable)

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
            {failure.message} <QuietButton onClick={() => void refetch()}>Retry</QuietButton>
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
      <div class="bars-place">
        <ErrorBoundary>
          {histogram && (
            <Bars
              key={histogram.stepMs}
              parts={[{ counts, colour: '--accent' }]}
              toLabel={edge => toDateTime(toMs(edge))}
              onHover={setHovered}
              onChoose={([first, end]) => go(toMoment(toMs(first)), toMoment(toMs(end)))}
            />
          )}
        </ErrorBoundary>
      </div>
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
      {histogram && (
        <Table completeSince={histogram.completeSince}>
          <CountsTable
            label="Events over time, as a table"
            columns={[{ name: 'Events', counts }]}
            toName={bar => toRangeName(toMs(bar), toMs(bar + 1))}
          />
        </Table>
      )}
    </section>
  )
}

interface TableOptions {
  completeSince: string | null
  children: ComponentChildren
}

/** The place of the same counts as a table, which is drawn when it opens. */
function Table({ completeSince, children }: TableOptions) {
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
      <Popover id="counts" class="menu menu-end counts">
        {completeSince !== null && (
          <p class="note">complete since {toDateTime(Date.parse(completeSince))}, partial before</p>
        )}
        {children}
      </Popover>
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

/** How long the bars may lag behind the rows. */
const REFRESH_MS = 10_000
/** A chart that ends now moves by one bar. */
const MIN_EVERY_MS = 60_000

/** Counts the matches of a search over time, again when new events arrive. */
function useHistogram(
  project: string,
  search: Search,
  newestSeq: ReadonlySignal<number | undefined>,
): Query<Histogram> {
  const { channelId, text, from, to } = search
  return useQuery(
    JSON.stringify([project, channelId, text, from, to]),
    () =>
      request('GET /api/projects/:projectId/histogram', {
        projectId: project,
        ...toQuery(search, Date.now()),
      }),
    {
      when: newestSeq,
      pauseMs: REFRESH_MS,
      everyMs: ({ stepMs }) => (to === undefined ? Math.max(stepMs, MIN_EVERY_MS) : undefined),
    },
  )
}
