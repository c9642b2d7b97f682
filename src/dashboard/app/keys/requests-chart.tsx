import { useState } from 'preact/hooks'
import { Bars, CountsTable, type BarRange } from '../charts/bars.tsx'
import { toPlural } from '../plural.ts'
import { toClockTime, toRangeName } from '../time.ts'
import { summarize, toHours, type Hour } from './hours.ts'

const HOUR_MS = 3_600_000

/** The requests of a key per hour in the last 24 hours, as a chart and a table. */
export function RequestsChart({ counts }: { counts: readonly number[] }) {
  const [hovered, setHovered] = useState<BarRange>()
  const hours = toHours(counts, Date.now())
  const { sum, busiest } = summarize(hours)
  const hour = hovered && hours[hovered[0]]
  const toName = ({ atMs }: Hour) => toRangeName(atMs, atMs + HOUR_MS)
  return (
    <>
      <p class="item-details">
        <strong>{toRequests(hour?.requests ?? sum)}</strong>{' '}
        {hour ? toName(hour) : 'in the last 24 hours'}
      </p>
      {sum > 0 && (
        <>
          <Bars
            parts={[{ counts, colour: '--accent' }]}
            label={describe(sum, busiest)}
            toLabel={bar => toClockTime(hours[bar]?.atMs ?? NaN)}
            labelSteps={[1, 3, 6, 12]}
            isLinear
            onHover={setHovered}
          />
          <details class="counts">
            <summary>Show as table</summary>
            <CountsTable
              label="Requests per hour"
              columns={[{ name: 'Requests', counts }]}
              toName={bar => toName(hours[bar]!)}
            />
          </details>
        </>
      )}
    </>
  )
}

function describe(sum: number, busiest: Hour | undefined): string {
  const requests = toRequests(sum)
  return busiest
    ? `${requests} in the last 24 hours, with a peak of ${busiest.requests.toLocaleString()} at ${toClockTime(busiest.atMs)}`
    : `${requests} in the last 24 hours`
}

function toRequests(count: number): string {
  return toPlural(count, 'request')
}
