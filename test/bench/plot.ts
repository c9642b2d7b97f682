/**
 * A line of a panel, its points from left to right. A logarithmic axis omits values without a
 * logarithm.
 */
interface Series {
  /** The label at the end of the line; an empty one takes no space. */
  name: string
  points: Point[]
}

export type Point = readonly [x: number, y: number]

export interface Panel {
  title: string
  /** The unit of y: `ms`, `events/s`. */
  unit: string
  x: Scale
  y: Scale
  xLabel: string
  /** At most four, as many as there are distinguishable colours. */
  series: Series[]
  /** Moments on the x-axis: a thin vertical line each. */
  marks?: number[]
}

export interface Plot {
  title: string
  panels: Panel[]
  /** Panels in a row: 2 by default. */
  columns?: number
}

type Scale = 'linear' | 'log'

interface Axis {
  ticks: number[]
  /** Returns the position of a value between the ends of the axis, 0 to 1. */
  toShare(value: number): number
}

const WIDTH = 860
const PANEL_HEIGHT = 236
const TITLE_HEIGHT = 36
const PAD = { top: 50, right: 18, bottom: 44, left: 56 }
const LETTER_WIDTH = 6.6
const LINE_HEIGHT = 15
/** Longer series are drawn without dots, and thinned out. */
const MOST_DOTS = 30
const BUCKETS = 50

const COLOURS = ['a', 'b', 'c', 'd']
// Each of the four has a contrast of 4.5 : 1 with its background, because labels use them.
const STYLE = [
  ':root{--ground:#fff;--ink:#1f2328;--quiet:#59636e;--line:#d1d9e0;--a:#0969da;--b:#bc4c00;--c:#1a7f37;--d:#8250df}',
  '@media(prefers-color-scheme:dark){:root{--ground:#0d1117;--ink:#f0f6fc;--quiet:#9198a1;--line:#30363d;--a:#58a6ff;--b:#f0883e;--c:#56d364;--d:#bc8cff}}',
  'text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:var(--quiet)}',
  'text.h{font-size:15px;font-weight:600;fill:var(--ink)}text.t{font-weight:600;fill:var(--ink)}',
  '.m{text-anchor:middle}.e{text-anchor:end}.g{stroke:var(--line)}.k{stroke:var(--quiet);stroke-dasharray:3 3}',
  'polyline{fill:none;stroke-width:2;stroke-linejoin:round}',
  ...COLOURS.map(
    name =>
      `polyline.${name}{stroke:var(--${name})}circle.${name},text.${name}{fill:var(--${name})}`,
  ),
].join('\n')

/**
 * Draws line plots as one self-contained SVG, light or dark like the system. Panels are side by
 * side, and each line has its label at its end.
 */
