import { expect, setDefaultTimeout, test } from 'bun:test'
import { runAll } from './all.ts'
import { newSeed } from './random.ts'

// On a busy machine most of it is waiting until all has settled.
setDefaultTimeout(600_000)

const seed = newSeed()

test('§8 all that there is, while servers, Postgres and the network between are broken: nothing is lost', async () => {
  const { figures, problems } = await runAll({ seed, seconds: 25, isShort: true })
  if (problems.length > 0) console.error({ seed, ...figures })
  expect(problems.slice(0, 10)).toEqual([])
})
