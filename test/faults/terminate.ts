import { setTimeout as sleep } from 'node:timers/promises'
import type { RunResult } from './ledger-check.ts'
import { startFleet } from './fleet.ts'
import { createRandom } from './random.ts'

/** Ends the servers' backends one by one under load, like an administrator. */
export async function runTerminate({
  seed,
  times,
}: {
  seed: number
  times: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  const fleet = await startFleet({ servers: 2, projects: 3 })
  try {
    const load = fleet.load({ clients: 24, random })
    await load.successes(100)
    let killed = 0
    while (killed < times) {
      await sleep(random.below(40))
      const rows = await fleet.sql`
        select pg_terminate_backend(pid)
        from (
          select pid
          from pg_stat_activity
          where datname = current_database() and application_name in ('tidings append', 'tidings admission')
          order by random()
          limit 1
        ) as victim
      `
      killed += rows.length
    }
    await load.successes(200)
    const { figures, problems } = await fleet.check()
    return {
      figures: { killed, ...figures },
      problems: [...problems, ...fleet.programs.flatMap(({ logged }) => logged('"level":"ERROR"'))],
    }
  } finally {
    await fleet.close()
  }
}
