import { expect, test } from 'bun:test'
import { createTurns } from '../../src/feed/turns.ts'

test('reliability §7 replays: so many at a time, and who asks for much does not hold up who asks for little', async () => {
  const turns = createTurns(2)
  const order: string[] = []
  let atOnce = 0
  let mostAtOnce = 0
  const run = (who: string) =>
    turns.run(who, async () => {
      order.push(who)
      mostAtOnce = Math.max(mostAtOnce, ++atOnce)
      await Promise.resolve()
      atOnce--
    })
  await Promise.all([...Array.from({ length: 20 }, () => run('greedy')), run('ada'), run('bob')])
  expect(mostAtOnce).toBe(2)
  expect(order).toHaveLength(22)
  expect(order.indexOf('ada')).toBeLessThan(6)
  expect(order.indexOf('bob')).toBeLessThan(6)
})

test('work that fails gives its turn back', async () => {
  const turns = createTurns(1)
  const failed = turns.run('ada', () => Promise.reject(new Error('no')))
  const next = turns.run('ada', async () => 'done')
  await expect(failed).rejects.toThrow('no')
  expect(await next).toBe('done')
  expect(await turns.run('bob', async () => 'again')).toBe('again')
})
