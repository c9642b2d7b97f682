import { setTimeout as sleep } from 'node:timers/promises'
import type { RunResult } from './ledger-check.ts'
import { startFleet } from './fleet.ts'
import { createRandom } from './random.ts'

const STOP_MS = 25_000

/**
 * Stops and restarts servers in turn under load, like a deployment. Every admitted request must be
 * answered.
 */
export async function runDrain({
  seed,
  times,
}: {
  seed: number
  times: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  const fleet = await startFleet({ servers: 2, projects: 3 })
  try {
    const load = fleet.load({ clients: 32, random })
    const problems: string[] = []
    let slowestMs = 0
    for (let nth = 0; nth < times; nth++) {
      await load.successes(300)
      await sleep(random.below(100))
      const startedMs = performance.now()
      const index = nth % fleet.programs.length
      const { code, signal } = await fleet.programs[index]!.kill('SIGTERM')
      const tookMs = performance.now() - startedMs
      slowestMs = Math.max(slowestMs, Math.round(tookMs))
      if (code !== 0) problems.push(`a stop ended with ${signal ?? code}`)
      if (tookMs >= STOP_MS) problems.push(`a stop took ${tookMs | 0} ms`)
      await fleet.restart(index)
    }
    await load.successes(100)
    const verdict = await fleet.check()
    // A stored event was admitted, so its request had to be answered.
    const cutOff = Number(verdict.figures['of those stored'])
    if (cutOff > 0) problems.push(`${cutOff} events are stored whose requests were cut off`)
    return {
      figures: { stops: times, 'slowest stop ms': slowestMs, ...verdict.figures },
      problems: [...problems, ...verdict.problems],
    }
  } finally {
    await fleet.close()
  }
}
