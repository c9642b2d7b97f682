import { expect, test } from 'bun:test'
import { stack, toTicks } from '../../../../src/dashboard/app/charts/bars.tsx'

test('parts of a bar are stacked, and keep their share on a square-root scale', () => {
  const series = [
    [1, 0, 25],
    [3, 0, 75],
  ]
  expect(stack(series, Math.sqrt)).toEqual([
    [0.5, 0, 2.5],
    [2, 0, 10],
  ])
  expect(stack(series, Number).at(-1)).toEqual([4, 0, 100])
  expect(stack([], Math.sqrt)).toEqual([])
})

test('an axis has round counts at the bottom, the middle and the top, which no bar passes', () => {
  expect(toTicks(1)).toEqual([0, 1])
  expect(toTicks(3)).toEqual([0, 2, 4])
  expect(toTicks(81)).toEqual([0, 50, 100])
  expect(toTicks(1_000)).toEqual([0, 500, 1_000])
})
