import { afterEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createPool } from '../../../src/database/pool.ts'
import type { Queryable, Sql } from '../../../src/database/sql.ts'
import { startDispatcher } from '../../../src/delivery/outbox/dispatcher.ts'
import type { Dispatched } from '../../../src/delivery/outbox/delivery-kind.ts'
import { hold } from '../../support/database-lock.ts'
import { until } from '../../support/until.ts'
import { openDeliveries } from '../../support/worlds/deliveries.ts'
import { addTarget, createTestKind } from '../../support/worlds/delivery-kind.ts'
import { newProject } from '../../support/worlds/project.ts'
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
  for (let round = 0; round < 25; round++) {
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
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(60), { maxLength: 6 }),
      fc.integer({ min: 6, max: 100 }),
      async (lengths, max) => {
        const taken = await take(lengths, max)
        const sum = taken.reduce((all, one) => all + one, 0)
        expect(sum).toBeLessThanOrEqual(max)
        // Only rounding leaves a part unused.
        const isCut = (nth: number) => (taken[nth] ?? 0) < (lengths[nth] ?? 0)
        if (taken.some((_, nth) => isCut(nth))) expect(sum).toBeGreaterThan(max - lengths.length)
        const most = Math.max(0, ...taken)
        for (const nth of taken.keys()) if (isCut(nth)) expect(taken[nth]).toBe(most)
      },
    ),
    { numRuns: 20 },
  )
})
