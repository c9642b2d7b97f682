import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { registry } from '../../src/base/metrics.ts'
import { toArray } from '../../src/database/arrays.ts'
import { createKey } from '../support/worlds/keys.ts'
import {
  createRequests,
  newProject,
  type Answered,
  type TestProject,
} from '../support/worlds/project.ts'
import { hasCommitted, sweep, type Failure, type Transaction } from '../support/sweep.ts'
import { openLanes, type ServerLane } from '../support/sweep-lanes.ts'
import { until } from '../support/until.ts'
import { checkLedger } from './ledger-check.ts'
import type { Intent } from './ledger.ts'

/** An event that a client sends once, and with a key until it has an answer. */
interface Sending {
  intent: Intent
  channelName: string
  post: TestProject['post']
  /** The answer to its first request. */
  first?: Answered
}

/** A project whose log takes the events of all runs of a sweep in one lane. */
interface Log {
  lane: ServerLane
  project: TestProject
  /** All events of the project, by name. */
  intents: Map<string, Intent>
}

/** The events of one run. */
interface Subject extends Log {
  swept: Sending[]
}

/** An event of the transaction. Each channel name that begins with `new` is new. */
interface Kind {
  isKeyed: boolean
  channelName: 'old' | 'new'
}

const PLAIN: Kind = { isKeyed: false, channelName: 'old' }

function addSending(log: Log, run: string, { isKeyed, channelName }: Kind): Sending {
  const { intents, project } = log
  const nth = intents.size
  const name = `event ${nth} of ${run}`
  const key = isKeyed ? `${project.id} ${nth}` : undefined
  const intent = { name, projectId: project.id, key, sent: 0, acknowledged: [], replays: 0 }
  intents.set(name, intent)
  return {
    intent,
    channelName: channelName === 'old' ? 'old' : `new of ${nth}`,
    post: project.post,
  }
}

async function send({ intent, channelName, post }: Sending): Promise<Answered> {
  intent.sent++
  const answer = await post(
    '/v1/events',
    { channelName, title: 'New payment', metadata: { intent: intent.name } },
    intent.key === undefined ? {} : { 'idempotency-key': intent.key },
  )
  if (answer.status === 201) {
    intent.acknowledged.push(answer.text)
    if (answer.headers.has('x-idempotent-replay')) intent.replays++
  }
  return answer
}

function sendOther(log: Log, run: string, kind: Kind): Promise<Answered> {
  return send(addSending(log, run, kind))
}

/** Opens a project in each lane for a sweep, and checks at its end all that they have stored. */
function createLogs() {
  const logs = new Map<ServerLane, Log>()
  return {
    async open(lane: ServerLane): Promise<Log> {
      const log = logs.get(lane) ?? { lane, project: await newProject(lane), intents: new Map() }
      logs.set(lane, log)
      return log
    },
    async check(): Promise<string[]> {
      const problems: string[] = []
      for (const log of logs.values()) {
        const { lane, project, intents } = log
        const ledger = { intents, outcomes: new Map(), slowestMs: 0, unexpected: [] }
        const found = await checkLedger(lane.sql, [project.id], ledger)
        problems.push(...found.problems, ...(await checkCounts(log)))
      }
      return problems
    },
  }
}

const APPEND = 'tidings append'

/** Closes the connection of the append. The server knows it, because a request has failed. */
async function closeConnection(log: Log, run: string): Promise<void> {
  const held = log.lane.proxy.trap({ from: 'client', type: 'B', application: APPEND })
  const failed = sendOther(log, run, PLAIN)
  const { cut, ended } = await held
  cut()
  await Promise.all([failed, ended])
}

/** Repeats the requests with a key, and sends one more event. */
async function check(subject: Subject, failure: Failure | undefined): Promise<string[]> {
  const problems: string[] = []
  const isCommitted = ['append_single(', 'append_batch('].some(one => hasCommitted(failure, one))
  const stored = await listStored(subject)
  for (const one of subject.swept) {
    const { intent, first } = one
    const isStored = stored.has(intent.name)
    const status = first?.status ?? 0
    if (status !== 201 && isStored !== isCommitted)
      problems.push(`${intent.name} was answered ${status}, and stored is ${isStored}`)
    const expected = failure?.way === 'refused' ? [201, 500, 503] : [201, 503]
    if (!expected.includes(status)) problems.push(`${intent.name} was answered ${status}`)
    if (intent.key === undefined) continue
    const again = await send(one)
    if (again.status !== 201) problems.push(`${intent.name} was answered ${again.status} again`)
    else if (again.headers.has('x-idempotent-replay') !== isStored)
      problems.push(`${intent.name} was a replay, or should have been one`)
  }
  const last = await sendOther(subject, 'the next request', PLAIN)
  if (last.status !== 201) problems.push(`the next event was answered ${last.status}`)
  return problems
}

/** Returns the names of the swept events that are stored. */
async function listStored({ lane, project, swept }: Subject): Promise<Set<string>> {
  const names = swept.map(({ intent }) => intent.name)
  const rows = await lane.sql<{ name: string }[]>`
    select metadata ->> 'intent' as name
    from events
    where project_id = ${project.id} and metadata ->> 'intent' = any(${toArray(names)}::text[])
  `
  return new Set(rows.map(({ name }) => name))
}

