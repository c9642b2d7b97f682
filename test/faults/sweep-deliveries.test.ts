import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ServerResponse } from 'node:http'
import { WORKER_SETTINGS } from '../../src/database/session.ts'
import { createPool, type Pool } from '../../src/database/pool.ts'
import { createEgress, type Egress } from '../../src/http/egress/egress.ts'
import { toSite } from '../../src/http/site.ts'
import { parseId } from '../../src/base/ids.ts'
import type { DeliveryKind } from '../../src/delivery/outbox/delivery-kind.ts'
import { startOutbox, type Outbox } from '../../src/delivery/outbox/outbox.ts'
import { createPushKind } from '../../src/delivery/push/sender.ts'
import { createPushClient } from '../../src/delivery/push/encrypt-and-send.ts'
import { ensureVapidKey } from '../../src/delivery/push/vapid.ts'
import { createWebhookKind } from '../../src/delivery/webhooks/sender.ts'
import { makeDeliveriesDue } from '../support/worlds/ageing.ts'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { insertSubscription } from '../support/worlds/push.ts'
import { startPushService, type PushService } from '../support/servers/push-service.ts'
import { testSecrets } from '../support/secret.ts'
import { newMember, newOrganization } from '../support/worlds/signed-in-account.ts'
import {
  hasCommitted,
  isOfExecution,
  sweep,
  type Failure,
  type Lane,
  type Transaction,
} from '../support/sweep.ts'
import { startTcpProxy, type TcpProxy } from '../support/servers/tcp-proxy.ts'
import { scaled, until } from '../support/until.ts'
import { startWebhookReceiver, type Respond, type WebhookReceiver } from './webhook-receiver.ts'
import { openSql } from '../support/sql.ts'

/** The connections of a server: one for each purpose, so that messages have one order. */
interface ServerPools {
  worker: Pool
  deliver: Pool
}

/** A database with the receivers of its deliveries. */
interface DeliveryLane extends Lane {
  /** Those of the server that fails. */
  failing: ServerPools
  /** Those of the server that brings its work to an end. */
  other: ServerPools
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
  const sql = openSql(databaseUrl, { max: 2 })
  await ensureVapidKey(sql, testSecrets())
  const egress = createEgress({ allowCidrs: ['127.0.0.0/8'], ca: pushes.ca })
  const [failing, other] = [openPools(proxy), openPools(proxy)]
  return {
    ...{ failing, other, proxy, hooks, pushes, sql, egress },
    async close() {
      egress.close()
      await sql.end({ timeout: 1 })
      const pools = [failing, other].flatMap(({ worker, deliver }) => [worker, deliver])
      await Promise.all(pools.map(pool => pool.end()))
      await Promise.all([
        proxy.close(),
        hooks[Symbol.asyncDispose](),
        pushes[Symbol.asyncDispose](),
      ])
    },
  }
}

type ToKind = (lane: DeliveryLane, pool: Pool) => DeliveryKind

function openPools({ url }: TcpProxy): ServerPools {
  // A deadline would fail one more message on a machine that is very busy.
  const deadlineMs = scaled(60_000)
  const open = (name: string) =>
    createPool(url, { name, max: 1, deadlineMs, settings: WORKER_SETTINGS })
  return { worker: open('worker'), deliver: open('deliver') }
}

