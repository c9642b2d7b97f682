import { beforeAll, expect, test } from 'bun:test'
import { newId } from '../../src/base/ids.ts'
import { toArray } from '../../src/database/arrays.ts'
import type { Sql, Tx } from '../../src/database/sql.ts'
import { enqueueDeliveries, replayDeadLetter } from '../../src/delivery/outbox/enqueue.ts'
import { settleDeliveries } from '../../src/delivery/outbox/settler.ts'
import { sweepWebhooks } from '../../src/delivery/webhooks/dispatch.ts'
import { hold } from '../support/database-lock.ts'
import { openDeliveries } from '../support/worlds/deliveries.ts'
import { forProcess } from '../support/for-file.ts'

// The order is that of docs/database.md. With another one, Postgres ends a transaction of these
// tests as a deadlock.

const deliveries = forProcess(openDeliveries)
let sql: Sql
beforeAll(async () => {
  ;({ sql } = deliveries)
})

const TOKEN = '00000000-0000-7000-8000-00000000000a'

interface Pair {
  projectId: string
  targetId: string
  /** Two events, by their ids. */
  events: [string, string]
  /** The events between them, by their ids. */
  between: string[]
  /** Two ids of deliveries, in their order. */
  ids: [string, string]
}

async function newPair(distance = 1): Promise<Pair> {
  const { projectId, targetId } = await deliveries.newTarget()
  const events = (await deliveries.append(projectId, distance + 1)).toSorted()
  const [one = '', other = ''] = [events[0], events.at(-1)]
  const [low = '', high = ''] = [newId('dlv').uuid, newId('dlv').uuid].toSorted()
  return {
    ...{ projectId, targetId, events: [one, other], ids: [low, high] },
    between: events.slice(1, -1),
  }
}

/** The delivery of the first event has the higher id. */
async function insertCrossed(
  { projectId, targetId, events, ids: [low, high] }: Pair,
  tokens: readonly (string | null)[] = [null, null],
): Promise<void> {
  await sql`
    insert into outbox (id, project_id, event_id, kind, target_id, token, available_at)
    select d.id, ${projectId}, d.event_id, 'webhook', ${targetId}, d.token, now() + interval '30 s'
    from unnest(
      ${toArray([high, low])}::uuid[], ${toArray(events)}::uuid[], ${toArray(tokens)}::uuid[]
    ) as d (id, event_id, token)
  `
}

const lockRow = (tx: Tx, id: string) => tx`select from outbox where id = ${id} for update`
const lockDead = (tx: Tx, id: string) => tx`select from dead_letters where id = ${id} for update`

/** Inserts a dead letter of the first event. */
const insertDead = ({
  projectId,
  targetId,
  events,
  id,
}: Omit<Pair, 'ids' | 'between'> & { id: string }) => sql`
  insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
  values (${id}, ${projectId}, ${events[0]}, 'webhook', ${targetId}, 10, 'It failed')
`

/** Runs `work` while another transaction has locked `low`, and locks `high` once `work` waits. */
const runBeside = <Result>({ ids: [low, high] }: Pair, work: () => Promise<Result>) =>
  runBetween([tx => lockRow(tx, low), tx => lockRow(tx, high)], work)

const enqueue = ({ projectId, targetId, events: [one, other], between }: Pair) =>
  sql.begin(tx =>
    enqueueDeliveries(tx, { kind: 'webhook', projectId, targetId }, [one, ...between, other]),
  )

const insert = ({ projectId, targetId }: Pair, tx: Tx, eventId: string) =>
  tx`insert into outbox (project_id, event_id, kind, target_id) values (${projectId}, ${eventId}, 'webhook', ${targetId})`