/** Compares the counts of events with the log. */
async function checkCounts({ lane, project }: Log): Promise<string[]> {
  const [row] = await lane.sql<[{ events: number; counted: number }]>`
    select
      (select count(*)::int from events where project_id = ${project.id}) as events,
      (select coalesce(sum(n), 0)::int from event_counts where project_id = ${project.id}) as counted
  `
  return row.counted === row.events ? [] : [`${row.counted} of ${row.events} events are counted`]
}

let lanes: ServerLane[]
beforeAll(async () => {
  lanes = await openLanes(2)
})
afterAll(() => Promise.all(lanes.map(lane => lane.close())))

/** Fails in the append of one event. */
function toTransaction(kind: Kind, isCold = false) {
  const logs = createLogs()
  const transaction: Transaction<ServerLane, Subject> = {
    async prepare(lane, run) {
      const log = await logs.open(lane)
      // The first request of a key is admitted by itself.
      if (log.intents.size === 0) await sendOther(log, run, kind)
      // Its statement is prepared then.
      await sendOther(log, run, kind)
      if (isCold) await closeConnection(log, run)
      return { ...log, swept: [addSending(log, run, kind)] }
    },
    belongs: ({ application }) => application === APPEND,
    run: sendAll,
    check,
  }
  return { logs, transaction }
}

describe('an append', () => {
  test('contract §4 an event is stored once or not at all, whichever message fails', async () => {
    const { logs, transaction } = toTransaction({ isKeyed: true, channelName: 'old' })
    const { messages, runs, problems } = await sweep(lanes, transaction)
    expect([...problems, ...(await logs.check())]).toEqual([])
    expect(messages).toEqual(STATEMENT)
    expect(runs).toBe(13)
  })

  test('contract §4 the same holds while the connection is opened', async () => {
    const { logs, transaction } = toTransaction({ isKeyed: true, channelName: 'new' }, true)
    const { messages, problems } = await sweep(lanes, transaction)
    expect([...problems, ...(await logs.check())]).toEqual([])
    expect(messages.slice(0, 2)).toEqual(['client ', 'server R'])
    expect(messages.slice(-STATEMENT.length)).toEqual(STATEMENT)
  })

  test('contract §4 the same holds for the first request of a key, which is admitted by itself', async () => {
    const kind: Kind = { isKeyed: true, channelName: 'new' }
    const { logs, transaction } = toTransaction(kind)
    const addFirst = async (log: Log, run: string): Promise<Sending> => {
      const { token } = await createKey(log.lane.sql, { projectId: log.project.id, name: 'first' })
      return { ...addSending(log, run, kind), post: createRequests(log.lane.url, token).post }
    }
    const { messages, problems } = await sweep(lanes, {
      ...transaction,
      async prepare(lane, run) {
        const log = await logs.open(lane)
        // Its statements are prepared then.
        await send(await addFirst(log, run))
        return { ...log, swept: [await addFirst(log, run)] }
      },
      belongs: ({ application }) => [APPEND, 'tidings admission'].includes(application),
    })
    expect([...problems, ...(await logs.check())]).toEqual([])
    expect(messages).toEqual([...STATEMENT, ...STATEMENT])
  })
})

test('contract §4 a batch of events is stored once or not at all, whichever message fails', async () => {
  const kinds: Kind[] = [
    { isKeyed: false, channelName: 'old' },
    { isKeyed: true, channelName: 'old' },
    { isKeyed: true, channelName: 'new' },
    { isKeyed: false, channelName: 'new' },
  ]
  const { logs, transaction } = toTransaction(PLAIN)
  const { messages, problems } = await sweep<ServerLane, Subject & Batch>(lanes.slice(-1), {
    async prepare(lane, run) {
      const log = await transaction.prepare(lane, run)
      // Events that arrive while one append is held make up the next one.
      const held = lane.proxy.trap({ from: 'client', type: 'S', application: APPEND })
      const before = sendOther(log, run, PLAIN)
      const { pass } = await held
      const subject = { ...log, swept: kinds.map(kind => addSending(log, run, kind)) }
      const answered = Promise.all([before, sendAll(subject)])
      await until(async () => (await countWaiting()) === kinds.length)
      return { ...subject, release: pass, answered }
    },
    // The append before it is one of a single event.
    belongs: ({ application, statement }) =>
      application === APPEND && statement.includes('append_batch('),
    async run({ release, answered }) {
      release()
      await answered
    },
    check,
  })
  expect([...problems, ...(await logs.check())]).toEqual([])
  expect(messages.slice(-STATEMENT.length)).toEqual(STATEMENT)
})

/** Events that wait for the append before them. */
interface Batch {
  release(): void
  /** Resolves when all of them are answered. */
  answered: Promise<unknown>
}

/** The messages of a statement that is prepared, and returns a row. */
const STATEMENT = [
  ...['client B', 'client E', 'client S'],
  ...['server 2', 'server D', 'server C', 'server Z'],
]

async function sendAll(subject: Subject): Promise<void> {
  await Promise.all(
    subject.swept.map(async one => {
      one.first = await send(one)
    }),
  )
}

/** Returns how many events wait for the next batch, by the metric of the last server. */
async function countWaiting(): Promise<number | undefined> {
  const all = await registry.getMetricsAsJSON()
  const waiting = all.find(({ name }) => name === 'tidings_batch_queue_length')?.values
  return waiting?.find(({ labels }) => Object.values(labels).includes('append'))?.value
}
