import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import type { TcpProxy } from '../support/servers/tcp-proxy.ts'
import type { RunResult } from './ledger-check.ts'
import { listPostgres, readStart, untilStartedAnew, type Fleet } from './fleet.ts'
import type { Follower } from './follower.ts'
import type { Load } from './ledger.ts'
import type { Random } from './random.ts'

const KINDS = [
  'kill a server',
  'stop a server',
  'kill the postmaster',
  'kill all of Postgres',
  'freeze a backend',
  'cut the network',
  'cut sockets',
] as const
type Kind = (typeof KINDS)[number]

const CUTS = ['cut', 'reset', 'blackHole', 'hangUp', 'delay'] as const

interface World {
  fleet: Fleet
  load: Load
  followers: readonly Follower[]
  /** The proxies between each server and its Postgres. */
  proxies: readonly TcpProxy[]
}

/** One fault, drawn in advance: the same seed gives the same faults. */
interface Fault {
  kind: Kind
  /** Milliseconds before the fault. */
  waitMs: number
  server: number
  way: (typeof CUTS)[number]
  /** The duration of a freeze or a cut, in milliseconds. */
  lastsMs: number
  /** Followers that lose their socket. */
  victims: number
}

/**
 * Injects faults one after the other, every kind in each round; afterwards all servers must accept
 * events again.
 */
export async function injectFaults({
  random,
  seconds,
  ...world
}: World & { random: Random; seconds: number }): Promise<RunResult> {
  const { fleet, load, proxies } = world
  const problems: string[] = []
  const met = new Map<Kind, { times: number; slowestMs: number }>()
  const endMs = performance.now() + seconds * 1_000
  let nth = 0
  let round: Fault[] = []
  // Even a short run has a fault of each kind.
  while (performance.now() < endMs || nth < KINDS.length) {
    if (round.length === 0) round = drawRound(random)
    const fault = round.shift()!
    nth++
    await sleep(fault.waitMs)
    await load.successes(5)
    const { problem, fromMs } = await inject(fault, world)
    if (problem !== undefined) problems.push(problem)
    await Promise.all(fleet.urls().map(url => load.nextSuccess(url)))
    const tookMs = performance.now() - fromMs
    const { times, slowestMs } = met.get(fault.kind) ?? { times: 0, slowestMs: 0 }
    met.set(fault.kind, { times: times + 1, slowestMs: Math.max(slowestMs, tookMs) })
  }
  for (const proxy of proxies) proxy.heal()
  const figures = [...met].flatMap(([kind, { times, slowestMs }]) => [
    [`${kind}: times`, times],
    [`${kind}: slowest ms`, Math.round(slowestMs)],
  ])
  return { problems, figures: Object.fromEntries(figures) }
}

function drawRound(random: Random): Fault[] {
  const kinds = KINDS.map(kind => ({ kind, place: random.next() }))
  return kinds
    .sort((a, b) => a.place - b.place)
    .map(({ kind }) => ({
      kind,
      waitMs: random.below(3_000),
      server: random.next(),
      way: random.pick(CUTS),
      lastsMs: 200 + random.below(12_000),
      victims: random.next(),
    }))
}

/** Returns the time from which the servers should recover. */
async function inject(
  fault: Fault,
  { fleet, followers, proxies }: World,
): Promise<{ fromMs: number; problem?: string }> {
  const index = Math.floor(fault.server * fleet.programs.length)
  const program = fleet.programs[index]!
  const fromMs = performance.now()
  switch (fault.kind) {
    case 'kill a server':
      await program.kill('SIGKILL')
      await fleet.restart(index)
      return { fromMs }
    case 'stop a server': {
      const { code, signal: by } = await program.kill('SIGTERM')
      const startMs = performance.now()
      await fleet.restart(index)
      return { fromMs: startMs, ...(code !== 0 && { problem: `a stop ended with ${by ?? code}` }) }
    }
    case 'kill the postmaster':
    case 'kill all of Postgres': {
      const pids = listPostgres(fleet.dataDir ?? '')
      const startedAt = await readStart(fleet.sql)
      for (const pid of fault.kind === 'kill the postmaster' ? pids.slice(0, 1) : pids)
        sendSignal(pid, 'SIGKILL')
      await untilStartedAnew(fleet.sql, startedAt)
      return { fromMs }
    }
    case 'freeze a backend': {
      const pid = await pickBackend(fleet, fault.server)
      sendSignal(pid, 'SIGSTOP')
      try {
        await sleep(fault.lastsMs)
      } finally {
        sendSignal(pid, 'SIGCONT')
      }
      return { fromMs: performance.now() }
    }
    case 'cut the network': {
      const proxy = proxies[index]!
      proxy[fault.way](20 + Math.floor(fault.victims * 200))
      await sleep(fault.lastsMs)
      proxy.heal()
      return { fromMs: performance.now() }
    }
    case 'cut sockets':
      for (const [nth, follower] of followers.entries())
        if ((nth * 0.618 + fault.victims) % 1 < 0.5) follower.cut()
      return { fromMs }
  }
}

/** Picks a backend that works for a server. */
async function pickBackend({ sql }: Fleet, share: number): Promise<number> {
  const rows = await sql<{ pid: number }[]>`
    select pid
    from pg_stat_activity
    where starts_with(application_name, 'tidings ')
    order by application_name, pid
  `
  const row = rows[Math.floor(share * rows.length)]
  if (!row) throw new Error('No server is connected to Postgres')
  return row.pid
}
