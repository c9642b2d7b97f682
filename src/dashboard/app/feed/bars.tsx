import { useRef, useState } from 'preact/hooks'
import { toEnglish } from '../locale.ts'

/** A range of bars: from bar `first` up to, but not including, bar `end`. */
export type BarRange = readonly [first: number, end: number]

interface BarsOptions {
  counts: readonly number[]
  /** The time at the edge before bar `edge`. */
  toLabel(edge: number): string
  /** Called with the bars under the pointer or in the selection. */
  onHover(span: BarRange | undefined): void
  onChoose(span: BarRange): void
}

const MIN_HEIGHT = 4

/**
 * Bars as high as the square root of their count, with a range selection: by dragging, or by
 * keyboard with two sliders and Enter.
 */
export function Bars({ counts, toLabel, onHover, onChoose }: BarsOptions) {
  const box = useRef<HTMLDivElement>(null)
  const begun = useRef<number>(undefined)
  const [span, setSpan] = useState<BarRange>()
  const [first, end] = span ?? [0, counts.length]
  const tallest = Math.max(1, ...counts)

  function choose(next: BarRange | undefined) {
    setSpan(next)
    onHover(next)
  }

  function toBar({ clientX }: PointerEvent): number {
    const { left, width } = box.current?.getBoundingClientRect() ?? { left: 0, width: 1 }
    const at = Math.floor(((clientX - left) / width) * counts.length)
    return Math.min(Math.max(at, 0), counts.length - 1)
  }

  function press(event: PointerEvent) {
    if (event.button !== 0) return
    box.current?.setPointerCapture(event.pointerId)
    begun.current = toBar(event)
    choose([begun.current, begun.current + 1])
  }

  function move(event: PointerEvent) {
    const bar = toBar(event)
    const from = begun.current
    if (from === undefined) onHover([bar, bar + 1])
    else choose([Math.min(from, bar), Math.max(from, bar) + 1])
  }

  function release() {
    if (begun.current === undefined) return
    begun.current = undefined
    if (span) apply(span)
  }

  /** Discards the selection, which the bars of the chosen range do not have. */
  function apply(chosen: BarRange) {
    choose(undefined)
    onChoose(chosen)
  }

  function cancel() {
    begun.current = undefined
    choose(undefined)
  }

  function onKey(event: KeyboardEvent) {
    if (event.key === 'Enter' && span) apply(span)
    else if (event.key === 'Escape' && span) choose(undefined)
    else return
    event.preventDefault()
  }

  return (
    <div
      ref={box}
      class="bars"
      onPointerDown={press}
      onPointerMove={move}
      onPointerUp={release}
      onPointerCancel={cancel}
      onPointerLeave={() => begun.current === undefined && onHover(span)}
      onKeyDown={onKey}
    >
      <svg viewBox={`0 0 ${counts.length} 100`} preserveAspectRatio="none" aria-hidden="true">
        {span && <rect class="bars-chosen" x={first} width={end - first} height="100" />}
        <path d={toPath(counts, tallest)} />
      </svg>
      <p class="bars-axis" aria-hidden="true">
        {[toShortNumber(tallest), 0, toLabel(0), toLabel(counts.length)].map((text, at) => (
          <span key={at}>{text}</span>
        ))}
      </p>
      <input
        type="range"
        aria-label="From"
        aria-describedby="bars-help"
        min={0}
        max={counts.length - 1}
        value={first}
        aria-valuetext={toLabel(first)}
        onInput={({ currentTarget: { valueAsNumber } }) =>
          choose([valueAsNumber, Math.max(end, valueAsNumber + 1)])
        }
      />
      <input
        type="range"
        aria-label="To"
        aria-describedby="bars-help"
        min={1}
        max={counts.length}
        value={end}
        aria-valuetext={toLabel(end)}
        onInput={({ currentTarget: { valueAsNumber } }) =>
          choose([Math.min(first, valueAsNumber - 1), valueAsNumber])
        }
      />
      <p id="bars-help" class="bars-help">
        Arrow keys move a handle, Enter applies the range
      </p>
    </div>
  )
}

/** A count such as 1.2K. */
function toShortNumber(count: number): string {
  return count.toLocaleString(toEnglish(), { notation: 'compact' })
}

function toPath(counts: readonly number[], tallest: number): string {
  return counts
    .map((count, at) => {
      if (count === 0) return ''
      const height = MIN_HEIGHT + Math.sqrt(count / tallest) * (100 - MIN_HEIGHT)
      return `M${at + 0.14} 100V${(100 - height).toFixed(1)}H${at + 0.86}V100Z`
    })
    .join('')
}
