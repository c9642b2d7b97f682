import { expect, test } from 'bun:test'
import { newId } from '../../../src/base/ids.ts'
import type { Pool } from '../../../src/database/pool.ts'
import { startWatch } from '../../../src/log/feed/watch.ts'
import { until } from '../../support/until.ts'

test('a watcher starts a round at once, at most once a second', async () => {
  let rounds = 0
  const heads = { [newId('prj').uuid]: 1 }
  const pool = {
    async run() {
      rounds++
      return [heads, heads]
    },
  } as unknown as Pool
  const newWatcher = () => {
    const sent: string[] = []
    return { data: { sessionId: 's' }, send: (text: string) => void sent.push(text), sent }
  }
  const watch = startWatch({ pool, isListening: () => true })
  const [first, second] = [newWatcher(), newWatcher()]
  watch.add(first)
  expect(rounds).toBe(1)
  await until(() => first.sent.length === 1)
  for (let n = 0; n < 100; n++) {
    watch.add(first)
    await Promise.resolve()
  }
  watch.add(second)
  await until(() => second.sent.length === 1)
  await watch.stop()
  expect(rounds).toBe(2)
  // Nothing is sent again to a watcher that asks again.
  expect(first.sent).toHaveLength(1)
})
