import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { toId } from '../../src/base/ids.ts'
import { testSecrets } from '../support/secret.ts'
import { newMember } from '../support/worlds/signed-in-account.ts'
import { toPlot } from './soak-plot.ts'
import { restartAtRandom, restart, toLife } from './soak-restarts.ts'
import { takeSample, type Life, type Sample } from './soak-sample.ts'
import { startSoakLoad, type SoakLoad } from './soak-load.ts'
import { assessSamples } from './soak-trends.ts'
import type { RunResult } from './ledger-check.ts'
import { checkDeliveries } from './delivery-check.ts'
import { untilEmpty } from './deliveries.ts'
import { startFleet, type Fleet } from './fleet.ts'
import { startFollower, type Follower } from './follower.ts'
import {
  startWebhookReceiver,
  type ReceivingWebhook,
  type WebhookReceiver,
} from './webhook-receiver.ts'
import { createRandom, type Random } from './random.ts'
import { scaled } from '../support/until.ts'

const CLIENTS = 64
const MEASURE_MS = 10_000
const EVERY_MS = 5_000
/** The rate of the project with webhooks, in events/s. */
const TOLD_PER_SECOND = 40
const SETTLE_MS = 600_000
const CATCH_UP_MS = scaled(120_000)

export interface SoakOptions {
  seed: number
  seconds: number
  /** Events/s; 0 for half of the measured maximum. */
  rate: number
  /** The file for the curves, as SVG. */
  plotFile: string
}

/**
 * Runs two servers at half of their maximum rate for a long time, with deliveries and followers.
 * Now and then the first server is stopped or killed, or Postgres is. The second one is stopped
 * once, at half time. Nothing may be lost, everything must be delivered, and memory and open files
 * must be stable.
 */
export async function runSoak({ seed, seconds, rate, plotFile }: SoakOptions): Promise<RunResult> {
  const random = createRandom(seed)
  await using hooks = await startWebhookReceiver()
  const fleet = await startFleet({
    servers: 2,
    projects: 2,
    isEmbedded: true,
    // No proxy: `between` makes this process run Postgres, so that it outlives the servers.
    between: async url => url,
    env: { EGRESS_ALLOW_CIDRS: '127.0.0.0/8' },
  })
  const followers: Follower[] = []
  const samples: Sample[] = []
  const lives: Life[] = fleet.programs.map((_, nth) => toLife(nth, 1))
  // There is no webhook yet while the maximum is measured.
  const shares = { second: 0 }
  const load = startSoakLoad({
    servers: fleet.urls,
    projects: fleet.projects,
    shares,
    clients: CLIENTS,
    seed,
  })
  try {
    const { sql, projects } = fleet
    const most = rate === 0 ? await measureMost(load) : undefined
    const paced = rate === 0 ? most! / 2 : rate
    shares.second = Math.min(0.5, TOLD_PER_SECOND / paced)
    // The measurement is no part of any life.
    for (const index of lives.keys()) await restart({ fleet, lives }, { index, by: 'SIGTERM' })
    const targets: ReceivingWebhook[] = []
    const respond = answerLate(random.fork(1))
    for (let made = 0; made < 2; made++)
      targets.push(await hooks.add(sql, testSecrets(), projects[1]!.id, respond))
    followers.push(...(await startDense(fleet, random)))

    load.take()
    load.setRate(paced)
    const startMs = performance.now()
    const sampling = startSampling(async lastedMs => {
      const atMs = performance.now() - startMs
      samples.push(await takeSample({ fleet, load, followers, lives, lastedMs, atMs }))
    })
    const { marks, table, problems } = await restartAtRandom(
      { fleet, lives },
      { random: random.fork(2), seconds, startMs },
    )
    await load.stop()
    const endMs = performance.now()
    const drainedMs = await untilEmpty(sql, SETTLE_MS)
    if (drainedMs === undefined) problems.push(`the outbox is not empty after ${SETTLE_MS} ms`)
    problems.push(...(await untilCaughtUp(fleet, followers)))
    await sampling.stop()
    const leftS = samples.at(-1)?.outboxAgeS
    if (leftS !== 0) problems.push(`the oldest delivery is ${leftS} s old at the end`)
    mkdirSync(dirname(plotFile), { recursive: true })
    writeFileSync(plotFile, toPlot(samples, { seconds, rate: paced, marks }))

    const ended = fleet.programs.filter(program => !program.isRunning())
    problems.push(
      ...ended.map(program => `a server ended by itself:\n${program.output().slice(-2_000)}`),
    )
    const stored = await load.check(fleet.databaseUrl)
    const delivered = await checkDeliveries({ sql, hooks, targets })
    const flat = assessSamples(samples, seconds)
    return {
      figures: {
        ...(most !== undefined && { 'most events/s': Math.round(most) }),
        'paced events/s': Math.round(paced),
        ...stored.figures,
        ...delivered.figures,
        connects: followers.reduce((sum, { connects }) => sum + connects, 0),
        'drained after ms': Math.round(drainedMs ?? SETTLE_MS),
        'load ended after s': Math.round((endMs - startMs) / 1_000),
        answers: [...load.outcomes].map(([outcome, times]) => `${outcome}: ${times}`).join(', '),
        curves: plotFile,
      },
      problems: [
        ...problems,
        ...stored.problems,
        ...followers.flatMap(follower => follower.problems),
        ...delivered.problems,
        ...flat.problems,
      ],
      tables: [table, ...(delivered.tables ?? []), flat.table],
    }
  } finally {
    load.setRate(0)
    await load.stop()
    await Promise.all(followers.map(follower => follower.stop()))
    await fleet.close()
  }
}

