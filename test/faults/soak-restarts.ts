import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import type { Table } from './ledger-check.ts'
import { readStart, untilStartedAnew } from './deliveries.ts'
import { listPostgres, type Fleet } from './fleet.ts'
import type { Random } from './random.ts'
import type { Life } from './soak-sample.ts'

/** The mean time between restarts is an eighth of the run, within these limits. */
const SHORTEST_MS = 15_000
const LONGEST_MS = 240_000

export interface World {
  fleet: Fleet
  /** The current life of each server. */
  lives: Life[]
}

/** Returns the problems of the restart. */
export async function restart(
  { fleet, lives }: World,
  { index, by }: { index: number; by: 'SIGTERM' | 'SIGKILL' },
): Promise<string | undefined> {
  const { code, signal: ended } = await fleet.programs[index]!.kill(by)
  await fleet.restart(index)
  lives[index] = toLife(index, Number(lives[index]!.name.split('.')[1]) + 1)
  return by === 'SIGKILL' || code === 0 ? undefined : `a stop ended with ${ended ?? code}`
}

/**
 * Restarts servers at random moments until the time is over. Marks are seconds since the beginning.
 */
export async function restartAtRandom(
  world: World,
  { random, seconds, startMs }: { random: Random; seconds: number; startMs: number },
): Promise<{ marks: number[]; table: Table; problems: string[] }> {
  const { fleet } = world
  const problems: string[] = []
  const marks: number[] = []
  const met = new Map<string, { times: number; slowestMs: number }>()
  const meanMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, (seconds * 1_000) / 8))
  const endMs = startMs + seconds * 1_000
  let round: string[] = []
  let isHalf = false
  for (;;) {
    // There is no restart in the last stretch.
    const nextMs = performance.now() + meanMs * (0.6 + 0.8 * random.next())
    const isLast = nextMs > endMs - meanMs / 2
    await sleep((isLast ? endMs : nextMs) - performance.now())
    if (isLast) break
    if (round.length === 0) round = shuffle(['stop', 'kill', 'stop', 'kill', 'Postgres'], random)
    const isLong: boolean = !isHalf && performance.now() - startMs > (seconds * 1_000) / 2
    const kind = isLong ? 'stop of the long life' : round.shift()!
    isHalf ||= isLong
    const fromMs = performance.now()
    marks.push((fromMs - startMs) / 1_000)
    if (kind === 'Postgres') {
      const startedAt = await readStart(fleet.sql)
      for (const pid of listPostgres(fleet.dataDir ?? '')) sendSignal(pid, 'SIGKILL')
      await untilStartedAnew(fleet.sql, startedAt)
    } else {
      const how = { index: isLong ? 1 : 0, by: kind === 'kill' ? 'SIGKILL' : 'SIGTERM' } as const
      const problem = await restart(world, how)
      if (problem !== undefined) problems.push(problem)
    }
    const tookMs = performance.now() - fromMs
    const { times, slowestMs } = met.get(kind) ?? { times: 0, slowestMs: 0 }
    met.set(kind, { times: times + 1, slowestMs: Math.max(slowestMs, tookMs) })
  }
  return {
    marks,
    problems,
    table: {
      columns: ['restarts', 'times', 'slowest ms'],
      rows: [...met].map(([kind, { times, slowestMs }]) => [kind, times, Math.round(slowestMs)]),
    },
  }
}

function shuffle<Item>(items: readonly Item[], random: Random): Item[] {
  return items
    .map(item => ({ item, place: random.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}

/** Returns the nth life of a server, which begins now. */
export function toLife(server: number, nth: number): Life {
  return { name: `${server}.${nth}`, startedMs: performance.now() }
}
