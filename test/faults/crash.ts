import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import type { RunResult } from './ledger-check.ts'
import { listPostgres, startFleet, type Fleet } from './fleet.ts'
import { createRandom, type Random } from './random.ts'

const KINDS = ['server', 'postmaster', 'all of Postgres', 'one backend', 'frozen'] as const

type Kind = (typeof KINDS)[number]

/**
 * Injects crashes at random moments under load. It kills a server, the first process of its
 * Postgres, all of its processes, or one backend, whereupon Postgres ends all others. It also stops
 * all of Postgres for a while, like a machine during a live migration. Each time events must be
 * accepted again within `recoveryMs`.
 */
export async function runCrash({
  seed,
  times,
  freezeMs = 1_000,
  recoveryMs = 5_000,
}: {
  seed: number
  times: number
  freezeMs?: number
  recoveryMs?: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  const fleet = await startFleet({ servers: 2, projects: 3, isEmbedded: true })
  try {
    const load = fleet.load({ clients: 24, random })
    const problems: string[] = []
    const slowest = new Map<Kind, number>()
    for (let nth = 0; nth < times; nth++) {
      await load.successes(200)
      await sleep(random.below(300))
      const kind = KINDS[nth % KINDS.length]!
      if (kind === 'frozen') await freeze(fleet, random.below(freezeMs))
      const startedMs = performance.now()
      const servers = kind === 'frozen' ? fleet.urls() : await killOne(kind, fleet, random)
      for (const server of servers) {
        const tookMs = (await load.nextSuccess(server)) - startedMs
        slowest.set(kind, Math.max(slowest.get(kind) ?? 0, Math.round(tookMs)))
        if (tookMs > recoveryMs) problems.push(`${kind}: first success after ${tookMs | 0} ms`)
      }
    }
    await load.successes(200)
    const verdict = await fleet.check()
    return {
      figures: {
        kills: times,
        ...verdict.figures,
        ...Object.fromEntries([...slowest].map(([kind, ms]) => [`${kind}: slowest ms`, ms])),
      },
      problems: [...problems, ...verdict.problems],
    }
  } finally {
    await fleet.close()
  }
}

/** Returns the servers that must recover. */
async function killOne(
  kind: Exclude<Kind, 'frozen'>,
  fleet: Fleet,
  random: Random,
): Promise<string[]> {
  if (kind === 'server') {
    const index = random.below(fleet.programs.length)
    await fleet.programs[index]!.kill('SIGKILL')
    return [(await fleet.restart(index)).url]
  }
  const [postmaster = 0, ...others] = listPostgres(fleet.dataDir ?? '')
  const victims = {
    postmaster: [postmaster],
    'all of Postgres': [postmaster, ...others],
    'one backend': [await pickBackend(fleet)],
  }
  for (const pid of victims[kind]) sendSignal(pid, 'SIGKILL')
  return fleet.urls()
}

async function freeze({ dataDir = '' }: Fleet, ms: number): Promise<void> {
  const pids = listPostgres(dataDir)
  for (const pid of pids) sendSignal(pid, 'SIGSTOP')
  await sleep(ms)
  for (const pid of pids) sendSignal(pid, 'SIGCONT')
}

/** Picks a backend that works for a server. */
async function pickBackend({ sql }: Fleet): Promise<number> {
  const [row] = await sql<[{ pid: number }]>`
    select pid from pg_stat_activity
    where application_name in ('tidings append', 'tidings admission')
    order by random() limit 1
  `
  return row.pid
}