/** Starts them once both connections are open, and the worker has searched for deliveries. */
async function startDeliverer(
  { proxy }: DeliveryLane,
  { worker, deliver }: ServerPools,
  kind: DeliveryKind,
): Promise<Outbox> {
  for (const pool of [worker, deliver]) await repeat(() => pool.run(sql => sql`select`))
  const scans = countAnswers(proxy, OF_SCAN)
  const outbox = await repeat(() => startOutbox({ pool: worker, kinds: [kind] }))
  // A dispatch before the scan leases no deliveries.
  await until(() => scans.count > 0)
  scans.end()
  return outbox
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

/** Counts the answers of Postgres to statements that contain `text`. */
function countAnswers(proxy: TcpProxy, text: string): { readonly count: number; end(): void } {
  let count = 0
  const { end } = proxy.watch(({ from, type, statement }) => {
    if (from === 'server' && type === 'Z' && statement.includes(text)) count++
    return false
  })
  return {
    get count() {
      return count
    },
    end,
  }
}

const OF_SCAN = 'as "dueInMs"'
const OF_SETTLEMENT = 'settle_free_deliveries'
/** Statements that a timer starts. */
const OF_TIMERS = [
  OF_SCAN,
  'with slice as materialized',
  'as pending',
  'delivery_targets t set',
  'delete from delivery_targets',
]

interface Subject extends Target {
  lane: DeliveryLane
  outbox: Outbox
}

interface Target {
  projectId: string
  targetId: string
  /** Returns the events that arrived, in order. */
  listArrived(): string[]
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
  addTarget(lane: DeliveryLane): Promise<Target>
  /** Only these statements fail. */
  statements?: readonly string[]
  /** The number of events. */
  events?: number
  /** How often each event arrives. */
  arrivals: number
  /** Returns problems of what the server that failed leaves. */
  checkBefore?(state: State): string[]
  check(state: State, failure: Failure | undefined): string[]
}

function toTransaction(plan: Plan): Transaction<DeliveryLane, Subject> {
  const { kind, toKind, addTarget, statements = [''], events = 1 } = plan
  return {
    async prepare(lane) {
      const target = await addTarget(lane)
      const { failing } = lane
      return {
        lane,
        outbox: await startDeliverer(lane, failing, toKind(lane, failing.deliver)),
        ...target,
      }
    },
    belongs: passing =>
      ['tidings worker', 'tidings deliver'].includes(passing.application) &&
      !OF_TIMERS.some(text => passing.statement.includes(text)) &&
      statements.some(text => passing.statement.includes(text)) &&
      isOfExecution(passing),
    async run(subject, failed) {
      const { lane, projectId, outbox } = subject
      const settlements = countAnswers(lane.proxy, OF_SETTLEMENT)
      let failure: Failure | undefined
      void failed.then(one => (failure = one))
      await appendEvents(lane.sql, projectId, events)
      outbox.wake([projectId])
      await until(() => settlements.count > 0 || failure !== undefined)
      settlements.end()
      await outbox.stop()
    },
    async check(subject, failure) {
      const { lane } = subject
      const before = await readState(subject, kind)
      const problems = checkHalves(before, { events, arrived: subject.listArrived(), failure })
      problems.push(...(plan.checkBefore?.(before) ?? []))
      const state = isDone(before) ? before : await goOn(subject, plan)
      const arrived = [...Map.groupBy(subject.listArrived(), id => id).values()]
      if (arrived.length !== events || arrived.some(one => one.length !== plan.arrivals))
        problems.push(`they arrived ${arrived.map(one => one.length).join(', ')} times`)
      if (state.dead > 0) problems.push('there is a dead letter')
      const received = [...lane.hooks.forgeries, ...lane.pushes.problems]
      return [...problems, ...received, ...plan.check(state, failure)]
    },
  }
}

/** Another server brings the work to its end, after the leases of the one that failed. */
async function goOn(subject: Subject, { kind, toKind }: Plan): Promise<State> {
  const { lane, projectId } = subject
  await makeDeliveriesDue(lane.sql, projectId)
  const settlements = countAnswers(lane.proxy, OF_SETTLEMENT)
  const outbox = await startDeliverer(lane, lane.other, toKind(lane, lane.other.deliver))
  let state: State
  let seen = 0
  do {
    await until(() => settlements.count > seen)
    seen = settlements.count
    state = await readState(subject, kind)
    if (state.waiting > 0) {
      await endPauses(subject)
      outbox.wakeWorkers()
    }
  } while (!isDone(state))
  settlements.end()
  await outbox.stop()
  return state
}

/** Checks that each transaction happened as a whole or not at all. */
function checkHalves(
  state: State,
  { events, arrived, failure }: { events: number; arrived: string[]; failure: Failure | undefined },
): string[] {
  const problems: string[] = []
  const isDispatched = hasCommitted(failure, 'dispatch_')
  if (state.behind > 0 && (isDispatched || state.pending > 0))
    problems.push(`dispatched is ${isDispatched}, and ${JSON.stringify(state)}`)
  if (state.behind === 0 && state.pending + state.ended.length !== events)
    problems.push(`the events have ${JSON.stringify(state)}`)
  if (state.ended.length > new Set(arrived).size) problems.push('it ended before it arrived')
  return problems
}

/** Compares the records of the deliveries, and of their `count` attempts, with what happened. */
function checkRecords(
  { ended, recorded }: State,
  { failure, reads, write, count = 1 }: Records,
): string[] {
  const isIn = (text: string) => failure?.message.statement.includes(text) ?? false
  // An error that is no matter of waiting counts as an attempt, without a request.
  const isError = failure?.way === 'refused'
  const attempts = isError && reads.some(isIn) ? [count, count + 1] : [count]
  const isExpected = (state: string) => attempts.some(one => state === `delivered ${one}`)
  const problems = ended.every(isExpected) ? [] : [`they ended as ${ended}`]
  const all = count * ended.length
  // A record that cannot be stored is given up, because the delivery would be repeated for it.
  const mayLack = isLost(failure, write) ? ended.length : 0
  if (recorded > all || recorded < all - mayLack)
    problems.push(`${recorded} of ${all} attempts are recorded`)
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

// More lanes than processors, because most of the time a lane waits for a timer of the product.
const LANES = 4

let lanes: DeliveryLane[]
beforeAll(async () => {
  lanes = await Promise.all(Array.from({ length: LANES }, openLane))
})
afterAll(() => Promise.all(lanes.map(lane => lane.close())))

describe('a webhook', () => {
  const toWebhookKind: ToKind = ({ egress }, pool) =>
    createWebhookKind({ pool, egress, secrets: testSecrets() })

  /** Adds a webhook that answers with these statuses in turn; the last one repeats. */
  const toAddTarget = (statuses: number[]) =>
    toAnswering(() => {
      let arrived = 0
      return response => {
        const status = statuses[Math.min(arrived++, statuses.length - 1)]
        response.writeHead(status ?? 200).end()
      }
    })

  const toAnswering =
    (toRespond: () => Respond): Plan['addTarget'] =>
    async ({ sql, hooks }) => {
      const { project } = await newOrganization({ sql })
      const { targetId } = await hooks.add(sql, testSecrets(), project.uuid, toRespond())
      const listArrived = () =>
        hooks.receipts.filter(one => one.targetId === targetId).map(({ eventId }) => eventId)
      return { projectId: project.uuid, targetId, listArrived }
    }

  const reads = ['read_webhooks']

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
    // Dispatch, read, record and settlement.
    expect(messages.filter(one => one === 'client S')).toHaveLength(4)
  })

  const writeFailure = [
    'insert_webhook_attempts',
    'begin',
    'from webhooks',
    'update webhooks',
    'commit',
  ]

  test.each([
    { of: 'claim or settlement', statements: ['claim_deliveries', OF_SETTLEMENT], synced: 2 },
    { of: 'record', statements: writeFailure, synced: 4 },
  ])(
    'delivery: an attempt that fails is counted once, and repeated, whichever message of its $of fails',
    async ({ statements, synced }) => {
      const { messages, problems } = await sweep(
        lanes,
        toTransaction({
          kind: 'webhook',
          toKind: (lane, pool) => ({ ...toWebhookKind(lane, pool), leasesNew: false }),
          addTarget: toAddTarget([500, 200]),
          statements,
          arrivals: 2,
          checkBefore: ({ recorded, failures, ended }) =>
            ended.length > 0 || recorded === failures
              ? []
              : [`${recorded} attempts are recorded, and ${failures} failures`],
          check: (state, failure) =>
            checkRecords(state, { failure, reads: [], write: writeFailure, count: 2 }),
        }),
      )
      expect(problems).toEqual([])
      // `begin` is a query without a Sync.
      expect(messages.filter(one => one === 'client S')).toHaveLength(synced)
    },
  )

  test('delivery: the same holds for deliveries that are read, recorded and settled together', async () => {
    const events = 3
    /** Answers the first deliveries at once, so that one statement records them. */
    const toRespond = (): Respond => {
      const waiting: ServerResponse[] = []
      let arrived = 0
      return response => {
        waiting.push(response)
        if (++arrived >= events) for (const one of waiting.splice(0)) one.writeHead(200).end()
      }
    }
    const write = ['insert_webhook_attempts']
    const { messages, problems } = await sweep(
      lanes,
      toTransaction({
        kind: 'webhook',
        toKind: toWebhookKind,
        addTarget: toAnswering(toRespond),
        statements: [...reads, ...write, OF_SETTLEMENT],
        events,
        arrivals: 1,
        check: (state, failure) => checkRecords(state, { failure, reads, write }),
      }),
    )
    expect(problems).toEqual([])
    expect(messages.filter(one => one === 'client S')).toHaveLength(3)
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
  const reads = ['effective_notification_settings', 'vapid_keys']
  const write = ['update push_subscriptions']
  // The projects of the webhooks get no pushes.
  for (const { sql } of lanes) {
    await sql`
      insert into delivery_cursors (project_id, kind, seq)
      select project_id, 'push', last_seq from event_logs
    `
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
          listArrived: () => lane.pushes.of(browser).map(({ notification }) => notification.tag),
        }
      },
      statements: ['begin', 'dispatch_push', 'commit', OF_SETTLEMENT, ...reads, ...write],
      arrivals: 1,
      check: (state, failure) => checkRecords(state, { failure, reads, write }),
    }),
  )
  expect(problems).toEqual([])
  expect(messages).toContain('client Q')
})
