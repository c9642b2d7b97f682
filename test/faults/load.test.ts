import { expect, setDefaultTimeout, test } from 'bun:test'
import type { RunResult } from './ledger-check.ts'
import { newSeed } from './random.ts'
import { runSeq } from './seq.ts'
import { runStart } from './start.ts'
import { scaled } from '../support/until.ts'

// Short versions of the runs of `bun test/faults/run.ts`, for busy machines.
setDefaultTimeout(scaled(120_000))

const seed = newSeed()

test('§4 seq is dense and in commit order: no reader of three servers sees n+1 before n', async () => {
  expectNothing(await runSeq({ seed, events: 5_000 }))
})

test('§13 after first starts that were killed at random, the next one serves', async () => {
  expectNothing(await runStart({ seed, times: 2 }))
})

/** Shows the figures and the seed when there is a problem: TIDINGS_SEED repeats the run. */
function expectNothing({ figures, problems }: RunResult): void {
  if (problems.length > 0) console.error({ seed, ...figures })
  expect(problems.slice(0, 10)).toEqual([])
}
