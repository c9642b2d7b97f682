import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createPool } from '../../src/db/pool.ts'
import { registerKind } from '../../src/outbox/cursors.ts'
import { startDispatcher } from '../../src/outbox/dispatcher.ts'
import type { Dispatched, EventRanges } from '../../src/outbox/kind.ts'
import { openDeliveries, type Deliveries } from '../support/deliveries.ts'
import { addTarget, createTestKind } from '../support/delivery-kind.ts'
import { newProject } from '../support/project.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

let deliveries: Deliveries
beforeAll(async () => {
  deliveries = await openDeliveries()
  await registerKind(deliveries.sql, 'webhook')
})
afterAll(() => deliveries[Symbol.asyncDispose]())

/** Runs a dispatcher as a separate process would; counts the deliveries that it wrote. */
function start(
  options: {
    dispatch?: (work: () => Promise<Dispatched>, runs: EventRanges) => Promise<Dispatched>
  } = {},
) {
  const pool = createPool(deliveries.databaseUrl, { name: 'worker', max: 4 })
  const kind = createTestKind()
  const figures = { written: 0, looks: 0 }
  const { dispatch = work => work() } = options
  const dispatcher = startDispatcher({
    pool,
    kinds: [
      {
        ...kind,
        hasTargets(sql) {
          figures.looks++
          return kind.hasTargets(sql)
        },
        dispatch: (tx, runs) =>
          dispatch(async () => {
            const dispatched = await kind.dispatch(tx, runs)
            figures.written += dispatched.count
            return dispatched
          }, runs),
      },
    ],
    onDispatched() {},
    reserve: () => undefined,
  })
  return {
    dispatcher,
    figures,
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
  expect(all.reduce((sum, { figures }) => sum + figures.written, 0)).toBe(appended)
})

test('delivery: without a hint the poll finds new events', async () => {
  const { projectId } = await deliveries.newTarget()
  await deliveries.append(projectId, 3)
  await using _ = start()
  await until(async () => (await deliveries.pending(projectId)).length === 3)
})

test('delivery: a rolled-back append is delivered to nobody', async () => {
  await using one = start()
  const { projectId } = await deliveries.newTarget()
  const { sql } = deliveries
  const channelId = crypto.randomUUID()
  const aborted = sql.begin(async tx => {
    await tx`update event_logs set last_seq = last_seq + 1 where project_id = ${projectId}`
    await tx`
      insert into channels (project_id, id, public_id, slug, name, created_at)
      values (${projectId}, ${channelId}, 'chn', 'x', 'x', now())
    `
    await tx`
      insert into events (project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, source, notify)
      values (${projectId}, ${crypto.randomUUID()}, ${channelId}, 1, now(), now(), 'x', '{}', '{}', 'test', true)
    `
    one.dispatcher.wake([projectId])
    throw new Error('rolled back')
  })
  await expect(aborted).rejects.toThrow('rolled back')
  const [eventId = ''] = await deliveries.append(projectId)
  one.dispatcher.wake([projectId])
  await until(async () => (await deliveries.pending(projectId)).length > 0)
  expect((await deliveries.pending(projectId)).map(row => row.event_id)).toEqual([eventId])
  expect(await readCursor(projectId)).toBe(1)
})

test('delivery: a new delivery kind delivers no past events and all future ones', async () => {
  await using own = await openDeliveries()
  const { projectId } = await own.newTarget()
  await own.append(projectId, 5)
  const outbox = await own.start(createTestKind({ send: async () => ({ kind: 'done' }) }))
  const later = await own.newTarget()
  const eventIds = [...(await own.append(projectId, 2)), ...(await own.append(later.projectId, 1))]
  outbox.wake([projectId, later.projectId])
  const read = async () => [...(await own.ended(projectId)), ...(await own.ended(later.projectId))]
  await until(async () => (await read()).length === 3)
  expect((await read()).map(row => row.event_id).sort()).toEqual(eventIds.sort())
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
  let dispatched = 0
  await using one = start({
    dispatch(work) {
      dispatched++
      return work()
    },
  })
  const startedMs = performance.now()
  for (let nth = 0; nth < 40; nth++) {
    await deliveries.append(projectId, 20)
    one.dispatcher.wake([projectId])
  }
  await until(async () => (await readCursor(projectId)) === 800)
  expect(one.figures.looks).toBeLessThanOrEqual((performance.now() - startedMs) / 250 + 1)
  expect(dispatched).toBe(0)

  await addTarget(deliveries.sql, projectId)
  const [eventId = ''] = await deliveries.append(projectId)
  one.dispatcher.wake([projectId])
  await until(async () => (await deliveries.pending(projectId)).length > 0)
  expect((await deliveries.pending(projectId)).map(row => row.event_id)).toEqual([eventId])
})

test('delivery: a project with a long log does not delay one with a single event', async () => {
  const long = await deliveries.newTarget()
  const short = await deliveries.newTarget()
  await deliveries.append(long.projectId, 3_000)
  await deliveries.append(short.projectId)
  const runs: EventRanges[] = []
  await using one = start({
    dispatch(work, run) {
      runs.push(run)
      return work()
    },
  })
  one.dispatcher.wake([long.projectId, short.projectId])
  await until(async () => (await readCursor(long.projectId)) === 3_000)
  expect(await readCursor(short.projectId)).toBe(1)
  const first = (projectId: string) =>
    runs.findIndex(({ projectIds }) => projectIds.includes(projectId))
  expect(first(short.projectId)).toBe(first(long.projectId))
  // A batch has 500 events.
  expect(runs.length).toBeGreaterThanOrEqual(6)
})
