import { expect, test } from 'bun:test'
import { plot, type Panel, type Point } from './plot.ts'

const PANEL: Panel = {
  title: 'Delay',
  unit: 'ms',
  x: 'linear',
  y: 'linear',
  xLabel: 'minutes',
  series: [],
}

function numbersOf(svg: string, attribute: string): number[] {
  return [...svg.matchAll(new RegExp(` ${attribute}="([^"]+)"`, 'g'))].map(match =>
    Number(match[1]),
  )
}

function polyline(svg: string): number[][] {
  const points = /<polyline[^>]* points="([^"]+)"/.exec(svg)?.[1] ?? ''
  return points.split(' ').map(point => point.split(',').map(Number))
}

test('labels are escaped', () => {
  const series = [{ name: 'a & <b>', points: [[0, 1]] as Point[] }]
  const svg = plot({ title: '<script>', panels: [{ ...PANEL, series }] })
  expect(svg).toContain('&lt;script&gt;')
  expect(svg).toContain('a &amp; &lt;b&gt;')
  expect(svg).not.toContain('<script')
})

test('long curves are thinned out, keep their spikes, and stay under 12 KB', () => {
  const points = Array.from({ length: 20_000 }, (_, nth): Point => [nth, nth === 12_345 ? 90 : 10])
  const panels = Array.from({ length: 2 }, () => ({
    ...PANEL,
    series: ['a', 'b'].map(name => ({ name, points })),
  }))
  const svg = plot({ title: 'Soak', panels })
  expect(svg.length).toBeLessThan(12_000)
  const heights = polyline(svg).map(([, y]) => y ?? NaN)
  expect(heights.length).toBeLessThan(200)
  expect(Math.max(...heights) - Math.min(...heights)).toBeGreaterThan(100)
})

test('decades are equally far apart on logarithmic axes, and 0 is left out', () => {
  const points: Point[] = [
    [0, 5],
    [1, 10],
    [10, 100],
    [100, 1_000],
  ]
  const svg = plot({
    title: 'Cost',
    panels: [{ ...PANEL, x: 'log', y: 'log', series: [{ name: '', points }] }],
  })
  const [first, second, third, ...rest] = polyline(svg)
  expect(rest).toEqual([])
  for (const axis of [0, 1])
    expect(second![axis]! - first![axis]!).toBeCloseTo(third![axis]! - second![axis]!, 0)
})

test('labels of lines that end in one place are spread, inside the picture', () => {
  const series = ['a', 'b', 'c', 'd'].map(name => ({
    name,
    points: [
      [0, 50],
      [1, 0],
    ] as Point[],
  }))
  const svg = plot({ title: 'Cost', panels: [{ ...PANEL, series }] })
  const heights = [...svg.matchAll(/<text class="[a-d]" x="[^"]+" y="([^"]+)"/g)]
    .map(match => Number(match[1]))
    .sort((a, b) => a - b)
  expect(heights).toHaveLength(4)
  for (const [nth, height] of heights.slice(1).entries())
    expect(height - heights[nth]!).toBeGreaterThanOrEqual(12)
  expect(heights.at(-1)).toBeLessThan(numbersOf(svg, 'height')[0]!)
})

test('a panel without figures is drawn empty', () => {
  const svg = plot({ title: 'Cost', panels: [{ ...PANEL, series: [{ name: 'a', points: [] }] }] })
  expect(svg).not.toMatch(/NaN|Infinity|undefined/)
})
