import { setTimeout as sleep } from 'node:timers/promises'
import { checkLedger, type Verdict } from './check.ts'
import { startFleet } from './fleet.ts'
import { startLoad } from './ledger.ts'
import { createRandom } from './random.ts'

/** Ends the servers' backends one by one under load, as an administrator would. */
export async function runTerminate({
  seed,
  times,
}: {
  seed: number
  times: number
}): Promise<Verdict> {
  const random = createRandom(seed)
  const fleet = await startFleet({ servers: 2, projects: 3 })
  try {
    const load = startLoad({
      servers: fleet.urls,
      projects: fleet.projects,
      clients: 24,
      random,
    })
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
    await load.stop()
    const { figures, problems } = await checkLedger(
      fleet.sql,
      fleet.projects.map(({ id }) => id),
      load.ledger,
    )
    const ended = fleet.programs.filter(program => !program.isRunning())
    return {
      figures: { killed, ...figures },
      problems: [
        ...problems,
        ...ended.map(program => `a server ended by itself:\n${program.output().slice(-2_000)}`),
        ...fleet.programs.flatMap(({ logged }) => logged('"level":"ERROR"')),
      ],
    }
  } finally {
    await fleet.close()
  }
}
