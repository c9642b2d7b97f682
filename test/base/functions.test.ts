import { expect, test } from 'bun:test'
import { setNewest } from '../../src/base/functions.ts'

test('a bounded map drops its oldest entry for a new key, and none for a known one', () => {
  const map = new Map([['a', 1]])
  setNewest(map, 'b', 2, 2)
  setNewest(map, 'a', 3, 2)
  expect([...map].join(' ')).toBe('b,2 a,3')
  setNewest(map, 'c', 4, 2)
  expect([...map].join(' ')).toBe('a,3 c,4')
})
