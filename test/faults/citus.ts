import { setTimeout as sleep } from 'node:timers/promises'
import { readBalance, startCitus } from '../support/servers/citus.ts'
import { until } from '../support/until.ts'
import type { RunResult } from './ledger-check.ts'
import { runSeq } from './seq.ts'

const WORKERS = 3
const PROJECTS = 24
const DOWN_MS = 5_000
const RECOVERY_MS = 30_000
const PATIENCE_MS = 120_000

/**
 * The seq checker with three servers on a coordinator and three worker nodes of Citus. Under load,
 * each worker node and then the coordinator is killed once, and started again. Reads of all
 * projects must be back within 30 s of the start.
 */
export async function runCitus({
  seed,
  events,
}: {
  seed: number
  events: number
}): Promise<RunResult> {
  await using cluster = await startCitus({ workers: WORKERS })
  const databaseUrl = await cluster.createDatabase()
  const recoveries: [string, number][] = []
  const result = await runSeq({
    seed,
    events,
    projects: PROJECTS,
    databaseUrl,
    async disturb({ projects, urls }) {
      for (const nth of [1, 2, 3, 0]) {
        await sleep(DOWN_MS)
        await cluster.kill(nth)
        await sleep(DOWN_MS)
        await cluster.start(nth)
        const startedMs = performance.now()
        for (const { key } of projects) await untilRead(urls()[nth % 3]!, key)
        const name = nth === 0 ? 'coordinator' : `worker node ${nth}`
        recoveries.push([name, Math.round(performance.now() - startedMs)])
      }
    },
  })
  const balance = await readBalance(databaseUrl)
  return {
    figures: {
      ...result.figures,
      ...Object.fromEntries(recoveries.map(([name, ms]) => [`${name} back after ms`, ms])),
    },
    problems: [
      ...result.problems,
      ...recoveries.flatMap(([name, ms]) =>
        ms > RECOVERY_MS ? [`the ${name} was back after ${ms} ms`] : [],
      ),
    ],
    tables: [
      {
        columns: ['worker node', 'shards', 'events', 'MB'],
        rows: balance.map(({ shards, events, bytes }, nth) => [
          nth + 1,
          shards,
          events,
          (bytes / 1e6).toFixed(1),
        ]),
      },
    ],
  }
}

/** Resolves when the server can read the log of the key's project. */
async function untilRead(url: string, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}` }
  await until(async () => (await fetch(`${url}/v1/events?limit=1`, { headers })).ok, PATIENCE_MS)
}
