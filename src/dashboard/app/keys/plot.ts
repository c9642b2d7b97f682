import uPlot from 'uplot'
import type { Hour } from './hours.ts'

const HEIGHT = 180
const FONT_PX = 12
const HOURS_BETWEEN_LABELS = [1, 3, 6, 12]

/** Draws a bar chart in the theme's colours. Returns a function that removes the chart. */
export function plot(
  place: HTMLElement,
  hours: readonly Hour[],
  toLabel: (atMs: number) => string,
  onHover: (hour: number | undefined) => void,
): () => void {
  const numbers = new Intl.NumberFormat(undefined, { notation: 'compact' })
  const font = `${FONT_PX}px ${getComputedStyle(place).fontFamily}`
  const quiet = () => toColour(place, '--quiet')
  const line = () => toColour(place, '--line')
  const chart = new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: [-0.5, hours.length - 0.5] },
        y: { range: (_, __, most) => [0, Math.max(most, 1)] },
      },
      series: [
        {},
        {
          stroke: () => toColour(place, '--accent'),
          fill: () => toColour(place, '--accent'),
          paths: uPlot.paths.bars!({ size: [0.7, 40], radius: 0.2 }),
          points: { show: false },
        },
      ],
      axes: [
        {
          font,
          size: 28,
          stroke: quiet,
          grid: { show: false },
          ticks: { show: false },
          incrs: HOURS_BETWEEN_LABELS,
          space: 70,
          values: (_, places) => places.map(at => toLabel(hours[at]?.atMs ?? NaN)),
        },
        {
          font,
          size: 44,
          stroke: quiet,
          grid: { stroke: line, width: 1 },
          ticks: { show: false },
          incrs: [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap(tens =>
            [1, 2, 5].map(one => one * 10 ** tens),
          ),
          values: (_, places) => places.map(count => numbers.format(count)),
        },
      ],
      hooks: { setCursor: [({ cursor }) => onHover(cursor.idx ?? undefined)] },
    },
    [hours.map((_, at) => at), hours.map(({ requests }) => requests)],
    place,
  )

  const redraw = () => chart.redraw()
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const resized = new ResizeObserver(() =>
    chart.setSize({ width: place.clientWidth, height: HEIGHT }),
  )
  const themed = new MutationObserver(redraw)
  dark.addEventListener('change', redraw)
  resized.observe(place)
  themed.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  return () => {
    dark.removeEventListener('change', redraw)
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
