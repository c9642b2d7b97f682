import { afterEach, expect, test } from 'bun:test'
import { createPool } from '../../../src/database/pool.ts'
import type { Queryable, Sql } from '../../../src/database/sql.ts'
import { startDispatcher } from '../../../src/delivery/outbox/dispatcher.ts'
import type { Dispatched } from '../../../src/delivery/outbox/delivery-kind.ts'
import { hold } from '../../support/database-lock.ts'
import { until } from '../../support/until.ts'
import { appendEvents, openDeliveries } from '../../support/worlds/deliveries.ts'
import { addTarget, createTargets, createTestKind } from '../../support/worlds/delivery-kind.ts'
import { createRequests, newProject } from '../../support/worlds/project.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { boot } from '../../support/servers/server.ts'
import { openSql } from '../../support/sql.ts'
import { forProcess } from '../../support/for-file.ts'

const deliveries = forProcess(openDeliveries)
afterEach(() => deliveries.clear())

/** Runs a dispatcher as a separate process would; records its dispatches. */
function start() {
  const pool = createPool(deliveries.databaseUrl, { name: 'worker', max: 4 })
  const kind = createTestKind()
  const dispatches: Dispatched[] = []
  const dispatcher = startDispatcher({
    pool,
    kinds: [
      {
        ...kind,
        async dispatch(sql, request) {
          const dispatched = await kind.dispatch(sql, request)
          dispatches.push(dispatched)
          return dispatched
        },
      },
    ],
    onDispatched() {},
    reserve: () => undefined,
  })
  return {
    dispatcher,
    dispatches,
    /** The number of deliveries that it has written. */
    get written() {
      return dispatches.reduce((sum, { count }) => sum + count, 0)
    },
    async [Symbol.asyncDispose]() {
      await dispatcher.stop()
      await pool.end()
    },
  }
}

async function readCursor(projectId: string): Promise<number | undefined> {
  const [row] = await deliveries.sql<{ seq: number }[]>`
    select seq::int as seq from delivery_cursors where project_id = ${projectId}
  `
  return row?.seq
}

test('delivery: four dispatchers deliver every concurrent append once to each target', async () => {
  await using one = start()
  await using two = start()
  await using three = start()
  await using four = start()
  const all = [one, two, three, four]
  const targets = await Promise.all(Array.from({ length: 3 }, () => deliveries.newTarget()))
  const wake = () => {
    for (const { dispatcher } of all) dispatcher.wake(targets.map(({ projectId }) => projectId))
  }
  let appended = 0
  for (let round = 0; round < 10; round++) {
    wake()
    await Promise.all(
      targets.map(({ projectId }, nth) => deliveries.append(projectId, 10 * nth + (round % 7) + 1)),
    )
    appended += targets.reduce((sum, _, nth) => sum + 10 * nth + (round % 7) + 1, 0)
  }
  for (const { projectId } of targets) {
    const [head] = await deliveries.sql<{ seq: number }[]>`
      select last_seq::int as seq from event_logs where project_id = ${projectId}
    `
    await until(async () => {
      wake()
      return (await readCursor(projectId)) === head?.seq
    })
    const [row] = await deliveries.sql<[{ n: number; missing: number }]>`
      select
        (select count(*)::int from outbox where project_id = ${projectId}) as n,
        (
          select count(*)::int
          from events e
          where e.project_id = ${projectId}
            and not exists (select from outbox o where o.project_id = e.project_id and o.event_id = e.id)
        ) as missing
    `
    expect(row).toEqual({ n: head?.seq ?? 0, missing: 0 })
  }
  // No insert met an existing row: no event was dispatched twice.
  expect(all.reduce((sum, { written }) => sum + written, 0)).toBe(appended)
})

test('delivery: a dispatch does not wait for another one that creates a cursor', async () => {
  const [one, two] = [await deliveries.newTarget(), await deliveries.newTarget()]
  for (const { projectId } of [one, two]) await deliveries.append(projectId)
  const dispatch = (sql: Queryable, projectIds: string[]) =>
    createTestKind().dispatch(sql as Sql, { projectIds, maxEvents: 500, lease: undefined })
  await using _ = await hold(deliveries.sql, tx => dispatch(tx, [one.projectId]))
  const { ranges } = await deliveries.sql.begin(async tx => {
    await tx`set local lock_timeout = 1000`
    return dispatch(tx, [one.projectId, two.projectId])
  })
  expect(ranges.map(({ projectId }) => projectId)).toEqual([two.projectId])
})

test('delivery: a project whose events cannot be dispatched delays no other project, and catches up', async () => {
  const broken = await deliveries.newTarget()
  const fine = await deliveries.newTarget()
  await deliveries.append(broken.projectId, 3)
  await deliveries.append(fine.projectId, 3)
  const { sql } = deliveries
  await sql`
    create function refuse() returns trigger language plpgsql as 'begin raise exception ''no''; end'
  `
  await sql.unsafe(`
    create trigger refuse before insert on outbox for each row
    when (new.project_id = '${broken.projectId}') execute function refuse()
  `)
  await using one = start()
  one.dispatcher.wake([broken.projectId, fine.projectId])
  await until(async () => (await deliveries.pending(fine.projectId)).length === 3)
  expect(await deliveries.pending(broken.projectId)).toEqual([])
  await sql`drop trigger refuse on outbox`
  await until(async () => (await deliveries.pending(broken.projectId)).length === 3)
})

