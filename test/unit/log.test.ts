import { expect, test } from 'bun:test'
import { limitLines } from '../../src/log.ts'
import { until } from '../support/until.ts'

test('a reason has its first line at once, and one line with the count of all', async () => {
  const lines: string[] = []
  const warn = limitLines((reason, count, id) => lines.push(`${reason} ${count} ${id}`), 20)
  for (let n = 1; n <= 1_000; n++) warn('disk full', `r${n}`)
  warn('too slow', 'r1001')
  expect(lines).toEqual(['disk full 1 r1', 'too slow 1 r1001'])
  await until(() => lines.length === 3)
  expect(lines[2]).toBe('disk full 1000 r1')
  warn('disk full', 'r1002')
  expect(lines[3]).toBe('disk full 1 r1002')
})

test('invented reasons do not make lines without end', () => {
  const lines: string[] = []
  const warn = limitLines(reason => lines.push(reason), 60_000)
  for (let n = 0; n < 1_000; n++) warn(`reason ${n}`, 'r')
  expect(lines).toHaveLength(101)
  expect(lines.at(-1)).toBe('several reasons')
})
