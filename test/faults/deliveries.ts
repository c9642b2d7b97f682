import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import type { Sql } from '../../src/database/sql.ts'
import { openSecrets } from '../../src/database/secrets/open-secrets.ts'
import { SHORT_LEASE_MS, SHORT_TIMEOUT_MS } from '../support/servers/delivery-server.ts'
import type { Program } from '../support/servers/process.ts'
import { until } from '../support/until.ts'
import type { RunResult } from './ledger-check.ts'
import { createServedWorkers, killAll, listLiveWorkers } from './served-workers.ts'
import { checkDeliveries, type Fault } from './delivery-check.ts'
import { listPostgres, startFleet, type Fleet } from './fleet.ts'
import {
  startWebhookReceiver,
  type ReceivingWebhook,
  type WebhookReceiver,
} from './webhook-receiver.ts'
import { createRandom, type Random } from './random.ts'
import { scaled } from '../support/until.ts'

const KINDS = [
  'kill',
  'kill all',
  'freeze',
  'postmaster',
  'all of Postgres',
  'stop',
  'kill worker',
] as const
type Kind = (typeof KINDS)[number]
const TARGETS = 2
/** The time past a lease until another worker has the delivery: polls, on a busy machine. */
const SLACK_MS = 8_000
/** The server's default: a lease is twice the timeout of an attempt. */
const TIMEOUT_MS = 15_000
const LEASE_MS = 30_000
/** The maximum number of hangs per receiver. */
const MAX_HANGS = 3
const SERVED_MS = 30_000
/** Six clients send about 15 events a second, which leaves time to deliver them. */
const PAUSE_MS = 400
const DRAIN_MS = scaled(90_000)

/**
 * Servers accept events and deliver them as signed webhooks. Meanwhile they are killed, frozen past
 * their leases and stopped, and Postgres is killed. Every event must reach every webhook, and
 * repeats need a fault as explanation. Short leases allow more faults in the same time. With
 * several processes per server, one of them is frozen or killed at times, and each must deliver
 * something.
 */
export async function runDeliveries({
  seed,
  seconds,
  isShort = false,
  servers = 2,
  workers,
  kinds = KINDS,
}: {
  seed: number
  seconds: number
  isShort?: boolean
  servers?: number
  workers?: number
  kinds?: readonly Kind[]
}): Promise<RunResult> {
  const random = createRandom(seed)
  const leaseMs = isShort ? SHORT_LEASE_MS : LEASE_MS
  const timeoutMs = isShort ? SHORT_TIMEOUT_MS : TIMEOUT_MS
  // A worker that took over may have to wait for a hanging attempt at the same receiver.
  const slackMs = SLACK_MS + timeoutMs
  const hooks = await startWebhookReceiver()
  const fleet = await startFleet({
    servers,
    workers,
    projects: 3,
    isEmbedded: true,
    env: { EGRESS_ALLOW_CIDRS: '127.0.0.0/8' },
    ...(isShort && { program: join(import.meta.dirname, '../support/servers/delivery-server.ts') }),
  })
  try {
    const { sql, dataDir = '' } = fleet
    const secrets = await openSecrets(sql, { appSecret: undefined, oldAppSecrets: [], dataDir })
    const targets: ReceivingWebhook[] = []
    const served = createServedWorkers(fleet.programs, hooks.port)
    const usable = kinds.filter(kind => kind !== 'kill worker' || isCrew(fleet))
    for (const { id } of fleet.projects) {
      for (let made = 0; made < TARGETS; made++) {
        const answer = answerBadly(random.fork(made))
        targets.push(
          await hooks.add(sql, secrets, id, (response, isFirst) => {
            served.sample()
            answer(response, isFirst)
          }),
        )
      }
    }
    fleet.load({ clients: 6, random, pauseMs: PAUSE_MS })

    const faults: Fault[] = []
    const problems: string[] = []
    const endMs = performance.now() + seconds * 1_000
    for (let nth = 0; performance.now() < endMs; nth++) {
      await sleep(500 + random.below(2_500))
      const { fault, problems: found } = await breakOne(usable[nth % usable.length]!, {
        fleet,
        random,
        leaseMs,
        slackMs,
      })
      if (fault) faults.push(fault)
      problems.push(...found)
    }

    await until(() => served.isComplete, SERVED_MS).catch(() => {
      problems.push('some workers deliver nothing')
    })
    const appended = await fleet.check()
    const drainedMs = await untilEmpty(sql)
    if (drainedMs === undefined) problems.push(`the outbox is not empty after ${DRAIN_MS} ms`)
    const delivered = await checkDeliveries({
      sql,
      hooks,
      targets,
      explained: { faults, timeoutMs, leaseMs, slackMs },
    })
    return {
      figures: {
        faults: faults.length,
        ...served.figures,
        ...appended.figures,
        ...delivered.figures,
        'drained after ms': Math.round(drainedMs ?? DRAIN_MS),
      },
      problems: [...problems, ...appended.problems, ...delivered.problems],
    }
  } finally {
    await fleet.close()
    await hooks[Symbol.asyncDispose]()
  }
}

