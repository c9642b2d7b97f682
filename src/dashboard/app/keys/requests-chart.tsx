import { useEffect, useRef, useState } from 'preact/hooks'
import { toClockTime, toRangeName } from '../time.ts'
import { summarize, toHours, type Hour } from './hours.ts'

const HOUR_MS = 3_600_000

/** How often a key was used in each of the last 24 hours: drawn, said, and as a table. */
export function RequestsChart({ counts }: { counts: readonly number[] }) {
  const place = useRef<HTMLDivElement>(null)
  const [looked, setLooked] = useState<number>()
  const [isPlain, setPlain] = useState(false)
  const [hours] = useState(() => toHours(counts, Date.now()))
  const { sum, busiest } = summarize(hours)
  const hour = looked === undefined ? undefined : hours[looked]

  useEffect(() => {
    let stop = () => {}
    let isOver = false
    // The chart is as large as a page of ours and is loaded only where it is looked at.
    import('./plot.ts').then(
      ({ plot }) => {
        if (!isOver && place.current) stop = plot(place.current, hours, toClockTime, setLooked)
      },
      () => setPlain(true),
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
      {sum > 0 && !isPlain && (
        <div ref={place} class="chart" role="img" aria-label={describe(sum, busiest)} />
      )}
      {sum > 0 && (
        <details class="counts" open={isPlain}>
          <summary>As a table</summary>
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
  const most = busiest
    ? `, most of them from ${toClockTime(busiest.atMs)}: ${busiest.requests.toLocaleString()}`
    : ''
  return `${toRequests(sum)} in the last 24 hours${most}`
}

function toRequests(count: number): string {
  return `${count.toLocaleString()} ${count === 1 ? 'request' : 'requests'}`
}
