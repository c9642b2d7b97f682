import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { WORKER_SETTINGS } from '../../src/db/delivery-settings.ts'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { connect } from '../../src/db/sql.ts'
import { createEgress, type Egress } from '../../src/egress/egress.ts'
import { toSite } from '../../src/http/site.ts'
import { parseId } from '../../src/ids.ts'
import type { DeliveryKind } from '../../src/outbox/kind.ts'
import { startOutbox, type Outbox } from '../../src/outbox/outbox.ts'
import { createPushKind } from '../../src/push/kind.ts'
import { createPushClient } from '../../src/push/push-client.ts'
import { ensureVapidKey } from '../../src/push/vapid.ts'
import { createWebhookKind } from '../../src/webhooks/kind.ts'
import { makeDeliveriesDue } from '../support/ageing.ts'
import { appendEvents } from '../support/deliveries.ts'
import { cloneDatabase } from '../support/postgres.ts'
import { insertSubscription } from '../support/push.ts'
import { startPushService, type PushService } from '../support/push-service.ts'
import { testSecrets } from '../support/secret.ts'
import { newMember, newOrganization } from '../support/signed-in-account.ts'
import {
  hasCommitted,
  isOfExecution,
  sweep,
  type Failure,
  type Lane,
  type Transaction,
} from '../support/sweep.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { scaled, until } from '../support/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts'

// Each message fails in several ways, one after the other.
setDefaultTimeout(scaled(120_000))

/** A database with the receivers of its deliveries. */
interface DeliveryLane extends Lane {
  databaseUrl: string
  hooks: WebhookReceiver
  pushes: PushService
  egress: Egress
  close(): Promise<void>
}

async function openLane(): Promise<DeliveryLane> {
  const databaseUrl = await cloneDatabase()
  const [proxy, hooks, pushes] = await Promise.all([
    startTcpProxy(databaseUrl),
    startWebhookReceiver(),
    startPushService(),
  ])
  const sql = connect(databaseUrl, { name: 'test', max: 2 })
  await ensureVapidKey(sql, testSecrets())
  const egress = createEgress({ allowCidrs: ['127.0.0.0/8'], ca: pushes.ca })
  return {
    ...{ databaseUrl, proxy, hooks, pushes, sql, egress },
    async close() {
      egress.close()
      await sql.end({ timeout: 1 })
      await Promise.all([
        proxy.close(),
        hooks[Symbol.asyncDispose](),
        pushes[Symbol.asyncDispose](),
      ])
    },
  }
}

/** The dispatcher and the worker of a server. */
interface Deliverer {
  outbox: Outbox
  stop(): Promise<void>
}

type ToKind = (lane: DeliveryLane, pool: Pool) => DeliveryKind

/** Starts them with one connection for each purpose, so that messages have one order. */
async function startDeliverer(lane: DeliveryLane, url: string, toKind: ToKind): Promise<Deliverer> {
  const open = (name: string) => createPool(url, { name, max: 1, settings: WORKER_SETTINGS })
  const [worker, deliver] = [open('worker'), open('deliver')]
  await repeat(() => deliver.run(sql => sql`select`))
  const kinds = [toKind(lane, deliver)]
  const outbox = await repeat(() => startOutbox({ pool: worker, kinds }))
  return {
    outbox,
    async stop() {
      await outbox.stop()
      await Promise.all([worker.end(), deliver.end()])
    },
  }
}

/** Repeats work that fails, as on a machine so busy that a pool does not wait long enough. */
async function repeat<Result>(work: () => Promise<Result>): Promise<Result> {
  let done: { result: Result } | undefined
  await until(async () => {
    done = await work().then(
      result => ({ result }),
      () => undefined,
    )
    return done !== undefined
  })
  return done!.result
}

/** Resolves when a worker has searched for deliveries. The next dispatch then leases its own. */
async function untilScanned(proxy: TcpProxy): Promise<void> {
  const { held } = proxy.watch(
    ({ from, type, statement }) => from === 'server' && type === 'Z' && statement.includes(OF_SCAN),
  )
  const { pass } = await held
  pass()
}