/** Runs `work` while another transaction holds the first lock. It takes the second one then. */
async function runBetween<Result>(
  locks: [first: (tx: Tx) => PromiseLike<unknown>, second: (tx: Tx) => PromiseLike<unknown>],
  work: () => Promise<Result>,
): Promise<Result> {
  const lock = await hold(sql, ...locks)
  const running = work()
  await Promise.race([lock.untilBlocked(), running])
  await lock.release()
  return running
}

test.each([2, 2_500])(
  'locks: %d events are enqueued again beside who locks their deliveries',
  async count => {
    const pair = await newPair(count - 1)
    await insertCrossed(pair)
    expect(await runBeside(pair, () => enqueue(pair))).toBe(count)
    const rows = await deliveries.pending(pair.projectId)
    expect(rows.filter(row => row.due_in_s <= 0)).toHaveLength(count)
  },
)

test.each([2, 2_500])(
  'locks: %d events, the newest first, are enqueued beside who writes the same ones',
  async count => {
    const pair = await newPair(count - 1)
    const [one, other] = pair.events
    const reversed: Pair = { ...pair, events: [other, one], between: pair.between.toReversed() }
    const run = runBetween([tx => insert(pair, tx, one), tx => insert(pair, tx, other)], () =>
      enqueue(reversed),
    )
    expect(await run).toBe(count)
    expect(await deliveries.pending(pair.projectId)).toHaveLength(count)
  },
)

test.each([2, 2_500])(
  'locks: %d events are enqueued again beside who locks a delivery and then a dead letter',
  async count => {
    const pair = await newPair(count - 1)
    const { projectId, targetId, events, ids } = pair
    const [id, deadId] = ids
    await sql`
      insert into outbox (id, project_id, event_id, kind, target_id)
      values (${id}, ${projectId}, ${events[1]}, 'webhook', ${targetId})
    `
    await insertDead({ ...pair, id: deadId })
    const run = runBetween([tx => lockRow(tx, id), tx => lockDead(tx, deadId)], () => enqueue(pair))
    expect(await run).toBe(count)
    expect(await sql`select from dead_letters where project_id = ${projectId}`).toHaveLength(0)
  },
)

test('locks: events are enqueued again without waiting for their deliveries in flight', async () => {
  const pair = await newPair()
  await insertCrossed(pair, [TOKEN, TOKEN])
  const lock = await hold(sql, tx => lockRow(tx, pair.ids[0]))
  expect(await enqueue(pair)).toBe(2)
  await lock.release()
  expect(await deliveries.pending(pair.projectId)).toMatchObject([
    { is_taken: true },
    { is_taken: true },
  ])
})

test('locks: a delivery that is given up while its event is enqueued keeps its dead letter', async () => {
  const pair = await newPair()
  await insertCrossed(pair, [TOKEN, null])
  const [low, high] = pair.ids
  const lock = await hold(sql, tx => lockRow(tx, low))
  const running = enqueue(pair)
  await lock.untilBlocked()
  await settleDeliveries(sql, [
    {
      ...{ id: high, token: TOKEN, state: 'dead', attempts: 1, delayMs: null },
      ...{ reason: 'It failed', latencyMs: null },
    },
  ])
  await lock.release()
  expect(await running).toBe(2)
  expect(await deliveries.pending(pair.projectId)).toMatchObject([{ event_id: pair.events[1] }])
  const dead = await sql`select from dead_letters where project_id = ${pair.projectId}`
  expect(dead).toHaveLength(1)
})

test('locks: the waits of deliveries are extended beside who locks them', async () => {
  const pair = await newPair()
  await insertCrossed(pair)
  await sql`insert into wait_extensions (number, jump, until) values (1, '1 hour', now())`
  await runBeside(pair, async () => await sql`select extend_waits(100000)`)
  expect(await sql`select from wait_extensions`).toHaveLength(0)
})

