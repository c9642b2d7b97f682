import { afterEach, expect, test } from 'bun:test'
import { toId } from '../../../src/base/ids.ts'
import { WORKER_SETTINGS } from '../../../src/database/session.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { HIDDEN } from '../../../src/delivery/outbox/settlement.ts'
import { createSettler } from '../../../src/delivery/outbox/settler.ts'
import {
  BACKLOG_FULL,
  MAX_BACKLOG,
  sweepWebhooks,
} from '../../../src/delivery/webhooks/dispatch.ts'
import { createWebhookKind } from '../../../src/delivery/webhooks/sender.ts'
import { hold, type DatabaseLock } from '../../support/database-lock.ts'
import { forProcess } from '../../support/for-file.ts'
import { until } from '../../support/until.ts'
import { openDeliveries } from '../../support/worlds/deliveries.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'
import { bootForWebhooks, dispatchAfter } from '../../support/worlds/webhooks.ts'

const world = forProcess(bootForWebhooks)
const deliveries = forProcess(openDeliveries)
afterEach(() => deliveries.clear())

test('delivery: an event that is deleted after its claim holds up no other event of the target', async () => {
  const sent: string[] = []
  const outbox = await deliveries.start(
    createTestKind({
      perTarget: 1,
      async send({ eventId }) {
        sent.push(eventId)
        return sent.length === 1 ? HIDDEN : { kind: 'done' }
      },
    }),
  )
  const { projectId } = await deliveries.newTarget()
  const events = await deliveries.append(projectId, 3)
  outbox.wake([projectId])
  await until(async () => (await deliveries.ended(projectId)).length === 2)
  expect(sent.toSorted()).toEqual(events.toSorted())
})

/**
 * Returns `count` deliveries in flight, and a settler for them. `onError` is called before the pool
 * reports an error.
 */
async function newSettler(count: number, onError?: () => Promise<void>) {
  const projectId = crypto.randomUUID()
  const token = crypto.randomUUID()
  const rows = await deliveries.sql<{ id: string }[]>`
    insert into outbox (project_id, event_id, kind, target_id, token, available_at)
    select ${projectId}, gen_random_uuid(), 'webhook', gen_random_uuid(), ${token}, now() + interval '10 minutes'
    from generate_series(1, ${count}::int)
    returning id
  `
  const settings = { ...WORKER_SETTINGS, lock_timeout: 300 }
  const own = createPool(deliveries.databaseUrl, { name: 'worker', max: 1, settings })
  const codes = new Set<string | undefined>()
  const [stored, lost] = [[] as string[], [] as string[]]
  let statements = 0
  const run = (work: Parameters<Pool['run']>[0]) => {
    statements++
    return own.run(work).catch(async (error: { code?: string }) => {
      codes.add(error.code)
      await onError?.()
      throw error
    })
  }
  const settler = createSettler({
    pool: Object.create(own, { run: { value: run } }) as Pool,
    onSettled(batch, gone) {
      for (const { id } of batch) (gone.has(id) ? lost : stored).push(id)
    },
  })
  return {
    ...{ projectId, codes, stored, lost },
    ids: rows.map(({ id }) => id),
    /** Adds the outcome of an attempt. */
    end: (id: string, state: 'delivered' | 'failed' = 'delivered') =>
      settler.add({ id, token }, { state, attempts: 1, delayMs: null, reason: null, latencyMs: 1 }),
    drain: (ms: number) => settler.drain(performance.now() + ms),
    countStatements: () => statements,
    [Symbol.asyncDispose]: () => own.end(),
  }
}

test('delivery: a lock that meets the outcomes of a refused batch loses none of them', async () => {
  let held: DatabaseLock | undefined
  await using one = await newSettler(2, async () => {
    held ??= await hold(
      deliveries.sql,
      tx => tx`select from outbox where id = ${one.ids[1]!} for update`,
    )
  })
  const [refused = '', locked = ''] = one.ids
  // A state that the table does not have.
  one.end(refused, 'unknown' as 'failed')
  one.end(locked)
  await until(() => one.lost.length > 0)
  expect([...one.codes]).toEqual(['23514'])
  await held?.release()
  await until(() => one.stored.length > 0)
  expect([one.stored, one.lost]).toEqual([[locked], [refused]])
  await one.drain(1_000)
})

test('delivery: outcomes whose transaction ends with a deadlock are stored again', async () => {
  const { sql } = deliveries
  await sql.unsafe(`
    create function fail_settlement() returns trigger language plpgsql as $$
    begin raise exception 'A conflict' using errcode = '40P01'; end $$;
    create trigger fail_settlement before delete on outbox for each row execute function fail_settlement();
  `)
  await using one = await newSettler(2)
  for (const id of one.ids) one.end(id)
  await until(() => one.codes.has('40P01'))
  await sql`drop trigger fail_settlement on outbox`
  await until(() => one.stored.length + one.lost.length === 2)
  expect([[...one.codes], one.lost]).toEqual([['40P01'], []])
  await one.drain(1_000)
})

test('delivery: many locked outcomes are held back together, and a drain ends', async () => {
  await using one = await newSettler(201)
  const [free = ''] = one.ids
  await using _ = await hold(
    deliveries.sql,
    tx => tx`select from outbox where project_id = ${one.projectId} and id <> ${free} for update`,
  )
  for (const id of one.ids) one.end(id)
  await until(() => one.stored.length === 1)
  await one.drain(1_000)
  expect(one.stored).toEqual([free])
  expect(one.countStatements()).toBeLessThan(20)
})

