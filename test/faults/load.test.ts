import { expect, setDefaultTimeout, test } from 'bun:test'
import type { RunResult } from './ledger-check.ts'
import { runCrash } from './crash.ts'
import { runDeliveries } from './deliveries.ts'
import { runLimit } from './rate-limit.ts'
import { newSeed } from './random.ts'
import { runSeq } from './seq.ts'
import { runStart } from './start.ts'
import { runTerminate } from './terminate.ts'
import { runWorkers } from './workers.ts'
import { scaled } from '../support/until.ts'

// Short versions of the runs of `bun test/faults/run.ts`, for busy machines.
setDefaultTimeout(scaled(120_000))

const seed = newSeed()

test('§4 seq is dense and in commit order: no reader of three servers sees n+1 before n', async () => {
  expectNothing(await runSeq({ seed, events: 5_000 }))
})

test('§13 random kills of servers, Postgres and its backends lose no acknowledged event', async () => {
  expectNothing(await runCrash({ seed, times: 4, recoveryMs: 30_000 }))
})

test(
  '§13 every delivery is made while servers are killed, frozen past their leases and stopped, and Postgres is killed',
  async () => {
    expectNothing(await runDeliveries({ seed, seconds: 12, isShort: true }))
  },
  scaled(240_000),
)

test(
  '§13 each of three processes on one port delivers; every delivery is made while one of them and Postgres are killed',
  async () => {
    const { figures, ...verdict } = await runDeliveries({
      seed,
      seconds: 5,
      isShort: true,
      servers: 1,
      workers: 3,
      kinds: ['kill worker', 'all of Postgres'],
    })
    expectNothing({ figures, ...verdict })
    expect(figures['workers that serve']).toStartWith('3 of 3')
  },
  scaled(240_000),
)

test('§13 after first starts that were killed at random, the next one serves', async () => {
  expectNothing(await runStart({ seed, times: 2 }))
})

test('§15 50 backends are terminated under load: no server ends, nothing is lost or duplicated', async () => {
  expectNothing(await runTerminate({ seed, times: 50 }))
})

test('§13 random kills of workers that share a port: the others continue, nothing is lost or duplicated', async () => {
  expectNothing(await runWorkers({ seed, times: 3 }))
})

test('§6 of 101 requests over three servers exactly 100 pass', async () => {
  expectNothing(await runLimit({ seed, times: 3 }))
})

/** Shows the figures and the seed when there is a problem: TIDINGS_SEED repeats the run. */
function expectNothing({ figures, problems }: RunResult): void {
  if (problems.length > 0) console.error({ seed, ...figures })
  expect(problems.slice(0, 10)).toEqual([])
}