const OF_SCAN = 'with recursive targets'
/** Statements that a timer starts. */
const OF_TIMERS = [OF_SCAN, 'with slice as materialized', 'as pending']

interface Subject {
  lane: DeliveryLane
  projectId: string
  targetId: string
  deliverer: Deliverer
  toKind: ToKind
  /** Returns how often the event arrived. */
  countArrived(): number
}

/** The deliveries of a project. */
interface State {
  pending: number
  /** The number of failed attempts of pending deliveries that wait for the next one. */
  waiting: number
  /** The states of ended deliveries with their attempts. */
  ended: string[]
  dead: number
  /** The number of events that are not dispatched. */
  behind: number
  /** The number of recorded attempts. */
  recorded: number
  /** The failures that the webhook's circuit breaker counts. */
  failures: number
}

async function readState(subject: Subject, kind: string): Promise<State> {
  const { lane, projectId, targetId } = subject
  const [row] = await lane.sql<[State]>`
    select
      (select count(*)::int from outbox where project_id = ${projectId}) as pending,
      (
        select coalesce(sum(attempts), 0)::int from outbox where project_id = ${projectId} and token is null
      ) as waiting,
      to_json(array(
        select state || ' ' || attempts from deliveries where project_id = ${projectId} and kind = ${kind}
      )) as ended,
      (select count(*)::int from dead_letters where project_id = ${projectId}) as dead,
      (
        select (l.last_seq - coalesce(c.seq, 0))::int
        from event_logs l
          left join delivery_cursors c on c.project_id = l.project_id and c.kind = ${kind}
        where l.project_id = ${projectId}
      ) as behind,
      (
        select count(*)::int
        from (
          select from webhook_attempts where project_id = ${projectId}
          union all select from push_subscriptions where id = ${targetId} and is_proven
        ) as r
      ) as recorded,
      (select coalesce(sum(failures), 0)::int from webhooks where project_id = ${projectId}) as failures
  `
  return row
}

/** Makes deliveries due that wait for their next attempt. Leases go on. */
async function endPauses({ lane, projectId }: Subject): Promise<void> {
  await lane.sql`
    update outbox set available_at = now() where project_id = ${projectId} and token is null
  `
}

const isDone = ({ pending, behind }: State) => pending === 0 && behind === 0

interface Plan {
  kind: 'webhook' | 'push'
  toKind: ToKind
  /** Creates the target of a project. */
  addTarget(lane: DeliveryLane): Promise<Pick<Subject, 'projectId' | 'targetId' | 'countArrived'>>
  /** True if the server that fails ends the work by itself. */
  isAlone?: boolean
  /** Only these statements fail. */
  statements?: readonly string[]
  /** How often the event arrives. */
  arrivals: number
  /** Returns problems of what the server that failed leaves. */
  checkBefore?(state: State): string[]
  check(state: State, failure: Failure | undefined): string[]
}

