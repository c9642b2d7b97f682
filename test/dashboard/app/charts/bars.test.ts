import { expect, test } from 'bun:test'
import { stack, toTicks } from '../../../../src/dashboard/app/charts/bars.tsx'

test('parts of a bar are stacked, and keep their share on a square-root scale', () => {
  const series = [
    [1, 0, 25],
    [3, 0, 75],
  ]
  expect(stack(series)).toEqual([
    [0.5, 0, 2.5],
    [2, 0, 10],
  ])
  expect(stack([])).toEqual([])
})

test('an axis has round counts at the bottom, the middle and the top, which no bar passes', () => {
  expect(toTicks(1)).toEqual([0, 1])
  expect(toTicks(Math.sqrt(1_000))).toEqual([0, 200, 1_000])
  expect(toTicks(Math.sqrt(3))).toEqual([0, 1, 5])
})
