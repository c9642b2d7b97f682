import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import { listWorkers } from '../support/servers/process.ts'
import type { RunResult } from './ledger-check.ts'
import { startFleet } from './fleet.ts'
import { createRandom } from './random.ts'
import { scaled } from '../support/until.ts'

const WORKERS = 3
const RECOVERY_MS = scaled(15_000)

/**
 * Kills workers that share one port at random moments under load. The others must continue, and
 * killed ones are restarted.
 */
export async function runWorkers({
  seed,
  times,
}: {
  seed: number
  times: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  const fleet = await startFleet({
    servers: 1,
    projects: 3,
    isEmbedded: true,
    env: { WORKERS: String(WORKERS) },
  })
  const [program] = fleet.programs
  if (!program) throw new Error('There is no server')
  try {
    const load = fleet.load({ clients: 24, random })
    const problems: string[] = []
    const killed = new Set<number>()
    let slowestMs = 0
    for (let kills = 0; kills < times; kills++) {
      await load.successes(200)
      await sleep(random.below(300))
      const startedMs = performance.now()
      const victim = random.pick(listWorkers(program).filter(pid => !killed.has(pid)))
      killed.add(victim)
      sendSignal(victim, 'SIGKILL')
      const tookMs = (await load.nextSuccess(program.url)) - startedMs
      slowestMs = Math.max(slowestMs, Math.round(tookMs))
      if (tookMs > RECOVERY_MS) problems.push(`first success after ${tookMs | 0} ms`)
    }
    await load.successes(200)
    const verdict = await fleet.check()
    const started = listWorkers(program).length
    if (started <= WORKERS) problems.push(`${started} workers were started in all`)
    return {
      figures: {
        kills: times,
        'workers started': started,
        'slowest success ms': slowestMs,
        ...verdict.figures,
      },
      problems: [...problems, ...verdict.problems],
    }
  } finally {
    await fleet.close()
  }
}
