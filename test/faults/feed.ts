import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import { toId } from '../../src/base/ids.ts'
import { newMember } from '../support/worlds/signed-in-account.ts'
import type { Runtime } from '../support/servers/process.ts'
import { startTcpProxy, type TcpProxy } from '../support/servers/tcp-proxy.ts'
import { until } from '../support/until.ts'
import type { RemovedEvents, RunResult } from './ledger-check.ts'
import { readStart, untilStartedAnew } from './deliveries.ts'
import { createServedWorkers, type ServedWorkers } from './served-workers.ts'
import { listPostgres, startFleet, type Fleet } from './fleet.ts'
import { startFollower, type Follower } from './follower.ts'
import { createRandom, type Random } from './random.ts'
import { scaled } from '../support/until.ts'

const RUNTIMES = ['bun', 'bun', 'bun', 'deno'] as const
const FOLLOWERS = 12
const CATCH_UP_MS = scaled(30_000)
const DEALT_MS = scaled(30_000)
/** Sockets are cut about as often as all other faults together. */
const FAULTS = [
  'cut sockets',
  'terminate LISTEN',
  'cut sockets',
  'kill server',
  'cut sockets',
  'terminate readers',
  'black hole LISTEN',
  'cut sockets',
  'stop server',
  'kill Postgres',
] as const

/**
 * Followers record the feed of three servers on Bun and one on Deno under load. Meanwhile sockets,
 * servers, Postgres and the connections to it are broken. Each record must equal the database:
 * complete, without repeats, in order. With several processes per server, each must have served
 * followers or load.
 */
