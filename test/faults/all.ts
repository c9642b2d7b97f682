import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toArray } from '../../src/database/arrays.ts'
import type { Sql } from '../../src/database/sql.ts'
import { startPushService } from '../support/servers/push-service.ts'
import { testSecrets } from '../support/secret.ts'
import { startTcpProxy, type TcpProxy } from '../support/servers/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { findWrongCounts } from '../support/wrong-counts.ts'
import { startDeletions } from './all-deletions.ts'
import { injectFaults } from './all-faults.ts'
import { addDevices, checkPushes } from './all-push.ts'
import { startExpiringProject } from './all-retention.ts'
import type { RemovedEvent, RunResult } from './ledger-check.ts'
import { checkDeliveries } from './delivery-check.ts'
import { checkFollowers, startFollowers } from './feed.ts'
import { makeFolder } from '../support/scratch.ts'
import { startFleet, untilEmpty } from './fleet.ts'
import type { Follower } from './follower.ts'
import {
  startWebhookReceiver,
  type ReceivingWebhook,
  type WebhookReceiver,
} from './webhook-receiver.ts'
import { createRandom, type Random } from './random.ts'
import { scaled } from '../support/until.ts'

const TARGETS = 2
/** Eight clients send about 30 events a second, which leaves time to deliver them. */
const PAUSE_MS = 250
/** Enough for the lease of a push, its next attempts, and a counted burst of a minute. */
const SETTLE_MS = 240_000

/**
 * Runs everything at once: ingest, followers, webhooks, pushes, a short retention, deletions and
 * restores. Meanwhile servers, Postgres and the network are broken. Then everything must settle,
 * and is compared.
 */
export async function runAll({
  seed,
  seconds,
}: {
  seed: number
  seconds: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  await using hooks = await startWebhookReceiver()
  await using service = await startPushService()
  const folder = makeFolder()
  const authority = join(folder, 'authority.pem')
  writeFileSync(authority, service.ca)
  const proxies: TcpProxy[] = []
  const fleet = await startFleet({
    servers: 3,
    projects: 3,
    isEmbedded: true,
    async between(databaseUrl, index) {
      await proxies[index]?.close()
      const proxy = await startTcpProxy(databaseUrl)
      proxies[index] = proxy
      return proxy.url
    },
    env: {
      EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
      PUSH_HOSTS: service.host,
      VAPID_SUBJECT: 'mailto:ops@example.com',
      NODE_EXTRA_CA_CERTS: authority,
    },
  })
  const followers: Follower[] = []
  const leavers = new Map<string, RemovedEvent>()
  const problems: string[] = []
  try {
    const { sql, projects } = fleet
    const targets: ReceivingWebhook[] = []
    for (const { id } of projects) {
      for (let made = 0; made < TARGETS; made++) {
        const respond = answerBadly(random.fork(100 + targets.length))
        targets.push(await hooks.add(sql, testSecrets(), id, respond))
      }
    }
    const devices = await addDevices(fleet, service)
    const load = fleet.load({ clients: 8, random, pauseMs: PAUSE_MS })
    // Some followers start after one of the first ten events.
    await until(async () => {
      const [row] = await sql<[{ least: number }]>`
        select min(last_seq)::int as least from event_logs
        where project_id = any(${toArray(projects.map(({ id }) => id))}::uuid[])
      `
      return row.least >= 10
    })
    followers.push(...(await startFollowers(fleet, random)))
    const [brief, ...others] = projects.map(({ id }) => id)
    const retirement = await startExpiringProject(fleet, { projectId: brief!, followers, leavers })
    const deletions = await startDeletions(fleet, {
      projectIds: others,
      random: random.fork(200),
      leavers,
    })

    const broken = await injectFaults({
      fleet,
      load,
      followers,
      proxies,
      random: random.fork(300),
      seconds,
    })
    problems.push(...broken.problems)

    await Promise.all([load.stop(), deletions.stop(), retirement.stop()])
    const startMs = performance.now()
    if ((await untilEmpty(sql, scaled(SETTLE_MS))) === undefined)
      problems.push(`the outbox is not empty after ${SETTLE_MS} ms`)
    const cutBefore = await retirement.countCut()
    // A start runs retention at once; otherwise it may take a minute.
    await fleet.programs[0]!.kill('SIGTERM')
    await fleet.restart(0)
    await untilLeft(fleet.sql, [...leavers.values()]).catch(() =>
      problems.push(`expired or deleted events are still there after ${SETTLE_MS} ms`),
    )
    const settledMs = performance.now() - startMs

    const stored = await fleet.check(leavers)
    const seen = await checkFollowers(fleet, followers, leavers)
    const delivered = await checkDeliveries({
      sql,
      hooks,
      targets,
      leavers,
    })
    const pushed = await checkPushes({ sql, service, devices, leavers })
    for (const { id } of projects) problems.push(...(await findWrongCounts(sql, id)))
    return {
      figures: {
        ...stored.figures,
        ...broken.figures,
        ...deletions.figures(),
        'retired by age': retirement.retired(),
        'cut while it ran': cutBefore,
        ...seen.figures,
        ...delivered.figures,
        ...pushed.figures,
        'settled after ms': Math.round(settledMs),
      },
      problems: [
        ...problems,
        ...stored.problems,
        ...seen.problems,
        ...delivered.problems,
        ...pushed.problems,
      ],
    }
  } finally {
    await Promise.all(followers.map(follower => follower.stop()))
    await fleet.close()
    await Promise.all(proxies.map(proxy => proxy.close()))
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Of first attempts some fail, some hang and some are reset; later ones may be slow. A second
 * failure would take minutes.
 */
function answerBadly(random: Random): Parameters<WebhookReceiver['add']>[3] {
  return (response, isFirst) => {
    const drawn = random.next()
    if (isFirst && drawn < 0.05) return void response.writeHead(500).end()
    if (isFirst && drawn < 0.08) return void response.socket?.resetAndDestroy()
    if (isFirst && drawn < 0.085) return
    if (drawn < 0.2) return void setTimeout(() => response.end(), random.below(300))
    response.end()
  }
}

/** Resolves when no event is hidden and all expired ones are gone. */
function untilLeft(sql: Sql, leavers: readonly RemovedEvent[]): Promise<void> {
  const ids = toArray(leavers.filter(({ fate }) => fate === 'gone').map(({ id }) => id))
  const find = () =>
    sql`select from events where deleted_at is not null or id = any(${ids}::uuid[]) limit 1`
  return until(async () => (await find()).length === 0, SETTLE_MS)
}
