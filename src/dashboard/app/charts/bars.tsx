import type { ComponentChild } from 'preact'
import { useId, useRef, useState } from 'preact/hooks'
import { toEnglish } from '../locale.ts'

/** A range of bars: from bar `first` up to, but not including, bar `end`. */
export type BarRange = readonly [first: number, end: number]

interface BarsOptions {
  /** The stacked parts of each bar, from the bottom to the top. */
  parts: readonly { counts: readonly number[]; colour: string }[]
  /** The time at the edge before bar `edge`. */
  toLabel(edge: number): string
  /** Makes the chart tall, with a label below the bars at one of these distances. */
  labelSteps?: readonly number[]
  /** The chart in words. */
  label?: string
  /** Called with the bars under the pointer or in the selection. */
  onHover(span: BarRange | undefined): void
  /** Lets the reader select a bar, or a range by two sliders. Enter applies what the keys chose. */
  onChoose?(span: BarRange): void
}

const MIN_HEIGHT = 4
const MAX_LABELS = 6

/**
 * A chart of bars. A low one has the square roots of the counts as heights, so that a burst hides
 * less, and a tall one the counts themselves.
 */
export function Bars(options: BarsOptions) {
  const { parts, toLabel, labelSteps, label, onHover, onChoose } = options
  const help = useId()
  const box = useRef<HTMLDivElement>(null)
  const chosen = useRef<BarRange>(undefined)
  const [span, setSpan] = useState<BarRange>()
  const [hovered, setHovered] = useState<BarRange>()
  const toHeight = labelSteps ? Number : Math.sqrt
  const ends = stack(
    parts.map(({ counts }) => counts),
    toHeight,
  )
  const count = ends[0]?.length ?? 0
  const [first, end] = span ?? [0, count]
  const most = Math.max(1, ...(ends.at(-1) ?? []))
  const ticks = labelSteps ? toTicks(most) : [0, Math.round(most ** 2)]
  const tallest = toHeight(ticks.at(-1) ?? 1)
  const toPercent = (height: number) =>
    height > 0 ? MIN_HEIGHT + (height / tallest) * (100 - MIN_HEIGHT) : 0
  const marked = span ?? (labelSteps && hovered)
  const step = labelSteps?.find(step => count / step <= MAX_LABELS) ?? count
  const edges = labelSteps
    ? Array.from({ length: Math.ceil(count / step) }, (_, at) => at * step)
    : [0, count]

  function point(at: BarRange | undefined) {
    setHovered(at)
    onHover(at)
  }

  function choose(next: BarRange | undefined) {
    chosen.current = next
    setSpan(next)
    point(next)
  }

  function toBar({ clientX }: MouseEvent): number {
    const { left, width } = box.current?.getBoundingClientRect() ?? { left: 0, width: 1 }
    const at = Math.floor(((clientX - left) / width) * count)
    return Math.min(Math.max(at, 0), count - 1)
  }

  /** Discards the selection, which the bars of the chosen range do not have. */
  function apply(range = chosen.current) {
    if (!range) return
    choose(undefined)
    onChoose?.(range)
  }

  function onKey(event: KeyboardEvent) {
    if (event.key === 'Enter' && span) apply()
    else if (event.key === 'Escape' && span) choose(undefined)
    else return
    event.preventDefault()
  }

  return (
    <div
      ref={box}
      class={labelSteps ? 'bars bars-tall' : 'bars'}
      role={label === undefined ? undefined : onChoose ? 'group' : 'img'}
      aria-label={label}
      onPointerMove={event => !chosen.current && point([toBar(event), toBar(event) + 1])}
      onPointerLeave={() => point(span)}
      onPointerUp={() => apply()}
      onKeyDown={onKey}
    >
      <svg
        viewBox={`0 0 ${count} 100`}
        preserveAspectRatio="none"
        aria-hidden="true"
        onClick={event => apply([toBar(event), toBar(event) + 1])}
      >
        {marked && (
          <rect class="bars-chosen" x={marked[0]} width={marked[1] - marked[0]} height="100" />
        )}
        {parts.map(({ colour }, part) => (
          <path
            key={part}
            fill={`var(${colour})`}
            d={toPath(ends[part] ?? [], ends[part - 1] ?? [], toPercent)}
          />
        ))}
      </svg>
      <p class="bars-axis" aria-hidden="true">
        {ticks.toReversed().map(tick => (
          <span key={`y${tick}`} class="y" style={toPlace(toPercent(toHeight(tick)) / 100)}>
            {tick.toLocaleString(toEnglish(), { notation: 'compact' })}
          </span>
        ))}
        {edges.map(edge => (
          <span key={`x${edge}`} class="x" style={toPlace((edge + 0.5) / count)}>
            {toLabel(edge)}
          </span>
        ))}
      </p>
      {onChoose && (
        <>
          <input
            type="range"
            aria-label="From"
            aria-describedby={help}
            min={0}
            max={count - 1}
            value={first}
            aria-valuetext={toLabel(first)}
            onInput={({ currentTarget: { valueAsNumber } }) =>
              choose([valueAsNumber, Math.max(end, valueAsNumber + 1)])
            }
          />
          <input
            type="range"
            aria-label="To"
            aria-describedby={help}
            min={1}
            max={count}
            value={end}
            aria-valuetext={toLabel(end)}
            onInput={({ currentTarget: { valueAsNumber } }) =>
              choose([Math.min(first, valueAsNumber - 1), valueAsNumber])
            }
          />
          <p id={help} class="bars-help">
            Arrow keys move a handle, Enter applies the range
          </p>
        </>
      )}
    </div>
  )
}