export async function runFeed({
  seed,
  seconds,
  runtimes = RUNTIMES,
  workers,
}: {
  seed: number
  seconds: number
  runtimes?: readonly Runtime[]
  workers?: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  const proxies: TcpProxy[] = []
  const fleet = await startFleet({
    servers: runtimes.length,
    projects: 3,
    runtimes,
    workers,
    async listenBetween(databaseUrl, index) {
      await proxies[index]?.close()
      const proxy = await startTcpProxy(databaseUrl)
      proxies[index] = proxy
      return proxy.url
    },
  })
  const followers: Follower[] = []
  try {
    const load = fleet.load({ clients: 6, random })
    await load.successes(50)
    followers.push(...(await startFollowers(fleet, random)))
    const endMs = performance.now() + seconds * 1000
    const served = createServedWorkers(fleet.programs)
    let faults = 0
    while (performance.now() < endMs) {
      await load.successes(20)
      served.sample()
      await sleep(random.below(300))
      const fault = FAULTS[faults++ % FAULTS.length]!
      await inject(fault, { fleet, followers, proxies, random })
    }
    for (const proxy of proxies) proxy.heal()
    const idle = await checkServed(served, followers)
    const verdict = await fleet.check()
    const seen = await checkFollowers(fleet, followers)
    return {
      figures: { faults, ...served.figures, ...verdict.figures, ...seen.figures },
      problems: [...idle, ...verdict.problems, ...seen.problems],
    }
  } finally {
    await Promise.all(followers.map(follower => follower.stop()))
    await fleet.close()
    await Promise.all(proxies.map(proxy => proxy.close()))
  }
}

export async function startFollowers(
  fleet: Fleet,
  random: Random,
  hasPromotions = false,
): Promise<Follower[]> {
  const followers: Follower[] = []
  for (let nth = 0; nth < FOLLOWERS; nth++) {
    const { id } = fleet.projects[nth % fleet.projects.length]!
    const [row] = await fleet.sql<[{ organization_id: string }]>`
      select organization_id from projects where id = ${id}
    `
    const account = await newMember(
      { sql: fleet.sql, url: '' },
      { uuid: row.organization_id },
      'viewer',
    )
    // A third starts now, a third at the beginning, and a third has a filter.
    followers.push(
      startFollower({
        name: `follower ${nth}`,
        projectId: id,
        project: toId('prj', id),
        cookie: account.cookie,
        after: nth % 2 === 0 ? undefined : random.below(10),
        ...(nth % 3 === 2 && { channelName: `Channel ${nth % 2}` }),
        servers: fleet.urls,
        hasPromotions,
        random: random.fork(1_000 + nth),
      }),
    )
  }
  return followers
}

interface World {
  fleet: Fleet
  followers: readonly Follower[]
  proxies: readonly TcpProxy[]
  random: Random
}

async function inject(fault: (typeof FAULTS)[number], world: World): Promise<void> {
  const { fleet, followers, proxies, random } = world
  switch (fault) {
    case 'cut sockets':
      for (const follower of followers) if (random.next() < 0.5) follower.cut()
      return
    case 'terminate LISTEN':
      return terminate(fleet, ['tidings listen'])
    case 'terminate readers':
      return terminate(fleet, ['tidings tail', 'tidings feed', 'tidings notify'])
    case 'kill server':
    case 'stop server': {
      const index = random.below(fleet.programs.length)
      await fleet.programs[index]!.kill(fault === 'kill server' ? 'SIGKILL' : 'SIGTERM')
      await fleet.restart(index)
      return
    }
    case 'black hole LISTEN': {
      const proxy = random.pick(proxies)
      proxy.blackHole()
      // Sometimes longer than the timeout of the heartbeat.
      setTimeout(() => proxy.heal(), random.below(16_000))
      return
    }
    case 'kill Postgres': {
      const startedAt = await readStart(fleet.sql)
      for (const pid of listPostgres(fleet.dataDir ?? '')) sendSignal(pid, 'SIGKILL')
      // The check after the last fault reads the log.
      await untilStartedAnew(fleet.sql, startedAt)
    }
  }
}

/** Ends the backends with these names, of all servers. */
async function terminate({ sql }: Fleet, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where starts_with(application_name, ${name})
    `.catch(() => {}) // Postgres may still be down from the previous fault.
  }
}

/** Reconnects the followers until every worker has served one. */
async function checkServed(
  served: ServedWorkers,
  followers: readonly Follower[],
): Promise<string[]> {
  let looks = 0
  return until(() => {
    served.sample()
    if (!served.isComplete && ++looks % 20 === 0) for (const follower of followers) follower.cut()
    return served.isComplete
  }, DEALT_MS).then(
    () => [],
    () => ['some workers serve nobody'],
  )
}

/**
 * Compares each follower's events with the log, once they caught up. Events deleted unseen may be
 * missing.
 */
export async function checkFollowers(
  { sql }: Pick<Fleet, 'sql'>,
  followers: readonly Follower[],
  leavers: RemovedEvents = new Map(),
): Promise<RunResult> {
  const problems: string[] = []
  const table: (string | number)[][] = []
  let compared = 0
  for (const follower of followers) {
    const { name, projectId, channelName, from = 0, seen } = follower
    const rows = await sql<{ seq: number; id: string }[]>`
      select e.seq::int as seq, e.id
      from events e
        join channels c on c.project_id = e.project_id and c.id = e.channel_id
      where e.project_id = ${projectId} and e.seq > ${from}
        ${channelName === undefined ? sql`` : sql`and c.name = ${channelName}`}
      order by e.seq
    `
    const there = new Set(rows.map(({ id }) => id))
    const gone = [...leavers.values()].filter(
      one =>
        one.projectId === projectId &&
        one.seq > from &&
        !there.has(one.id) &&
        (channelName === undefined || one.channelName === channelName),
    )
    const log = new Map([...rows, ...gone].map(({ seq, id }) => [seq, id]))
    const last = rows.at(-1)?.seq ?? from
    const deadlineMs = performance.now() + CATCH_UP_MS
    while (follower.cursor < last && performance.now() < deadlineMs) await sleep(50)
    problems.push(...follower.problems)

    const met = new Set<number>()
    let [twice, disordered, strangers, head] = [0, 0, 0, 0]
    for (const { seq, id } of seen) {
      if (met.has(seq)) twice++
      else if (seq < head) disordered++
      const stored = log.get(seq)
      if (stored === undefined || toId('evt', stored) !== id) strangers++
      met.add(seq)
      head = Math.max(head, seq)
    }
    const gaps = [...log].filter(
      ([seq, id]) => !met.has(seq) && (leavers.get(id)?.isDone ?? true),
    ).length
    const broken = { gaps, 'out of order': disordered, twice, strange: strangers }
    for (const [what, times] of Object.entries(broken))
      if (times > 0)
        problems.push(`${name}, ${what}: ${times} of ${log.size}, up to ${follower.cursor}`)
    table.push([name, follower.connects, met.size, ...Object.values(broken)])
    compared += log.size
  }
  const delays = followers.flatMap(({ delaysMs }) => delaysMs).sort((a, b) => a - b)
  const at = (share: number) => delays[Math.floor(share * (delays.length - 1))] ?? NaN
  return {
    figures: {
      followers: followers.length,
      connects: followers.reduce((sum, { connects }) => sum + connects, 0),
      'events compared': compared,
      'delay p50 ms': at(0.5),
      'delay p99 ms': at(0.99),
      'slowest delay ms': at(1),
    },
    problems,
    tables: [
      {
        columns: ['seen live', 'connects', 'seen', 'gaps', 'out of order', 'twice', 'strange'],
        rows: table,
      },
    ],
  }
}
