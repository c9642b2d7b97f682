import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { testSecrets } from '../support/secret.ts'
import type { Pair } from '../support/servers/standby.ts'
import { checkDeliveries } from './delivery-check.ts'
import { checkFollowers, startFollowers } from './feed.ts'
import { startFleet, untilEmpty } from './fleet.ts'
import type { Follower } from './follower.ts'
import type { RunResult } from './ledger-check.ts'
import { createRandom } from './random.ts'
import { startWebhookReceiver } from './webhook-receiver.ts'
import { scaled } from '../support/until.ts'

/** A Postgres with standbys, whose primary can be lost. */
export interface FailoverCluster<Loss extends string = string> extends AsyncDisposable {
  /** The URL of the database with all hosts. */
  url: string
  /** Waits for a synchronous standby that has everything. First brings back what was lost. */
  restore(): Promise<void>
  lose(loss: Loss): Promise<void>
  /** Resolves when another Postgres accepts writes. */
  promote(): Promise<void>
}

/** The ways to lose the primary before its standby is promoted. `isolated` leaves it running. */
export const PAIR_LOSSES = ['killed', 'isolated', 'frozen'] as const
const RECOVERY_MS = scaled(10_000)
const PAUSE_MS = 100

/**
 * Two servers with all hosts in DATABASE_URL run under load. Again and again the primary is lost,
 * and its synchronous standby is promoted. Writes must be back within 10 s of each promotion. All
 * that was acknowledged must be stored, with a dense seq, and seen by every follower and webhook.
 */
export async function runStandby<Loss extends string>({
  seed,
  times,
  cluster,
  losses,
}: {
  seed: number
  times: number
  cluster: FailoverCluster<Loss>
  losses: readonly Loss[]
}): Promise<RunResult> {
  const random = createRandom(seed)
  await using hooks = await startWebhookReceiver()
  await cluster.restore()
  const fleet = await startFleet({
    servers: 2,
    projects: 2,
    databaseUrl: cluster.url,
    env: { EGRESS_ALLOW_CIDRS: '127.0.0.0/8' },
    program: join(import.meta.dirname, '../support/servers/delivery-server.ts'),
  })
  const followers: Follower[] = []
  const problems: string[] = []
  const slowest = new Map<string, number>()
  const note = (figure: string, ms: number) =>
    slowest.set(figure, Math.max(slowest.get(figure) ?? 0, Math.round(ms)))
  try {
    const { sql, projects } = fleet
    const targets = await Promise.all(
      projects.map(({ id }) => hooks.add(sql, testSecrets(), id, response => void response.end())),
    )
    const load = fleet.load({ clients: 6, random, pauseMs: PAUSE_MS })
    // Some followers begin after one of the first ten events.
    await load.successes(40)
    followers.push(...(await startFollowers(fleet, random, { hasPromotions: true })))
    for (let nth = 0; nth < times; nth++) {
      await load.successes(20)
      await sleep(random.below(300))
      const loss = losses[nth % losses.length]!
      const lostMs = performance.now()
      await cluster.lose(loss)
      await cluster.promote()
      const promotedMs = performance.now()
      note(`${loss}: promoted after ms`, promotedMs - lostMs)
      for (const url of fleet.urls()) {
        const tookMs = (await load.nextSuccess(url)) - promotedMs
        note(`${loss}: slowest ms`, tookMs)
        if (tookMs > RECOVERY_MS) problems.push(`${loss}: first success after ${tookMs} ms`)
      }
      await cluster.restore()
    }
    await load.successes(20)
    await load.stop()
    const drainedMs = await untilEmpty(sql)
    if (drainedMs === undefined) problems.push('the outbox is not empty')
    const stored = await fleet.check()
    const seen = await checkFollowers(fleet, followers)
    const delivered = await checkDeliveries({ sql, hooks, targets })
    return {
      figures: {
        promotions: times,
        ...stored.figures,
        ...seen.figures,
        ...delivered.figures,
        ...Object.fromEntries(slowest),
      },
      problems: [...problems, ...stored.problems, ...seen.problems, ...delivered.problems],
    }
  } finally {
    await Promise.all(followers.map(follower => follower.stop()))
    await fleet.close()
  }
}

/** Returns a pair that is replicated synchronously. */
export function toCluster(pair: Pair): FailoverCluster<(typeof PAIR_LOSSES)[number]> {
  return {
    url: pair.url,
    async restore() {
      await pair.addStandby()
      await pair.setSynchronous(true)
    },
    async lose(loss) {
      if (loss === 'killed') await pair.killPrimary()
      if (loss === 'frozen') pair.signal('primary', 'SIGSTOP')
    },
    promote: () => pair.promote(),
    [Symbol.asyncDispose]: () => pair[Symbol.asyncDispose](),
  }
}