test('delivery: outcomes have the usual time to be stored, also one that was locked', async () => {
  const { sql } = deliveries
  await using one = await newSettler(2)
  await sql.unsafe(`
    create function time_settlement() returns trigger language plpgsql as $$
    begin assert current_setting('statement_timeout')::interval > '1 s'; return null; end $$;
    create trigger time_settlement before delete on outbox execute function time_settlement();
  `)
  const held = await hold(sql, tx => tx`select from outbox where id = ${one.ids[0]!} for update`)
  for (const id of one.ids) one.end(id)
  await until(() => one.stored.length === 1)
  await held.release()
  await until(() => one.stored.length === 2)
  expect([...one.codes]).toEqual([])
  await sql`drop trigger time_settlement on outbox`
})

test('delivery: a row that another transaction locks ends no lease, and holds up no outcome of others', async () => {
  const sent = new Map<string, { signal: AbortSignal; answer(): void }>()
  let attempts = 0
  const outbox = await deliveries.start(
    createTestKind({
      timeoutMs: 1_000,
      leaseMs: 9_000,
      send: ({ eventId }, signal) =>
        new Promise(resolve => {
          attempts++
          sent.set(eventId, { signal, answer: () => resolve({ kind: 'done' }) })
        }),
    }),
  )
  const { sql } = deliveries
  const { projectId } = await deliveries.newTarget()
  const append = async (count: number) => {
    const before = sent.size
    const eventIds = await deliveries.append(projectId, count)
    outbox.wake([projectId])
    await until(() => sent.size === before + count)
    return eventIds
  }
  const end = async (eventIds: string[], expected: string[]) => {
    for (const id of eventIds) sent.get(id)?.answer()
    await until(async () => (await deliveries.ended(projectId)).length === expected.length)
    expect((await deliveries.ended(projectId)).map(one => one.event_id)).toEqual(
      expected.toSorted(),
    )
  }
  const [first = '', ...others] = await append(3)
  await using lock = await hold(
    sql,
    tx => tx`select from outbox where event_id = ${first} for update`,
  )
  const readEnds = async () =>
    [
      ...(await sql<{ at: string }[]>`
        select available_at::text as at from outbox where event_id in ${sql(others)}
      `),
    ].map(({ at }) => at)
  const before = await readEnds()
  await until(async () => (await readEnds()).every(at => !before.includes(at)))
  expect([...sent.values()].map(({ signal }) => signal.aborted)).toEqual([false, false, false])
  await end([first, ...others], others)
  // Those that end later do not wait for it, either.
  const later = await append(2)
  await end(later, [...others, ...later])
  await lock.release()
  await end([], [first, ...others, ...later])
  expect(attempts).toBe(5)
})

test('delivery: beyond 100,000 deliveries that wait for a webhook, new events are recorded and not queued', async () => {
  const webhook = await world.webhooks.create(world.receiver.url)
  const project = webhook.organization.project.uuid
  const kind = createWebhookKind(world.webhooks.parts)
  const { sql } = world.server
  const fill = async (count: number) => {
    for (let left = count; left > 0; left -= 5_000) {
      await sql`
        insert into outbox (id, project_id, event_id, kind, target_id)
        select gen_random_uuid(), ${project}, gen_random_uuid(), 'webhook', ${webhook.uuid}
        from generate_series(1, ${Math.min(left, 5_000)}::int)
      `
    }
  }
  const recover = async () => {
    const since = new Date(Date.now() - 3_600_000).toISOString()
    return (await webhook.admin.post(`${webhook.path}/recover`, { since })).status
  }
  const readFlag = async () => (await webhook.get())['backlogFullAt']
  const dispatch = async () => {
    const event = await webhook.newEvent()
    const [row] = await sql<[{ seq: number }]>`
      select last_seq::int as seq from event_logs where project_id = ${project}
    `
    const { count } = await dispatchAfter(sql, kind, { projectId: project, seq: row.seq - 1 })
    return { event, written: count }
  }

  await fill(MAX_BACKLOG - 1)
  await sweepWebhooks(sql, true)
  expect(await readFlag()).toBeNull()
  expect((await dispatch()).written).toBe(1)
  await sweepWebhooks(sql, true)
  expect(await readFlag()).toBeString()
  const { event, written } = await dispatch()
  expect(written).toBe(0)
  const records = await sql<{ event_id: string; state: string; reason: string }[]>`
    select event_id, state, reason from deliveries where target_id = ${webhook.uuid}
  `
  expect(records.map(row => ({ ...row, event_id: toId('evt', row.event_id) }))).toEqual([
    { event_id: event, state: 'failed', reason: BACKLOG_FULL },
  ])

  // Frees a tenth of the queue.
  await sql`
    delete from outbox where id = any(array(
      select id from outbox where target_id = ${webhook.uuid} limit ${MAX_BACKLOG / 10}
    ))
  `
  await sweepWebhooks(sql, false)
  expect(await readFlag()).toBeString()
  expect(await recover()).toBe(409)
  await sql`
    delete from outbox where id = (select id from outbox where target_id = ${webhook.uuid} limit 1)
  `
  await sweepWebhooks(sql, false)
  expect(await readFlag()).toBeNull()
  expect((await dispatch()).written).toBe(1)
  // A recovery stops before it keeps out new events.
  expect(await recover()).toBe(409)
  await sql`
    delete from outbox where id = any(array(
      select id from outbox where target_id = ${webhook.uuid} limit 1
    ))
  `
  expect(await recover()).toBe(200)
})