/** Returns the fault that may explain repeats; a graceful stop explains none. */
async function breakOne(
  kind: Kind,
  {
    fleet,
    random,
    leaseMs,
    slackMs,
  }: { fleet: Fleet; random: Random; leaseMs: number; slackMs: number },
): Promise<{ fault?: Fault; problems: string[] }> {
  const { programs, sql } = fleet
  const index = random.below(programs.length)
  const startMs = performance.now()
  const isCrash = kind === 'postmaster' || kind === 'all of Postgres'
  const toFault = (): Fault => ({ kind, isCrash, startMs, endMs: performance.now() })
  switch (kind) {
    case 'stop': {
      const { code, signal: by } = await programs[index]!.kill('SIGTERM')
      await fleet.restart(index)
      return { problems: code === 0 ? [] : [`a stop ended with ${by ?? code}`] }
    }
    case 'kill': {
      const held = await readHeld(sql)
      await killAll(programs[index]!)
      const fault = toFault()
      // Another worker takes over its deliveries before it is restarted.
      const problems = await checkTakenOver(sql, held, leaseMs + slackMs)
      await fleet.restart(index)
      return { fault, problems }
    }
    case 'kill all': {
      await Promise.all(programs.map(killAll))
      const fault = toFault()
      await Promise.all([...programs.keys()].map(one => fleet.restart(one)))
      return { fault, problems: [] }
    }
    case 'freeze': {
      const pid = pickProcess(programs[index]!, random)
      sendSignal(pid, 'SIGSTOP')
      await sleep(leaseMs + 500 + random.below(2_000))
      sendSignal(pid, 'SIGCONT')
      return { fault: toFault(), problems: [] }
    }
    case 'kill worker': {
      const pid = pickProcess(programs[index]!, random)
      sendSignal(pid, 'SIGKILL')
      // Until its end it would count as a worker that serves.
      await until(() => !listLiveWorkers(programs[index]!).includes(pid))
      return { fault: toFault(), problems: [] }
    }
    default: {
      const pids = listPostgres(fleet.dataDir ?? '')
      const startedAt = await readStart(sql)
      for (const pid of kind === 'postmaster' ? pids.slice(0, 1) : pids) sendSignal(pid, 'SIGKILL')
      await untilStartedAnew(sql, startedAt)
      return { fault: toFault(), problems: [] }
    }
  }
}

/** Picks the server's single process, or one of its workers. */
function pickProcess(program: Program, random: Random): number {
  const workers = listLiveWorkers(program)
  return workers.length > 0 ? random.pick(workers) : program.pid
}

const isCrew = ({ programs }: Fleet) =>
  programs.some(program => listLiveWorkers(program).length > 0)

/**
 * One in twenty first attempts fails: a second failure would take minutes. Some are slow. A few
 * hang, never two at once.
 */
function answerBadly(random: Random): Parameters<WebhookReceiver['add']>[3] {
  let hangs = 0
  let isHanging = false
  return (response, isFirst) => {
    const drawn = random.next()
    if (isFirst && !isHanging && hangs < MAX_HANGS && drawn > 0.95) {
      hangs++
      isHanging = true
      response.once('close', () => (isHanging = false))
      return
    }
    if (isFirst && drawn < 0.05) return void response.writeHead(500).end()
    if (drawn < 0.2) return void setTimeout(() => response.end(), random.below(300))
    response.end()
  }
}

/** Returns the current leases, by delivery id. */
async function readHeld(sql: Sql): Promise<{ id: string; token: string }[]> {
  return [
    ...(await sql<{ id: string; token: string }[]>`
      select id, token from outbox where token is not null and available_at > now()
    `),
  ]
}

/** Waits until the leases are over; returns the deliveries that no worker has taken over. */
async function checkTakenOver(
  sql: Sql,
  held: { id: string; token: string }[],
  giveUpAfterMs: number,
): Promise<string[]> {
  await sleep(giveUpAfterMs)
  const still = new Map((await readAll(sql)).map(({ id, token }) => [id, token]))
  return held
    .filter(({ id, token }) => still.get(id) === token)
    .map(({ id }) => `nobody has taken over ${id}`)
}

async function readAll(sql: Sql): Promise<{ id: string; token: string | null }[]> {
  return await sql<{ id: string; token: string | null }[]>`select id, token from outbox`
}

export async function readStart(sql: Sql): Promise<string> {
  const [row] = await sql<[{ at: string }]>`select pg_postmaster_start_time()::text as at`
  return row.at
}

/** A process of the killed Postgres may still answer for a moment. */
export async function untilStartedAnew(sql: Sql, before: string): Promise<void> {
  await until(async () => {
    const at = await readStart(sql).catch(() => before)
    return at !== before
  }, 60_000)
}

/**
 * Resolves with the milliseconds until every log is dispatched and nothing is pending; undefined on
 * timeout.
 */
export async function untilEmpty(sql: Sql, drainMs = DRAIN_MS): Promise<number | undefined> {
  const startMs = performance.now()
  while (performance.now() - startMs < drainMs) {
    // An attempt that a fault has used up delays the next one by minutes.
    await sql`
      update outbox set available_at = now()
      where token is null and available_at > now() + interval '1 minute'
    `
    const [row] = await sql<[{ is_empty: boolean }]>`
      select not exists (select from outbox) and not exists (
        select
        from event_logs l
          left join delivery_cursors c on c.project_id = l.project_id
        where l.last_seq > coalesce(c.seq, 0)
      ) as is_empty
    `
    if (row.is_empty) return performance.now() - startMs
    await sleep(100)
  }
  return undefined
}