export function plot({ title, panels, columns: most = 2 }: Plot): string {
  const columns = Math.min(most, panels.length)
  const width = WIDTH / columns
  const height = TITLE_HEIGHT + Math.ceil(panels.length / columns) * PANEL_HEIGHT
  const places = panels.map(
    (_, nth) =>
      `translate(${(nth % columns) * width} ${TITLE_HEIGHT + Math.floor(nth / columns) * PANEL_HEIGHT})`,
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escapeText(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect width="${WIDTH}" height="${height}" rx="6" fill="var(--ground)"/>`,
    `<text class="h" x="14" y="25">${escapeText(title)}</text>`,
    ...panels.map(
      (panel, nth) => `<g transform="${places[nth]}">\n${drawPanel(panel, width)}\n</g>`,
    ),
    '</svg>\n',
  ].join('\n')
}

function drawPanel(panel: Panel, width: number): string {
  const { title, unit, xLabel, marks = [] } = panel
  const has = (scale: Scale, value: number) =>
    Number.isFinite(value) && (scale === 'linear' || value > 0)
  const series = panel.series
    .map(({ name, points }, nth) => ({
      name,
      colour: COLOURS[nth % COLOURS.length],
      points: points.filter(([x, y]) => has(panel.x, x) && has(panel.y, y)),
    }))
    .filter(({ points }) => points.length > 0)
  const points = series.flatMap(one => one.points)
  const x = toAxis(panel.x, [...points.map(([value]) => value), ...marks])
  const y = toAxis(
    panel.y,
    points.map(([, value]) => value),
    { isRounded: true },
  )
  const longest = Math.max(0, ...series.map(({ name }) => name.length))
  const right = round(width - PAD.right - longest * LETTER_WIDTH)
  const bottom = PANEL_HEIGHT - PAD.bottom
  const toX = (value: number) => round(PAD.left + x.toShare(value) * (right - PAD.left))
  const toY = (value: number) => round(bottom - y.toShare(value) * (bottom - PAD.top))

  const lines = series.map(one => {
    const places = thin(one.points).map(([x, y]) => `${toX(x)},${toY(y)}`)
    const dots = one.points.length > MOST_DOTS ? [] : places.map(place => place.split(','))
    return [
      `<polyline class="${one.colour}" points="${places.join(' ')}"/>`,
      ...dots.map(([cx, cy]) => `<circle class="${one.colour}" cx="${cx}" cy="${cy}" r="3"/>`),
    ].join('')
  })
  const heights = spread(
    series.map(one => toY(one.points.at(-1)?.[1] ?? 0) + 4),
    bottom,
  )
  return [
    `<text class="t" x="14" y="20">${escapeText(title)}</text>`,
    `<text x="14" y="37">${escapeText(unit)}</text>`,
    ...y.ticks.map(
      tick =>
        `<path class="g" d="M${PAD.left} ${toY(tick)}H${right}"/><text class="e" x="${PAD.left - 8}" y="${toY(tick) + 4}">${toLabel(tick)}</text>`,
    ),
    ...marks.map(mark => `<path class="k" d="M${toX(mark)} ${PAD.top}V${bottom}"/>`),
    ...x.ticks.map(
      tick => `<text class="m" x="${toX(tick)}" y="${bottom + 17}">${toLabel(tick)}</text>`,
    ),
    `<text class="m" x="${round((PAD.left + right) / 2)}" y="${bottom + 34}">${escapeText(xLabel)}</text>`,
    ...lines,
    ...series.map(
      ({ name, colour }, nth) =>
        `<text class="${colour}" x="${right + 8}" y="${heights[nth]}">${escapeText(name)}</text>`,
    ),
  ].join('\n')
}

/** Returns an axis over `values`: a linear one begins at 0; a rounded one ends at a tick. */
function toAxis(scale: Scale, values: number[], { isRounded = false } = {}): Axis {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  if (values.length === 0) return { ticks: [], toShare: () => 0 }
  if (scale === 'linear') {
    const step = toStep(most / 4)
    const end = isRounded ? Math.ceil(most / step) * step || 1 : most || 1
    const ticks = Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, nth) => nth * step)
    return { ticks, toShare: value => value / end }
  }
  const decades = Math.log10(most / least)
  const steps = decades > 2 ? [1] : decades > 1 ? [1, 3] : [1, 2, 5]
  const all = Array.from({ length: 40 }, (_, nth) => nth - 15).flatMap(power =>
    steps.map(one => Number(`${one}e${power}`)),
  )
  const first = isRounded ? (all.findLast(tick => tick <= least) ?? least) : least
  const last = isRounded ? (all.find(tick => tick >= most && tick > first) ?? most) : most
  const length = Math.log10(last / first) || 1
  return {
    ticks: all.filter(tick => tick >= first && tick <= last),
    toShare: value => Math.log10(value / first) / length,
  }
}

/** Returns the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `least`. */
function toStep(least: number): number {
  if (least <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(least))
  return ([1, 2, 2.5, 5, 10].find(one => one * power >= least) ?? 10) * power
}

/** Reduces many points to the minimum and maximum of each stretch, so that no spike is lost. */
function thin(points: Point[]): Point[] {
  if (points.length <= 2 * BUCKETS) return points
  const size = points.length / BUCKETS
  return Array.from({ length: BUCKETS }, (_, nth) => {
    const bucket = points.slice(Math.floor(nth * size), Math.floor((nth + 1) * size))
    const byHeight = bucket.toSorted(([, a], [, b]) => a - b)
    const ends = byHeight.length > 1 ? [byHeight[0], byHeight.at(-1)] : byHeight
    return ends.filter(end => end !== undefined).sort(([a], [b]) => a - b)
  }).flat()
}

/** Moves labels at `heights` apart, upwards if there is no space above `bottom`. */
function spread(heights: number[], bottom: number): number[] {
  const order = heights.map((_, nth) => nth).sort((a, b) => heights[a]! - heights[b]!)
  const moved = [...heights]
  for (const [rank, nth] of order.entries()) {
    const above = order[rank - 1]
    if (above !== undefined) moved[nth] = Math.max(moved[nth]!, moved[above]! + LINE_HEIGHT)
  }
  let room = bottom + 4
  for (const nth of order.toReversed()) {
    moved[nth] = Math.min(moved[nth]!, room)
    room = moved[nth]! - LINE_HEIGHT
  }
  return moved
}

function toLabel(value: number): string {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`
  if (value >= 1e3) return `${Number((value / 1e3).toPrecision(3))}k`
  return String(Number(value.toPrecision(3)))
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
