import { useState } from 'preact/hooks'
import { Bars, CountsTable, type BarRange } from '../charts/bars.tsx'
import { toHoursStart, toSince } from '../time-texts.ts'
import { toPlural } from '../locale.ts'
import { toClockTime, toRangeName } from '../time.ts'

/** The requests of a key per hour, as a chart and a table. The last count is of this hour. */
export function RequestsChart({ counts }: { counts: readonly number[] }) {
  const [hovered, setHovered] = useState<BarRange>()
  const toAt = (bar: number) => toHoursStart(counts.length - bar)
  const toName = (bar: number) => toRangeName(toAt(bar), toAt(bar + 1))
  const sum = counts.reduce((total, count) => total + count, 0)
  const most = Math.max(...counts)
  const text = `${toPlural(sum, 'request')} ${toSince(counts.length)}`
  const peak = `${most.toLocaleString()} at ${toClockTime(toAt(counts.indexOf(most)))}`
  return (
    <div class="item-expanded">
      <p class="item-details">
        <strong>{toPlural(hovered ? (counts[hovered[0]] ?? 0) : sum, 'request')}</strong>{' '}
        {hovered ? toName(hovered[0]) : toSince(counts.length)}
      </p>
      {sum > 0 && (
        <>
          <Bars
            parts={[{ counts, colour: '--accent' }]}
            label={`${text}, with a peak of ${peak}`}
            toLabel={edge => toClockTime(toAt(edge))}
            labelSteps={[1, 3, 6, 12]}
            onHover={setHovered}
          />
          <details class="counts">
            <summary>Show as table</summary>
            <CountsTable
              label="Requests per hour"
              columns={[{ name: 'Requests', counts }]}
              toName={toName}
            />
          </details>
        </>
      )}
    </div>
  )
}