/** Dispatches two events to targets, whatever the order of the events in their log. */
function dispatch(pair: Pair, { lease, isFull }: { lease: object | null; isFull: boolean }) {
  return sql`
    select count
    from insert_deliveries(
      'webhook',
      array(
        select (${pair.projectId}::uuid, e.id, ${pair.targetId}::uuid, now(), false, ${isFull})::new_delivery
        from unnest(${toArray(pair.events.toReversed())}::uuid[]) as e (id)
      ),
      'It is full', ${lease === null ? null : JSON.stringify(lease)}::text::json
    )
  `.execute()
}

const LEASE = { token: TOKEN, leaseMs: 30_000, free: 10, perTarget: 10, rooms: [] }

test.each([
  ['deliveries', { lease: null, isFull: false }],
  ['leased deliveries', { lease: LEASE, isFull: false }],
  ['records of a full backlog', { lease: null, isFull: true }],
])('locks: %s are written beside who writes the same ones', async (_, options) => {
  const pair = await newPair()
  const { projectId, targetId, events } = pair
  const insertSame = (eventId: string) => (tx: Tx) =>
    options.isFull
      ? tx`insert into deliveries (project_id, event_id, kind, target_id, state) values (${projectId}, ${eventId}, 'webhook', ${targetId}, 'failed')`
      : insert(pair, tx, eventId)
  const rows = await runBetween([insertSame(events[0]), insertSame(events[1])], () =>
    dispatch(pair, options),
  )
  expect([...rows]).toEqual([{ count: '0' }])
})

async function newDeadLetter() {
  const pair = await newPair()
  const dead = { ...pair, id: pair.ids[0] }
  await insertDead(dead)
  return dead
}

const NOT_FOUND = 'No dead letter of this project has this id.'

const replay = (dead: { projectId: string; id: string }) =>
  sql
    .begin(tx => replayDeadLetter(tx, dead))
    .then(
      ({ id }) => id,
      (error: Error) => error.message,
    )

test.each([
  ['enqueues its event', false],
  // Postgres checks the primary key on its own, after the key of the event and the target.
  ['has stored its id', true],
])('locks: a dead letter is replayed beside who %s', async (_, isSameId) => {
  const dead = await newDeadLetter()
  const { projectId, targetId, events, id } = dead
  const insertOther = (tx: Tx) => tx`
    insert into outbox (id, project_id, event_id, kind, target_id)
    values (
      ${isSameId ? id : newId('dlv').uuid}, ${projectId}, ${events[Number(isSameId)]!}, 'webhook',
      ${targetId}
    )
  `
  const deleteDead = (tx: Tx) => tx`delete from dead_letters where id = ${id}`
  expect(await runBetween([insertOther, deleteDead], () => replay(dead))).toBe(NOT_FOUND)
  expect(await deliveries.pending(projectId)).toHaveLength(1)
})

test('locks: a dead letter that is replayed twice at once is replayed once', async () => {
  for (let round = 0; round < 5; round++) {
    const dead = await newDeadLetter()
    const lock = await hold(sql, tx => tx`lock table outbox in share row exclusive mode`)
    const running = [replay(dead), replay(dead)]
    await lock.untilBlocked(2)
    await lock.release()
    expect((await Promise.all(running)).toSorted()).toEqual([dead.id, NOT_FOUND])
    expect(await deliveries.pending(dead.projectId)).toHaveLength(1)
  }
})

test('locks: the check of full backlogs waits for no webhook', async () => {
  const { projectId } = await deliveries.newTarget()
  const [locked, free] = [newId('whk').uuid, newId('whk').uuid]
  for (const id of [locked, free]) {
    await sql`
      insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret, backlog_full_at)
      values (${projectId}, ${id}, 'w', 'u', 'h', 'standard', true, 's', now())
    `
  }
  const lock = await hold(
    sql,
    tx => tx`select from webhooks where id = ${locked} for no key update`,
  )
  await sweepWebhooks(sql, true)
  const full = await sql`select id from webhooks where backlog_full_at is not null`
  expect([...full]).toEqual([{ id: locked }])
  await lock.release()
})
