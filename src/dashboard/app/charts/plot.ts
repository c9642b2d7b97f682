import uPlot from 'uplot'
import { toEnglish } from '../locale.ts'
import { stack, toTicks } from './scale.ts'

const HEIGHT = 180
const FONT_PX = 12

/** One of the stacked parts of each bar. */
interface PlotSeries {
  values: readonly number[]
  /** The CSS variable of its colour. */
  colour: string
}

export interface Plot {
  /** From the bottom of the bars to their top. */
  series: readonly PlotSeries[]
  /** The label below a bar. */
  toLabel(bar: number): string
  /** After how many bars there may be a label. */
  labelSteps: readonly number[]
  /** True if a bar is as high as the square root of its count, so that a burst flattens nothing. */
  isRoot: boolean
  onHover(bar: number | undefined): void
  /** Called after a drag, with the bars from `first` up to, but not including, `end`. */
  onChoose?: ((first: number, end: number) => void) | undefined
}

/** Draws a bar chart in the theme's colours. Returns a function that removes the chart. */
export function plot(place: HTMLElement, options: Plot): () => void {
  const { series, toLabel, labelSteps, isRoot, onHover, onChoose } = options
  const numbers = new Intl.NumberFormat(toEnglish(), { notation: 'compact' })
  const font = `${FONT_PX}px ${getComputedStyle(place).fontFamily}`
  const quiet = () => toColour(place, '--quiet')
  const line = () => toColour(place, '--line')
  const heights = stack(
    series.map(({ values }) => values),
    isRoot,
  )
  const bars = heights[0]?.length ?? 0
  const chart: uPlot = new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: onChoose !== undefined, y: false, setScale: false },
      },
      scales: {
        x: { time: false, range: [-0.5, bars - 0.5] },
        y: { range: (_, __, most) => [0, Math.max(most, 1)] },
      },
      series: [
        {},
        // The highest stack first, because the others are drawn over it.
        ...series
          .map(({ colour }) => ({
            stroke: () => toColour(place, colour),
            fill: () => toColour(place, colour),
            paths: uPlot.paths.bars!({ size: [0.7, 40], radius: 0 }),
            points: { show: false },
          }))
          .toReversed(),
      ],
      axes: [
        {
          font,
          size: 28,
          stroke: quiet,
          grid: { show: false },
          ticks: { show: false },
          incrs: [...labelSteps],
          space: 70,
          values: (_, places) => places.map(toLabel),
        },
        {
          font,
          size: 44,
          stroke: quiet,
          grid: { stroke: line, width: 1 },
          ticks: { show: false },
          splits: (_, __, ___, most) =>
            toTicks(most, isRoot).map(count => (isRoot ? Math.sqrt(count) : count)),
          values: (_, places) =>
            places.map(place => numbers.format(isRoot ? Math.round(place ** 2) : place)),
        },
      ],
      hooks: {
        setCursor: [({ cursor }) => onHover(cursor.idx ?? undefined)],
        setSelect: [
          ({ select: { left, width } }) => {
            if (width === 0) return
            chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
            const toBar = (x: number) => Math.round(chart.posToVal(x, 'x'))
            const first = Math.max(toBar(left), 0)
            onChoose?.(first, Math.min(toBar(left + width), bars - 1) + 1)
          },
        ],
      },
    },
    [Array.from({ length: bars }, (_, at) => at), ...heights.toReversed()],
    place,
  )

  const redraw = () => chart.redraw()
  const modes = ['(prefers-color-scheme: dark)', '(forced-colors: active)'].map(one =>
    matchMedia(one),
  )
  const resized = new ResizeObserver(() =>
    chart.setSize({ width: place.clientWidth, height: HEIGHT }),
  )
  const themed = new MutationObserver(redraw)
  for (const mode of modes) mode.addEventListener('change', redraw)
  resized.observe(place)
  themed.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  return () => {
    for (const mode of modes) mode.removeEventListener('change', redraw)
    resized.disconnect()
    themed.disconnect()
    chart.destroy()
  }
}

/** Resolves a colour token, because a canvas supports neither variables nor light-dark(). */
function toColour(place: HTMLElement, token: string): string {
  place.style.color = `var(${token})`
  const { color } = getComputedStyle(place)
  place.style.color = ''
  return color
}
