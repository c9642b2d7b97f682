import { expect, setDefaultTimeout, test } from 'bun:test'
import { runFeed } from './feed.ts'
import { newSeed } from './random.ts'
import { scaled } from '../support/until.ts'

setDefaultTimeout(scaled(180_000))

const seed = newSeed()

test('reliability §7 faults of sockets, servers, listeners and Postgres under load hide no event from any client', async () => {
  const { figures, problems } = await runFeed({ seed, seconds: 15 })
  if (problems.length > 0) console.error({ seed, ...figures })
  expect(problems.slice(0, 10)).toEqual([])
})

test('reliability §7 the same holds if a server is three processes on one port', async () => {
  const { figures, problems } = await runFeed({ seed, seconds: 8, runtimes: ['bun'], workers: 3 })
  if (problems.length > 0) console.error({ seed, ...figures })
  expect(problems.slice(0, 10)).toEqual([])
  expect(figures['workers that serve']).toStartWith('3 of 3')
})