function toTransaction(plan: Plan): Transaction<DeliveryLane, Subject> {
  const { kind, toKind, addTarget, isAlone = false, statements = [''] } = plan
  return {
    async prepare(lane) {
      const target = await addTarget(lane)
      const scanned = untilScanned(lane.proxy)
      const deliverer = await startDeliverer(lane, lane.proxy.url, toKind)
      await scanned
      return { lane, toKind, deliverer, ...target }
    },
    belongs: passing =>
      ['tidings worker', 'tidings deliver'].includes(passing.application) &&
      !OF_TIMERS.some(text => passing.statement.includes(text)) &&
      statements.some(text => passing.statement.includes(text)) &&
      isOfExecution(passing),
    async run(subject, failed) {
      const { lane, projectId, deliverer } = subject
      await appendEvents(lane.sql, projectId, 1)
      deliverer.outbox.wake([projectId])
      let hasFailed = false
      void failed.then(async failure => {
        // The server does not know of its lease, which ends.
        if (isAlone && hasCommitted(failure, 'dispatch_'))
          await makeDeliveriesDue(lane.sql, projectId)
        hasFailed = true
      })
      await until(async () => {
        const state = await readState(subject, kind)
        if (isDone(state) || state.waiting > 0) return true
        if (hasFailed && isAlone) deliverer.outbox.wakeWorkers()
        return hasFailed && !isAlone
      })
      await deliverer.stop()
    },
    async check(subject, failure) {
      const { lane, projectId, countArrived } = subject
      const before = await readState(subject, kind)
      const problems = checkHalves(before, countArrived(), failure)
      problems.push(...(plan.checkBefore?.(before) ?? []))
      if (isAlone && !isDone(before)) problems.push(`left ${JSON.stringify(before)}`)
      if (!isDone(before)) {
        // Leases and pauses end, and another server goes on.
        await makeDeliveriesDue(lane.sql, projectId)
        const other = await startDeliverer(lane, lane.databaseUrl, toKind)
        await until(async () => {
          const state = await readState(subject, kind)
          if (state.waiting > 0) {
            await endPauses(subject)
            other.outbox.wakeWorkers()
          }
          return isDone(state)
        })
        await other.stop()
      }
      const state = await readState(subject, kind)
      if (countArrived() !== plan.arrivals) problems.push(`it arrived ${countArrived()} times`)
      if (state.dead > 0) problems.push('there is a dead letter')
      const received = [...lane.hooks.forgeries, ...lane.pushes.problems]
      return [...problems, ...received, ...plan.check(state, failure)]
    },
  }
}

/** Checks that each transaction happened as a whole or not at all. */
function checkHalves(state: State, arrived: number, failure: Failure | undefined): string[] {
  const problems: string[] = []
  const isDispatched = hasCommitted(failure, 'dispatch_')
  if (state.behind > 0 && (isDispatched || state.pending > 0))
    problems.push(`dispatched is ${isDispatched}, and ${JSON.stringify(state)}`)
  if (state.behind === 0 && state.pending + state.ended.length !== 1)
    problems.push(`the event has ${JSON.stringify(state)}`)
  if (state.ended.length > 0 && arrived === 0) problems.push('it ended before it arrived')
  return problems
}

/** Compares the record of the delivery, and of its `count` attempts, with what happened. */
function checkRecords(
  { ended, recorded }: State,
  { failure, reads, write, count = 1 }: Records,
): string[] {
  const isIn = (text: string) => failure?.message.statement.includes(text) ?? false
  // An error that is no matter of waiting counts as an attempt, without a request.
  const isError = failure?.way === 'refused' || failure?.way === 'deadlock'
  const attempts = isError && reads.some(isIn) ? [count, count + 1] : [count]
  const isExpected = attempts.some(one => ended.join() === `delivered ${one}`)
  const problems = isExpected ? [] : [`it ended as ${ended}`]
  // A record that cannot be stored is given up, because the delivery would be repeated for it.
  const mayLack = isLost(failure, write) ? 1 : 0
  if (recorded > count || recorded < count - mayLack)
    problems.push(`${recorded} of ${count} attempts are recorded`)
  return problems
}

interface Records {
  failure: Failure | undefined
  /** Texts of the statements that read what an attempt needs. */
  reads: readonly string[]
  /** Texts of the statements that record an attempt. */
  write: readonly string[]
  count?: number
}

/** True if the transaction that has this statement failed, and was not committed. */
function isLost(failure: Failure | undefined, texts: readonly string[]): boolean {
  if (!failure || hasCommitted(failure, texts[0] ?? '')) return false
  return texts.some(text => failure.message.statement.includes(text))
}

let lanes: DeliveryLane[]
beforeAll(async () => {
  lanes = await Promise.all(Array.from({ length: 3 }, openLane))
})
afterAll(() => Promise.all(lanes.map(lane => lane.close())))