/** Returns the maximum rate of all clients together, in events/s. */
async function measureMost(load: SoakLoad): Promise<number> {
  load.setRate(Infinity)
  await sleep(MEASURE_MS / 2) // Skips the warm-up of the servers.
  load.take()
  const startMs = performance.now()
  await sleep(MEASURE_MS)
  const { acknowledged } = load.take()
  load.setRate(0)
  return acknowledged / ((performance.now() - startMs) / 1_000)
}

/** Starts two followers of the busy project, and one of the other. */
async function startDense({ sql, projects, urls }: Fleet, random: Random): Promise<Follower[]> {
  return Promise.all(
    [0, 0, 1].map(async (nth, name) => {
      const { id } = projects[nth]!
      const [row] = await sql<[{ organization_id: string }]>`
        select organization_id from projects where id = ${id}
      `
      const organization = { uuid: row.organization_id }
      const account = await newMember({ sql, url: '' }, organization, 'viewer')
      return startFollower({
        name: `follower ${name}`,
        projectId: id,
        project: toId('prj', id),
        cookie: account.cookie,
        after: undefined,
        isDense: true,
        servers: urls,
        random: random.fork(1_000 + name),
      })
    }),
  )
}

/** One in a hundred first attempts fails; some answers are slow. */
function answerLate(random: Random): Parameters<WebhookReceiver['add']>[3] {
  return (response, isFirst) => {
    const drawn = random.next()
    if (isFirst && drawn < 0.01) return void response.writeHead(500).end()
    if (drawn < 0.1) return void setTimeout(() => response.end(), random.below(200))
    response.end()
  }
}

/** Takes a sample every five seconds, and a last one when it stops. */
function startSampling(take: (lastedMs: number) => Promise<void>): { stop(): Promise<void> } {
  const stopped = new AbortController()
  const running = (async () => {
    let lastMs = performance.now()
    let isOver = false
    while (!isOver) {
      isOver = !(await sleep(EVERY_MS, true, { signal: stopped.signal }).catch(() => false))
      const nowMs = performance.now()
      await take(nowMs - lastMs)
      lastMs = nowMs
    }
  })()
  return {
    async stop() {
      stopped.abort()
      await running
    },
  }
}

/** Waits until the followers are at the ends of the logs; returns those that are not. */
async function untilCaughtUp({ sql }: Fleet, followers: readonly Follower[]): Promise<string[]> {
  const logs = await sql<{ project_id: string; last: number }[]>`
    select project_id, last_seq::int as last from event_logs
  `
  const heads = new Map(logs.map(({ project_id, last }) => [project_id, last]))
  const behind = () =>
    followers.filter(({ projectId, cursor }) => cursor < (heads.get(projectId) ?? 0))
  const endMs = performance.now() + CATCH_UP_MS
  while (behind().length > 0 && performance.now() < endMs) await sleep(50)
  return behind().map(
    ({ name, projectId, cursor }) => `${name} is at ${cursor} of ${heads.get(projectId)}`,
  )
}