interface TableOptions {
  label: string
  /** The counts of each bar: the sums, and then their parts, if there are any. */
  columns: readonly { name: ComponentChild; counts: readonly number[] }[]
  toName(bar: number): string
}

/** The counts of a chart. Bars without events are left out. */
export function CountsTable({ label, columns, toName }: TableOptions) {
  return (
    <div class="counts-table" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {columns.map(({ name }, at) => (
              <th key={at} scope="col">
                <bdi>{name}</bdi>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {columns[0]?.counts.map((total, bar) =>
            total === 0 ? null : (
              <tr key={bar}>
                <th scope="row">{toName(bar)}</th>
                {columns.map(({ counts }, at) => (
                  <td key={at}>{(counts[bar] ?? 0).toLocaleString()}</td>
                ))}
              </tr>
            ),
          )}
        </tbody>
      </table>
    </div>
  )
}

function toPlace(at: number) {
  return { '--at': at }
}

/** The outlines of one part of all bars. */
function toPath(
  ends: readonly number[],
  starts: readonly number[],
  toPercent: (height: number) => number,
): string {
  return ends
    .map((end, at) => {
      const start = starts[at] ?? 0
      if (end === start) return ''
      const [top, bottom] = [end, start].map(height => (100 - toPercent(height)).toFixed(1))
      return `M${at + 0.14} ${bottom}V${top}H${at + 0.86}V${bottom}Z`
    })
    .join('')
}

/**
 * Returns the heights at which each part of each bar ends, from the bottom to the top. `toHeight`
 * is that of a sum, of which the parts have their share.
 */
export function stack(
  series: readonly (readonly number[])[],
  toHeight: (sum: number) => number,
): number[][] {
  const sums = (series[0] ?? []).map((_, bar) =>
    series.reduce((sum, values) => sum + (values[bar] ?? 0), 0),
  )
  const ends = sums.map(() => 0)
  return series.map(values =>
    sums.map((sum, bar) => {
      const end = (ends[bar] ?? 0) + (values[bar] ?? 0)
      ends[bar] = end
      return sum > 0 ? (toHeight(sum) * end) / sum : 0
    }),
  )
}

/** Returns round counts for the axis of bars up to `most`: zero, a half and the whole of it. */
export function toTicks(most: number): number[] {
  const unit = 10 ** Math.floor(Math.log10(most))
  const top = unit * ([1, 2, 4, 6, 8].find(one => one * unit >= most) ?? 10)
  return [0, top / 2, top].filter(Number.isInteger)
}
