import { useEffect, useRef, useState } from 'preact/hooks'
import { toPlural } from '../plural.ts'
import { toClockTime, toRangeName } from '../time.ts'
import { summarize, toHours, type Hour } from './hours.ts'

const HOUR_MS = 3_600_000

/** The requests of a key per hour in the last 24 hours, as a chart and a table. */
export function RequestsChart({ counts }: { counts: readonly number[] }) {
  const place = useRef<HTMLDivElement>(null)
  const [hovered, setHovered] = useState<number>()
  const [hasNoChart, setNoChart] = useState(false)
  const [hours] = useState(() => toHours(counts, Date.now()))
  const { sum, busiest } = summarize(hours)
  const hour = hovered === undefined ? undefined : hours[hovered]

  useEffect(() => {
    let stop = () => {}
    let isOver = false
    // uPlot is as large as a whole page, so it is loaded on demand.
    import('../charts/plot.ts').then(
      ({ plot }) => {
        if (isOver || !place.current) return
        stop = plot(place.current, {
          series: [{ values: hours.map(({ requests }) => requests), colour: '--accent' }],
          toLabel: bar => toClockTime(hours[bar]?.atMs ?? NaN),
          labelSteps: [1, 3, 6, 12],
          isRoot: false,
          onHover: setHovered,
        })
      },
      () => setNoChart(true),
    )
    return () => {
      isOver = true
      stop()
    }
  }, [])

  return (
    <>
      <p class="item-details">
        <strong>{toRequests(hour?.requests ?? sum)}</strong>{' '}
        {hour ? toRangeName(hour.atMs, hour.atMs + HOUR_MS) : 'in the last 24 hours'}
      </p>
      {sum > 0 && !hasNoChart && (
        <div ref={place} class="chart" role="img" aria-label={describe(sum, busiest)} />
      )}
      {sum > 0 && (
        <details class="counts" open={hasNoChart}>
          <summary>Show as table</summary>
          <div class="counts-table" tabIndex={0} role="group" aria-label="Requests per hour">
            <table>
              <thead>
                <tr>
                  <th scope="col">Hour</th>
                  <th scope="col">Requests</th>
                </tr>
              </thead>
              <tbody>
                {hours.map(({ atMs, requests }) =>
                  requests === 0 ? null : (
                    <tr key={atMs}>
                      <th scope="row">{toRangeName(atMs, atMs + HOUR_MS)}</th>
                      <td>{requests.toLocaleString()}</td>
                    </tr>
                  ),
                )}
              </tbody>
            </table>
          </div>
        </details>
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
