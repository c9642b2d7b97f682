import { expect, test } from 'bun:test'
import { createRequestMemory } from '../../src/http/request-memory.ts'

const KIB = 1024
const LARGEST = 256 * KIB

/** Reserves memory until it is refused, at most `count` times. Returns the reservations. */
function fill(memory: ReturnType<typeof createRequestMemory>, share: string, count = 1e6) {
  const held: ReturnType<typeof memory.reserve>[] = []
  try {
    while (held.length < count) held.push(memory.reserve(share, LARGEST))
  } catch (error) {
    expect(error).toMatchObject({ code: 'unavailable' })
  }
  return held
}

test('contract §6 the largest requests of ten default keys are in progress at once', () => {
  const memory = createRequestMemory()
  for (let n = 0; n < 10; n++) expect(fill(memory, `share ${n}`, 100)).toHaveLength(100)
})

test('contract §6 a share is refused for what it has itself, and not for what others have', () => {
  const memory = createRequestMemory()
  const greedy = Array.from({ length: 4 }, (_, n) => fill(memory, `greedy ${n}`))
  expect(greedy.map(held => held.length)).toEqual([252, 252, 252, 252])
  expect(fill(memory, 'late').length).toBeGreaterThan(190)
  for (let n = 0; n < 100; n++) expect(fill(memory, `later ${n}`).length).toBeGreaterThan(8)
  expect(memory.bytes).toBeLessThan(1100 * KIB * KIB)
})

test.each([NaN, Infinity, -Infinity, -1, 1e300])(
  'a size of %p is the largest one, and leaves nothing behind',
  size => {
    const memory = createRequestMemory()
    expect(() => memory.reserve('a', size)).toThrow()
    const { resize, release } = memory.reserve('a', 1)
    resize(size)
    expect(fill(memory, 'a')).toEqual([])
    release()
    expect(memory.bytes).toBe(0)
  },
)

test('the size of a body is corrected when it has arrived, and nothing is left in the end', () => {
  const memory = createRequestMemory()
  const held = fill(memory, 'a')
  for (const { resize } of held) resize(10)
  expect(fill(memory, 'a').length).toBeGreaterThan(200)
  const again = createRequestMemory()
  const reservations = fill(again, 'a', 10)
  for (const { release } of [...reservations, ...reservations]) release()
  expect(again.bytes).toBe(0)
})
