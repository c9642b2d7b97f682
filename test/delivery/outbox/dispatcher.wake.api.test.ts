import { expect, test } from 'bun:test'
import type { NewLease } from '../../../src/delivery/outbox/delivery-kind.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { boot } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'
import { appendEvents, openDeliveries, type Deliveries } from '../../support/worlds/deliveries.ts'
import { addTarget, createTargets, createTestKind } from '../../support/worlds/delivery-kind.ts'
import { createRequests, newProject } from '../../support/worlds/project.ts'
import { openSql } from '../../support/sql.ts'

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

/** Dispatches the first `count` events of a project with a lease, as a dispatcher does. */
function dispatch({ sql }: Deliveries, projectId: string, count: number, lease: NewLease) {
  return createTestKind().dispatch(sql, { projectIds: [projectId], maxEvents: count, lease })
}

const LEASE = { token: crypto.randomUUID(), leaseMs: 30_000, free: 100, perTarget: 3, rooms: [] }

test('delivery: a dispatch leases at most the free slots, and in turn the room of each target', async () => {
  await using deliveries = await openDeliveries()
  const lease = async (free: number) => {
    const { projectId, targetId } = await deliveries.newTarget()
    const others = [
      await addTarget(deliveries.sql, projectId),
      await addTarget(deliveries.sql, projectId),
    ]
    const [deleted = ''] = await deliveries.append(projectId, 5)
    await deliveries.sql`update events set deleted_at = now() where id = ${deleted}`
    const rooms = others.map((id, room) => ({ targetId: id, room }))
    const done = await dispatch(deliveries, projectId, 5, { ...LEASE, free, rooms })
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
  await using deliveries = await openDeliveries()
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