test('contract §11 the log of a deleted project is no longer dispatched', async () => {
  const { projectId } = await deliveries.newTarget()
  await deliveries.append(projectId, 2)
  await deliveries.sql`delete from event_logs where project_id = ${projectId}`
  await using one = start()
  const { projectId: other } = await deliveries.newTarget()
  await deliveries.append(other)
  one.dispatcher.wake([projectId, other])
  await until(async () => (await deliveries.pending(other)).length === 1)
  expect(await deliveries.pending(projectId)).toEqual([])
})

test('delivery: without targets the cursor still advances, and a new target gets only new events', async () => {
  const { id: projectId } = await newProject({ sql: deliveries.sql, url: '' })
  await using one = start()
  const startedMs = performance.now()
  for (let nth = 0; nth < 40; nth++) {
    await deliveries.append(projectId, 20)
    one.dispatcher.wake([projectId])
  }
  await until(async () => (await readCursor(projectId)) === 800)
  expect(one.dispatches.length).toBeLessThanOrEqual((performance.now() - startedMs) / 250 + 1)
  expect(one.written).toBe(0)

  await addTarget(deliveries.sql, projectId)
  const [eventId = ''] = await deliveries.append(projectId)
  one.dispatcher.wake([projectId])
  await until(async () => (await deliveries.pending(projectId)).length > 0)
  expect((await deliveries.pending(projectId)).map(row => row.event_id)).toEqual([eventId])
})

test('delivery: many logs share a transaction fairly, with any lengths', async () => {
  const { sql } = deliveries
  /** Returns how many events a dispatch of at most `maxEvents` takes of logs of these lengths. */
  const take = async (lengths: readonly number[], maxEvents: number) => {
    const projects = await Promise.all(lengths.map(() => deliveries.newTarget()))
    const ids = projects.map(({ projectId }) => projectId)
    for (const [nth, id] of ids.entries()) {
      await sql`update event_logs set last_seq = ${lengths[nth] ?? 0} where project_id = ${id}`
    }
    const { ranges } = await createTestKind().dispatch(sql, {
      projectIds: ids,
      maxEvents,
      lease: undefined,
    })
    for (const id of ids) {
      expect(await readCursor(id)).toBe(
        ranges.find(({ projectId }) => projectId === id)?.toSeq ?? 0,
      )
    }
    return ids.map(id => {
      const { fromSeq = 0, toSeq = 0 } = ranges.find(({ projectId }) => projectId === id) ?? {}
      return toSeq - fromSeq
    })
  }
  expect(await take([1_000_000, 3, 295], 500)).toEqual([248, 3, 248])
  expect(await take([295, 0, 3], 500)).toEqual([295, 0, 3])
  expect(await take([9], 1)).toEqual([1])
  expect(await take([], 500)).toEqual([])
  // Only rounding leaves a part unused.
  expect(await take([60, 2, 33, 60, 7], 100)).toEqual([30, 2, 30, 30, 7])
})

/** The dispatches of a process that is always slower than another one. */
const NOTHING = { ranges: [], count: 0, leased: [] }

test.each([
  ['accepted', [], {}],
  ['dispatched', [createTestKind({ perTarget: 0 })], { dispatch: async () => NOTHING }],
] as const)(
  'design §4 a process delivers events at once that another process %s',
  async (_, kinds, options) => {
    const databaseUrl = await cloneDatabase()
    const sql = openSql(databaseUrl)
    await createTargets(sql)
    const told: string[] = []
    const kind = createTestKind({
      ...options,
      async send({ eventId }) {
        told.push(eventId)
        return { kind: 'done' }
      },
    })
    await using here = await boot({ databaseUrl }, { kinds: [...kinds] })
    await using _there = await boot({ databaseUrl }, { kinds: [kind] })
    const project = await newProject(here)
    await addTarget(sql, project.id)
    const { post } = createRequests(here.url, project.key)
    /** Returns the least time from an event to its delivery. */
    const measure = async (append: () => Promise<unknown>) => {
      const tookMs: number[] = []
      for (let n = 0; n < 4; n++) {
        const before = told.length
        const startedMs = performance.now()
        await append()
        await until(() => told.length > before)
        // The first one follows a poll by chance.
        if (n > 0) tookMs.push(performance.now() - startedMs)
      }
      return Math.min(...tookMs)
    }
    // Without hints, each event waits for the next poll, a second after the one before.
    const polledMs = await measure(() => appendEvents(sql, project.id, 1))
    const hintedMs = await measure(() => post('/v1/events', { channelName: 'ops', title: 'No' }))
    expect(hintedMs).toBeLessThan(polledMs / 2)
    await sql.end({ timeout: 1 })
  },
)

