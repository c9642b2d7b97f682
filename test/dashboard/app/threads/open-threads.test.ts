import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { follow, MAX_FOLLOWED } from '../../../../src/dashboard/app/threads/open-threads.ts'
import { LEVELS } from '../../../../src/log/channels/level.ts'
import { STATES } from '../../../../src/log/events/state.ts'
import { findThreadSeq, listOpenThreads } from '../../../support/fakes/threads.ts'

const change = fc.record({
  thread: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  state: fc.constantFrom(...STATES),
  level: fc.constantFrom(undefined, ...LEVELS),
})

function toLog(changes: readonly object[]): any[] {
  const log: any[] = []
  for (const one of changes) {
    const seq = log.length + 1
    const event = { ...one, seq, id: `evt_${seq}`, timestamp: new Date(seq * 60_000).toISOString() }
    log.push({ ...event, threadSeq: findThreadSeq(log, event), title: `${seq}`, icon: null })
  }
  return log
}
const list = (log: readonly any[], limit: number) =>
  listOpenThreads(log, new URL(`http://x?limit=${limit}`))

test('a page of open threads with later events is that of the server, or asks it', () => {
  const places = fc.tuple(fc.nat(30), fc.nat(30), fc.constantFrom(2, 50))
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), places, (changes, [one, other, limit]) => {
      const log = toLog(changes)
      // Some events may come that the page has already.
      const page = list(log.slice(0, Math.max(one, other)), limit)
      const followed = follow(page, log.slice(Math.min(one, other)))
      if (!followed.isCurrent) return
      const { items, nextCursor } = followed.page
      expect(nextCursor).toBe(page.nextCursor)
      expect(items).toEqual(list(log, nextCursor === null ? 50 : items.length).items)
    }),
  )
})

test('an end on a page asks the server for the thread that takes its place, if there is one', () => {
  const log = toLog(
    ['a', 'b', 'a'].map((thread, at) => ({ thread, state: STATES[at < 2 ? 3 : 0] })),
  )
  for (const [limit, isCurrent] of [
    [1, false],
    [2, true],
  ] as const)
    expect([limit, follow(list(log.slice(0, 2), limit), log).isCurrent]).toEqual([limit, isCurrent])
})

test('a long list asks the server for a page of threads', () => {
  const log = toLog(
    Array.from({ length: MAX_FOLLOWED + 1 }, (_, at) => ({ thread: `${at}`, state: 'firing' })),
  )
  const empty = list([], 50)
  expect(follow(empty, log.slice(0, MAX_FOLLOWED)).isCurrent).toBe(true)
  expect(follow(empty, log).isCurrent).toBe(false)
})