describe('a webhook', () => {
  const toWebhookKind: ToKind = ({ egress }, pool) =>
    createWebhookKind({ pool, egress, secrets: testSecrets() })

  /** Adds a webhook that answers with these statuses in turn; the last one repeats. */
  const toAddTarget =
    (statuses: number[]): Plan['addTarget'] =>
    async lane => {
      const { project } = await newOrganization(lane)
      let arrived = 0
      const { targetId } = await lane.hooks.add(lane.sql, testSecrets(), project.uuid, response => {
        const status = statuses[Math.min(arrived++, statuses.length - 1)]
        response.writeHead(status ?? 200).end()
      })
      return { projectId: project.uuid, targetId, countArrived: () => arrived }
    }

  const reads = ['read_webhook_deliveries']

  test('delivery: a webhook arrives once, whichever message of dispatch, attempt or settlement fails', async () => {
    const { messages, problems } = await sweep(
      lanes,
      toTransaction({
        kind: 'webhook',
        toKind: toWebhookKind,
        addTarget: toAddTarget([200]),
        arrivals: 1,
        check: (state, failure) =>
          checkRecords(state, { failure, reads, write: ['insert_webhook_attempts'] }),
      }),
    )
    expect(problems).toEqual([])
    // Cursor, dispatch, read, record and settlement.
    expect(messages.filter(one => one === 'client S')).toHaveLength(5)
  })

  test('delivery: the same holds if the server that failed goes on by itself', async () => {
    const { messages, problems } = await sweep(
      lanes,
      toTransaction({
        kind: 'webhook',
        toKind: toWebhookKind,
        addTarget: toAddTarget([200]),
        isAlone: true,
        statements: ['insert into delivery_cursors', 'dispatch_webhooks'],
        arrivals: 1,
        check: (state, failure) => checkRecords(state, { failure, reads: [], write: ['-'] }),
      }),
    )
    expect(problems).toEqual([])
    expect(messages.filter(one => one === 'client S')).toHaveLength(2)
  })

  test('delivery: an attempt that fails is counted once, and repeated, whichever message fails', async () => {
    const write = ['insert_webhook_attempts', 'begin', 'from webhooks', 'update webhooks', 'commit']
    const { messages, problems } = await sweep(
      lanes,
      toTransaction({
        kind: 'webhook',
        toKind: (lane, pool) => ({ ...toWebhookKind(lane, pool), leasesNew: false }),
        addTarget: toAddTarget([500, 200]),
        statements: ['claim_deliveries', 'store_settlements', ...write],
        arrivals: 2,
        checkBefore: ({ recorded, failures, ended }) =>
          ended.length > 0 || recorded === failures
            ? []
            : [`${recorded} attempts are recorded, and ${failures} failures`],
        check: (state, failure) => checkRecords(state, { failure, reads: [], write, count: 2 }),
      }),
    )
    expect(problems).toEqual([])
    expect(messages).toContain('client Q')
  })
})

test('delivery: a push arrives once, whichever message of dispatch, attempt or settlement fails', async () => {
  const toPushKind: ToKind = ({ egress, pushes }, pool) => {
    const parts = {
      pool,
      egress,
      secrets: testSecrets(),
      pushHosts: [pushes.host],
      vapidSubject: 'mailto:ops@example.com',
    }
    const pushClient = createPushClient(parts)
    return createPushKind({ ...parts, pushClient, site: toSite('http://localhost') })
  }
  const { messages, problems } = await sweep(
    lanes,
    toTransaction({
      kind: 'push',
      toKind: toPushKind,
      async addTarget(lane) {
        const organization = await newOrganization(lane)
        const member = await newMember({ sql: lane.sql, url: '' }, organization, 'admin')
        const browser = lane.pushes.subscribe()
        const id = await insertSubscription(lane, member, browser)
        return {
          projectId: organization.project.uuid,
          targetId: parseId('psh', id) ?? '',
          countArrived: () => lane.pushes.of(browser).length,
        }
      },
      arrivals: 1,
      check: (state, failure) =>
        checkRecords(state, {
          failure,
          reads: ['effective_notification_settings', 'vapid_keys'],
          write: ['update push_subscriptions'],
        }),
    }),
  )
  expect(problems).toEqual([])
  expect(messages).toContain('client Q')
})
