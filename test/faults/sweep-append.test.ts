import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { registry } from '../../src/base/metrics.ts'
import { newProject, type Answered, type TestProject } from '../support/worlds/project.ts'
import { hasCommitted, sweep, type Failure, type Transaction } from '../support/sweep.ts'
import { openLanes, type ServerLane } from '../support/sweep-lanes.ts'
import { until } from '../support/until.ts'
import { checkLedger } from './ledger-check.ts'
import type { Intent } from './ledger.ts'

/** An event that a client sends once, and with a key until it has an answer. */
interface Sending {
  intent: Intent
  channelName: string
  /** The answer to its first request. */
  first?: Answered
}

interface Subject {
  lane: ServerLane
  project: TestProject
  /** The events around the transaction. */
  others: Sending[]
  swept: Sending[]
}

/** An event of the transaction. Each channel name that begins with `new` is new. */
interface Kind {
  isKeyed: boolean
  channelName: 'old' | 'new'
}

function addSending({ project }: Subject, name: string, { isKeyed, channelName }: Kind): Sending {
  const key = isKeyed ? `${project.id} ${name}` : undefined
  return {
    intent: { name, projectId: project.id, key, sent: 0, acknowledged: [], replays: 0 },
    channelName: channelName === 'old' ? 'old' : `new of ${name}`,
  }
}

async function send({ project }: Subject, { intent, channelName }: Sending): Promise<Answered> {
  intent.sent++
  const answer = await project.post(
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

/** Sends two events like the swept one. The first request of a key is admitted by itself. */
async function openProject(lane: ServerLane, kind: Kind): Promise<Subject> {
  const subject: Subject = { lane, project: await newProject(lane), others: [], swept: [] }
  for (const name of ['first', 'second']) await sendOther(subject, name, kind)
  return subject
}

async function sendOther(subject: Subject, name: string, kind: Kind): Promise<Answered> {
  const other = addSending(subject, name, kind)
  subject.others.push(other)
  return send(subject, other)
}

const APPEND = 'tidings append'

/** Closes the connection of the append. The server knows it, because a request has failed. */
async function closeConnection(subject: Subject): Promise<void> {
  const held = subject.lane.proxy.trap({ from: 'client', type: 'B', application: APPEND })
  const failed = sendOther(subject, 'closing', { isKeyed: false, channelName: 'old' })
  const { cut, ended } = await held
  cut()
  await Promise.all([failed, ended])
}

/** Repeats the requests with a key, sends one more event, and compares all answers with the log. */
async function check(subject: Subject, failure: Failure | undefined): Promise<string[]> {
  const problems: string[] = []
  const isCommitted = ['append_event(', 'append_events('].some(one => hasCommitted(failure, one))
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
    const again = await send(subject, one)
    if (again.status !== 201) problems.push(`${intent.name} was answered ${again.status} again`)
    else if (again.headers.has('x-idempotent-replay') !== isStored)
      problems.push(`${intent.name} was a replay, or should have been one`)
  }
  const last = await sendOther(subject, 'last', { isKeyed: false, channelName: 'old' })
  if (last.status !== 201) problems.push(`the next event was answered ${last.status}`)
  const sendings = [...subject.others, ...subject.swept]
  const intents = new Map(sendings.map(({ intent }) => [intent.name, intent]))
  const ledger = { intents, outcomes: new Map(), slowestMs: 0, unexpected: [] }
  const found = await checkLedger(subject.lane.sql, [subject.project.id], ledger)
  return [...problems, ...found.problems, ...(await checkCounts(subject))]
}

/** Returns the names of the swept events that are stored. */
async function listStored({ lane, project }: Subject): Promise<Set<string>> {
  const rows = await lane.sql<{ name: string }[]>`
    select metadata ->> 'intent' as name from events where project_id = ${project.id}
  `
  return new Set(rows.map(({ name }) => name))
}

/** Compares the counts of events with the log. */
async function checkCounts({ lane, project }: Subject): Promise<string[]> {
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

describe('an append', () => {
  /** Sends one event whose request is admitted and appended by one statement. */
  function toTransaction(kind: Kind, isCold = false): Transaction<ServerLane, Subject> {
    return {
      async prepare(lane) {
        const subject = await openProject(lane, kind)
        if (isCold) await closeConnection(subject)
        subject.swept = [addSending(subject, 'swept', kind)]
        return subject
      },
      belongs: ({ application }) => application === APPEND,
      run: sendAll,
      check,
    }
  }

  test.each<[string, Kind]>([
    ['an event', { isKeyed: false, channelName: 'old' }],
    ['an event with an Idempotency-Key', { isKeyed: true, channelName: 'old' }],
    ['an event in a new channel', { isKeyed: false, channelName: 'new' }],
    ['an event with an Idempotency-Key in a new channel', { isKeyed: true, channelName: 'new' }],
  ])('contract §4 %s is stored once or not at all, whichever message fails', async (_, kind) => {
    const { messages, runs, problems } = await sweep(lanes, toTransaction(kind))
    expect(problems).toEqual([])
    expect(messages).toEqual(STATEMENT)
    expect(runs).toBe(19)
  })

  test('contract §4 the same holds while the connection is opened', async () => {
    const kind: Kind = { isKeyed: true, channelName: 'new' }
    const { messages, problems } = await sweep(lanes, toTransaction(kind, true))
    expect(problems).toEqual([])
    expect(messages.slice(0, 2)).toEqual(['client ', 'server R'])
    expect(messages.slice(-STATEMENT.length)).toEqual(STATEMENT)
  })

  test('contract §4 the same holds for the first request of a key, which is admitted by itself', async () => {
    const kind: Kind = { isKeyed: true, channelName: 'new' }
    const openSubject = async (lane: ServerLane): Promise<Subject> => {
      const subject: Subject = { lane, project: await newProject(lane), others: [], swept: [] }
      subject.swept = [addSending(subject, 'swept', kind)]
      return subject
    }
    const { messages, problems } = await sweep(lanes, {
      ...toTransaction(kind),
      async prepare(lane) {
        // Its statements are prepared then.
        await sendAll(await openSubject(lane))
        return openSubject(lane)
      },
      belongs: ({ application }) => [APPEND, 'tidings admission'].includes(application),
    })
    expect(problems).toEqual([])
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
  const { messages, problems } = await sweep<ServerLane, Subject & Batch>(lanes.slice(-1), {
    async prepare(lane) {
      const subject = await openProject(lane, { isKeyed: false, channelName: 'old' })
      // Events that arrive while one append is held make up the next one.
      const held = lane.proxy.trap({ from: 'client', type: 'S', application: APPEND })
      const before = sendOther(subject, 'before', { isKeyed: false, channelName: 'old' })
      const { pass } = await held
      subject.swept = kinds.map((kind, nth) => addSending(subject, `swept ${nth}`, kind))
      const answered = Promise.all([before, sendAll(subject)])
      await until(async () => (await countWaiting()) === kinds.length)
      return { ...subject, release: pass, answered }
    },
    // The append before it is one of a single event.
    belongs: ({ application, statement }) =>
      application === APPEND && statement.includes('append_events('),
    async run({ release, answered }) {
      release()
      await answered
    },
    check,
  })
  expect(problems).toEqual([])
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
      one.first = await send(subject, one)
    }),
  )
}

/** Returns how many events wait for the next batch, by the metric of the last server. */
async function countWaiting(): Promise<number | undefined> {
  const all = await registry.getMetricsAsJSON()
  const waiting = all.find(({ name }) => name === 'tidings_batch_queue_length')?.values
  return waiting?.find(({ labels }) => Object.values(labels).includes('append'))?.value
}
