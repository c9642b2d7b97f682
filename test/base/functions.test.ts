import { expect, test } from 'bun:test'
import { setNewest } from '../../src/base/functions.ts'

test('a bounded map drops its oldest entry for a new key', () => {
  const map = new Map([['a', 1]])
  setNewest(map, 'b', 2, 2)
  setNewest(map, 'c', 3, 2)
  expect([...map]).toEqual([
    ['b', 2],
    ['c', 3],
  ])
})

test('a bounded map keeps the other entries when a known key gets a value', () => {
  const map = new Map([
    ['a', 1],
    ['b', 2],
  ])
  setNewest(map, 'a', 3, 2)
  expect([...map]).toEqual([
    ['b', 2],
    ['a', 3],
  ])
})
