import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { listWorkers, signal } from '../../src/db/processes.ts'
import type { Program } from '../support/process.ts'
import { checkLedger, type Verdict } from './check.ts'
import { startFleet, type Fleet } from './fleet.ts'
import { startLoad } from './ledger.ts'
import { createRandom, type Random } from './random.ts'

const RECOVERY_MS = 5_000
const KINDS = ['server', 'postmaster', 'all of Postgres', 'one backend'] as const

type Kind = (typeof KINDS)[number]

/**
 * Kills, at random moments under load, a server, the first process of its Postgres, all of its processes, or one backend
 * (whereupon Postgres ends all others). Each time the load must get through again within 5 s.
 */
export async function runCrash({ seed, times }: { seed: number; times: number }): Promise<Verdict> {
  const random = createRandom(seed)
  const fleet = await startFleet({ servers: 2, projects: 3, isEmbedded: true })
  try {
    const load = startLoad({
      servers: fleet.urls,
      projects: fleet.projects,
      clients: 24,
      random,
    })
    const problems: string[] = []
    const slowest = new Map<Kind, number>()
    for (let nth = 0; nth < times; nth++) {
      await load.successes(200)
      await sleep(random.below(300))
      const kind = KINDS[nth % KINDS.length]!
      const startedMs = performance.now()
      const servers = await killOne(kind, fleet, random)
      for (const server of servers) {
        const tookMs = (await load.nextSuccess(server)) - startedMs
        slowest.set(kind, Math.max(slowest.get(kind) ?? 0, Math.round(tookMs)))
        if (tookMs > RECOVERY_MS) problems.push(`${kind}: first success after ${tookMs | 0} ms`)
      }
    }
    await load.successes(200)
    await load.stop()
    const verdict = await checkLedger(
      fleet.sql,
      fleet.projects.map(({ id }) => id),
      load.ledger,
    )
    return {
      figures: {
        kills: times,
        ...verdict.figures,
        ...Object.fromEntries([...slowest].map(([kind, ms]) => [`${kind}: slowest ms`, ms])),
      },
      problems: [...problems, ...verdict.problems, ...fleet.programs.flatMap(findEnd)],
    }
  } finally {
    await fleet.close()
  }
}

/** Returns the servers that must work again. */
async function killOne(kind: Kind, fleet: Fleet, random: Random): Promise<string[]> {
  if (kind === 'server') {
    const index = random.below(fleet.programs.length)
    await fleet.programs[index]!.kill('SIGKILL')
    return [(await fleet.restart(index)).url]
  }
  const [postmaster = 0, ...others] = listPostgres(fleet)
  const victims = {
    postmaster: [postmaster],
    'all of Postgres': [postmaster, ...others],
    'one backend': [await pickBackend(fleet)],
  }
  for (const pid of victims[kind]) signal(pid, 'SIGKILL')
  return fleet.urls()
}

/** The processes of the fleet's own Postgres, the first one first. */
function listPostgres({ dataDir = '' }: Fleet): number[] {
  const data = realpathSync(join(dataDir, 'postgres', 'data'))
  return listWorkers({ data, mark: data }).sort((a, b) => a - b)
}

/** One that works for a server. */
async function pickBackend({ sql }: Fleet): Promise<number> {
  const [row] = await sql<[{ pid: number }]>`
    select pid from pg_stat_activity
    where application_name in ('tidings append', 'tidings admission')
    order by random() limit 1
  `
  return row.pid
}

function findEnd(program: Program): string[] {
  return program.isRunning() ? [] : [`a server ended by itself:\n${program.output().slice(-2_000)}`]
}