const LEASE = { token: crypto.randomUUID(), leaseMs: 30_000, free: 100, perTarget: 3, rooms: [] }

test('delivery: a dispatch leases at most the free slots, and in turn the room of each target', async () => {
  const lease = async (free: number) => {
    const { projectId, targetId } = await deliveries.newTarget()
    const others = [
      await addTarget(deliveries.sql, projectId),
      await addTarget(deliveries.sql, projectId),
    ]
    const [deleted = ''] = await deliveries.append(projectId, 5)
    await deliveries.sql`update events set deleted_at = now() where id = ${deleted}`
    const rooms = others.map((id, room) => ({ targetId: id, room }))
    const done = await createTestKind().dispatch(deliveries.sql, {
      ...{ projectIds: [projectId], maxEvents: 5, lease: { ...LEASE, free, rooms } },
    })
    const pending = await deliveries.pending(projectId)
    const taken = pending.filter(row => row.is_taken)
    expect(done.count).toBe(15)
    expect(taken.map(row => row.event_id).sort()).toEqual(
      done.leased.map(({ eventId }) => eventId).sort(),
    )
    for (const row of pending) {
      expect(row.claim_count).toBe(row.is_taken ? 1 : 0)
      if (row.is_taken) expect(row.event_id).not.toBe(deleted)
      expect(row.due_in_s > 15).toBe(row.is_taken)
    }
    return [targetId, ...others].map(id => taken.filter(row => row.target_id === id).length)
  }
  // The room of the second target is 0, and that of the third is 1.
  expect(await lease(100)).toEqual([3, 0, 1])
  expect(await lease(2)).toEqual([1, 0, 1])
})

test('delivery: a new delivery begins without a claim, unless others are due', async () => {
  await using deliveries = await openDeliveries()
  const { sql } = deliveries
  const begun: string[] = []
  const kind = createTestKind({
    leasesNew: true,
    async send({ eventId }) {
      begun.push(eventId)
      return { kind: 'done' }
    },
  })
  const outbox = await deliveries.start(kind)
  const { projectId, targetId } = await deliveries.newTarget()
  const deliver = async () => {
    const [eventId = ''] = await deliveries.append(projectId)
    outbox.wake([projectId])
    await until(() => begun.includes(eventId))
    await until(async () => (await deliveries.pending(projectId)).length === 0)
  }
  await sql`create table claims (n int)`
  await sql`
    create function count_claim() returns trigger language plpgsql as $$
    begin
      insert into claims values (1);
      return new;
    end
    $$
  `
  await sql`create trigger count_claim before update on outbox for each row execute function count_claim()`
  for (let n = 0; n < 20; n++) await deliver()
  // A scan of the worker can coincide with a few of them. Without leases, each one is claimed.
  expect((await sql`select from claims`).count).toBeLessThan(10)

  await sql`
    create function refuse() returns trigger language plpgsql as $$
    begin
      raise exception 'claimed';
    end
    $$
  `
  await sql`create trigger refuse before update on outbox for each row execute function refuse()`
  // A due delivery cannot be claimed now, so it stays due. A new one must not overtake it.
  const [older = ''] = await deliveries.append(projectId)
  await sql`
    insert into outbox (project_id, event_id, kind, target_id)
    values (${projectId}, ${older}, 'webhook', ${targetId})
  `
  outbox.wakeWorkers()
  await until(() => outbox.oldestMs > 0)
  const [newer = ''] = await deliveries.append(projectId)
  outbox.wake([projectId])
  await until(async () => (await deliveries.pending(projectId)).length === 2)
  expect((await deliveries.pending(projectId)).map(row => row.is_taken)).toEqual([false, false])
  await sql`drop trigger refuse on outbox`
  await until(() => begun.includes(newer) && begun.includes(older))
})

test('delivery: a retry begins while the dispatcher is never idle', async () => {
  const { sql } = deliveries
  const begun = new Set<string>()
  const base = createTestKind()
  const kind = createTestKind({
    async send({ eventId }) {
      begun.add(eventId)
      return { kind: 'done' }
    },
    async dispatch(sql, request) {
      const done = await base.dispatch(sql, request)
      // The next dispatch follows this one at once.
      outbox.wake([busy.projectId])
      return done
    },
  })
  const outbox = await deliveries.start(kind)
  const busy = await deliveries.newTarget()
  const other = await deliveries.newTarget()
  const [retried = ''] = await deliveries.append(other.projectId)
  outbox.wake([other.projectId])
  await until(() => begun.delete(retried))
  await sql`
    insert into outbox (project_id, event_id, kind, target_id, available_at)
    values (${other.projectId}, ${retried}, 'webhook', ${crypto.randomUUID()}, now() + interval '2 s')
  `
  // It is due after 2 s. Dispatches that hold up the scan would hold it up for good.
  await until(async () => {
    await deliveries.append(busy.projectId)
    outbox.wake([busy.projectId])
    return begun.has(retried)
  })
})
