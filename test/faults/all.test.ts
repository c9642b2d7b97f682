import { expect, setDefaultTimeout, test } from 'bun:test'
import { runAll } from './all.ts'
import { newSeed } from './random.ts'
import { scaled } from '../support/until.ts'

// On a busy machine most of the time is spent waiting until everything is settled.
setDefaultTimeout(scaled(600_000))

const seed = newSeed()

test('§8 faults of servers, Postgres and the network under the full load lose nothing', async () => {
  const { figures, problems } = await runAll({ seed, seconds: 10, isShort: true })
  if (problems.length > 0) console.error({ seed, ...figures })
  expect(problems.slice(0, 10)).toEqual([])
})
