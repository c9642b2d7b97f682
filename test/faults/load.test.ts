import { expect, setDefaultTimeout, test } from 'bun:test'
import type { Verdict } from './check.ts'
import { runCrash } from './crash.ts'
import { runDeliveries } from './deliveries.ts'
import { runLimit } from './limit.ts'
import { newSeed } from './random.ts'
import { runSeq } from './seq.ts'
import { runStart } from './start.ts'
import { runTerminate } from './terminate.ts'
import { runWorkers } from './workers.ts'

// Short versions of what `bun test/faults/run.ts` does at length, on machines that may be busy.
setDefaultTimeout(120_000)

const seed = newSeed()

test('§4 seq is dense and in commit order: no reader of three servers sees n+1 before n', async () => {
  expectNothing(await runSeq({ seed, events: 10_000 }))
})

test('§13 servers, Postgres and its backends are killed at random: nothing acknowledged is lost', async () => {
  expectNothing(await runCrash({ seed, times: 10, recoveryMs: 30_000 }))
})

test('§13 servers are killed, frozen past their leases and stopped, Postgres is killed: every delivery is made', async () => {
  expectNothing(await runDeliveries({ seed, seconds: 40, isShort: true }))
}, 240_000)

test('§13 of three processes on one port each delivers; one is killed, Postgres is killed: every delivery is made', async () => {
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
}, 240_000)

test('§13 first starts are killed at random: the next one serves', async () => {
  expectNothing(await runStart({ seed, times: 2 }))
})

test('§15 100 backends are terminated under load: no server ends, nothing is lost or made twice', async () => {
  expectNothing(await runTerminate({ seed, times: 100 }))
})

test('§13 workers that share a port are killed at random: the others go on, nothing is lost or made twice', async () => {
  expectNothing(await runWorkers({ seed, times: 4 }))
})

test('§6 101 requests over three servers: exactly 100 pass', async () => {
  expectNothing(await runLimit({ seed, times: 3 }))
})

/** The figures and the seed are shown when there is a problem: TIDINGS_SEED repeats the run. */
function expectNothing({ figures, problems }: Verdict): void {
  if (problems.length > 0) console.error({ seed, ...figures })
  expect(problems.slice(0, 10)).toEqual([])
}
