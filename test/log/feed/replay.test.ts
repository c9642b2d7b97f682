import { expect, test } from 'bun:test'
import type { Pool } from '../../../src/database/pool.ts'
import { noFilters } from '../../../src/log/events/search-filters.ts'
import type { Hub, Subscription } from '../../../src/log/feed/hub.ts'
import { createReplay } from '../../../src/log/feed/replay.ts'
import { until } from '../../support/until.ts'

const toSubscription = (projectId: string): Subscription => ({
  socket: { send() {}, join() {}, leave() {}, bufferedBytes: 0 },
  projectId,
  project: projectId,
  filters: noFilters(),
  cursor: 0,
})

test('one organization replays one page at a time, and leaves room for another', async () => {
  const pages: PromiseWithResolvers<unknown>[] = []
  const pool = {
    of: () => pool,
    run() {
      const page = Promise.withResolvers<unknown>()
      pages.push(page)
      return page.promise
    },
  } as unknown as Pool
  const done = new Set<Subscription>()
  const hub = {
    has: () => true,
    goLiveIfNear: (subscription: Subscription) =>
      subscription.cursor > 0 && !!done.add(subscription),
    toReplayEnd: () => 1,
  } as unknown as Hub
  const replay = createReplay({ pool, hub, isAllowed: () => true, onStalled() {} })
  const greedy = Array.from({ length: 20 }, () => replay(toSubscription('greedy'), 'greedy'))
  await until(() => pages.length > 0)
  expect(pages).toHaveLength(1)

  const other = toSubscription('other')
  const others = replay(other, 'other')
  await until(() => pages.length === 2)
  pages[1]!.resolve({ events: [], isCut: false })
  await others
  expect([...done]).toEqual([other])

  for (let n = 0; n < 20; n++) {
    await until(() => pages[n === 0 ? 0 : n + 1] !== undefined)
    pages[n === 0 ? 0 : n + 1]!.resolve({ events: [], isCut: false })
  }
  await Promise.all(greedy)
  expect(done.size).toBe(21)
})
