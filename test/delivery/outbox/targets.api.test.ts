import { afterEach, beforeAll, expect, test } from 'bun:test'
import { NIL_UUID, parseId, toId } from '../../../src/base/ids.ts'
import { claimDeliveries, findWaitingTargets } from '../../../src/delivery/outbox/claims.ts'
import type {
  ClaimedDelivery,
  DeliveryOutcome,
} from '../../../src/delivery/outbox/delivery-kind.ts'
import { RELEASED, type Settlement } from '../../../src/delivery/outbox/settlement.ts'
import { settleDeliveries } from '../../../src/delivery/outbox/settler.ts'
import {
  forgetTargets,
  noteSuccess,
  pauseTarget,
  resumeTarget,
} from '../../../src/delivery/outbox/targets.ts'
import { countRows } from '../../support/row-counts.ts'
import { openSql } from '../../support/sql.ts'
import { until } from '../../support/until.ts'
import { openDeliveries, type Deliveries } from '../../support/worlds/deliveries.ts'
import { createTestKind } from '../../support/worlds/delivery-kind.ts'
import { newProject } from '../../support/worlds/project.ts'
import { insertWebhook } from '../../support/worlds/webhooks.ts'
import { forProcess } from '../../support/for-file.ts'

const deliveries = forProcess(openDeliveries)
afterEach(() => deliveries.clear())
let sql: Deliveries['sql']
beforeAll(async () => {
  ;({ sql } = deliveries)
})

const FAILED: Settlement = { ...RELEASED, attempts: 1, delayMs: 3_600_000, reason: 'It fails' }
const inSeconds = (seconds: number) => new Date(Date.now() + 1_000 * seconds).toISOString()

/** Returns a target with `count` due deliveries, and what is done with it. */
async function newTarget(count: number) {
  const { projectId, targetId } = await deliveries.newTarget()
  const target = { kind: 'webhook', targetId } as const
  await sql`
    insert into outbox (project_id, event_id, kind, target_id, available_at)
    select ${projectId}, gen_random_uuid(), 'webhook', ${targetId}, now() - n * interval '1 s'
    from generate_series(1, ${count}::int) as n
  `
  return {
    targetId,
    claim: (room = 8, own = sql) =>
      claimDeliveries(own, {
        ...{ kind: 'webhook', requests: [{ targetId, room, dueAt: '-infinity' }] },
        ...{ maxDeliveries: 100, leaseMs: 30_000 },
      }),
    settle: (claimed: readonly ClaimedDelivery[], settlement: Settlement) =>
      settleDeliveries(
        sql,
        claimed.map(one => ({ ...one, ...settlement })),
      ),
    pause: (...times: Parameters<typeof pauseTarget> extends [any, any, ...infer T] ? T : never) =>
      sql.begin(tx => pauseTarget(tx, target, ...times)),
    resume: () => sql.begin(tx => resumeTarget(tx, target)),
    succeed: (isForced = false) => sql.begin(tx => noteSuccess(tx, target, isForced)),
    /** Finds it in a scan whose floor is after all of its deliveries. */
    scan: async () => {
      const [{ floor }] = await sql<[{ floor: string }]>`select now()::text as floor`
      const found = await findWaitingTargets(sql, { kind: 'webhook', after: NIL_UUID, floor })
      return found.find(one => one.targetId === targetId)
    },
  }
}

test('delivery: a paused target keeps its deliveries where they are, and a resumed one gets all', async () => {
  const { claim, settle, pause, resume, scan } = await newTarget(3)
  await settle(await claim(1), FAILED)
  await pause('infinity')
  // A shorter pause changes nothing.
  await pause(inSeconds(1))
  expect([await claim(), await scan()]).toEqual([[], undefined])
  await resume()
  expect(await scan()).toMatchObject({ isSingle: false })
  // A failure before the resumption is due, and one after it waits.
  const all = await claim()
  expect(all).toHaveLength(3)
  await settle(all, FAILED)
  expect(await claim()).toEqual([])
  await resume()
  expect((await scan())?.dueInMs).toBeLessThanOrEqual(0)
  await forgetTargets(sql)
  expect(await claim()).toHaveLength(3)
})

test('delivery: a delivery in flight while its target is resumed is due if it was only postponed', async () => {
  const { claim, settle, resume } = await newTarget(1)
  const taken = await claim()
  await resume()
  expect(await claim()).toEqual([])
  await settle(taken, { ...RELEASED, delayMs: 3_600_000, reason: 'It is disabled' })
  expect(await claim()).toHaveLength(1)
})

test('delivery: a target with single attempts gets one, in whatever process, until it succeeds', async () => {
  const { targetId, claim, settle, pause, succeed, scan } = await newTarget(40)
  await pause(inSeconds(-1), 'infinity')
  expect(await scan()).toMatchObject({ isSingle: true })
  const claims = await Promise.all(Array.from({ length: 4 }, () => claim()))
  const [probe] = claims.flat()
  expect(claims.flat()).toHaveLength(1)
  // Its event was deleted: another one takes its turn.
  await settle([probe!], RELEASED)
  expect(await claim()).toHaveLength(1)
  expect(await claim()).toEqual([])
  // Its worker died.
  await sql`update outbox set available_at = now() where target_id = ${targetId} and token is not null`
  expect(await claim()).toHaveLength(1)
  await succeed()
  expect(await claim()).toHaveLength(8)
  // It asked to wait: a success in between ends the turn, and not the time of single attempts.
  await pause(inSeconds(-1), inSeconds(60))
  expect(await claim()).toHaveLength(1)
  await succeed()
  expect([await claim(), await claim()].map(({ length }) => length)).toEqual([1, 0])
  await succeed(true)
  expect(await claim()).toHaveLength(8)
})

test('delivery: new events of a target that waits are not leased', async () => {
  const { projectId, targetId } = await deliveries.newTarget()
  const sent: string[] = []
  const outbox = await deliveries.start(
    createTestKind({
      async send({ targetId: of }): Promise<DeliveryOutcome> {
        sent.push(of)
        return { kind: 'done' }
      },
    }),
  )
  const target = { kind: 'webhook', targetId } as const
  await sql.begin(tx => pauseTarget(tx, target, 'infinity'))
  await deliveries.append(projectId)
  outbox.wake([projectId])
  await until(async () => (await deliveries.pending(projectId)).length === 1)
  expect(await deliveries.pending(projectId)).toMatchObject([{ is_taken: false, claim_count: 0 }])
  await sql.begin(tx => resumeTarget(tx, target))
  await until(async () => (await deliveries.ended(projectId)).length === 1)
})

test('delivery: a target is forgotten a minute after its pause and its resumption', async () => {
  const { targetId, claim, settle, resume } = await newTarget(1)
  await settle(await claim(), FAILED)
  await resume()
  const isKnown = async () => {
    await forgetTargets(sql)
    return (await sql`select from delivery_targets where id = ${targetId}`).length > 0
  }
  await sql`update outbox set claimed_at = claimed_at - interval '2 minutes' where target_id = ${targetId}`
  await sql`update delivery_targets set resumed_at = resumed_at - interval '61 s' where id = ${targetId}`
  expect(await isKnown()).toBe(true)
  await claim()
  expect(await isKnown()).toBe(false)
})

test('delivery: 10,000 deliveries of a paused target cost a scan and a claim no more than one', async () => {
  const own = openSql(deliveries.databaseUrl, { max: 1 })
  const waiting = await newTarget(1)
  await waiting.pause('infinity')
  const { targetId, claim, settle } = await newTarget(8)
  const read = async () => {
    const rows = await countRows(own)
    return (rows.get('outbox') ?? 0) + (rows.get('delivery_targets') ?? 0)
  }
  const work = async () => {
    const before = await read()
    await findWaitingTargets(own, { kind: 'webhook', after: NIL_UUID, floor: null })
    await forgetTargets(own)
    const claimed = await claim(8, own)
    expect(claimed).toHaveLength(8)
    const rows = (await read()) - before
    await settle(claimed, RELEASED)
    return rows
  }
  await work()
  const few = await work()
  await own`
    insert into outbox (project_id, event_id, kind, target_id, available_at)
    select o.project_id, gen_random_uuid(), 'webhook', o.target_id, now() - n * interval '1 ms'
    from outbox o
      cross join generate_series(1, 10000) as n
    where o.target_id = ${waiting.targetId}
  `
  await own`analyze outbox`
  expect(await work()).toBeLessThanOrEqual(few)
  // A scan with a floor does not pass through what is older.
  const blocks = async () => {
    await own`select pg_stat_force_next_flush()`
    const [row] = await own<[{ n: string }]>`
      select idx_blks_hit + idx_blks_read as n from pg_statio_user_indexes where indexrelname = 'outbox_of_target'
    `
    return Number(row.n)
  }
  await own`vacuum outbox`
  const floor = new Date().toISOString()
  const before = await blocks()
  await findWaitingTargets(own, { kind: 'webhook', after: NIL_UUID, floor })
  expect((await blocks()) - before).toBeLessThan(100)
  // More paused targets than a scan returns come before it.
  await own`
    with made as (
      insert into delivery_targets (kind, id, paused_until)
      select 'webhook', ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'infinity'
      from generate_series(1, 5001) as n
      returning id
    )
    insert into outbox (project_id, event_id, kind, target_id)
    select o.project_id, gen_random_uuid(), 'webhook', m.id
    from made m
      cross join (select project_id from outbox limit 1) o
  `
  const found = await findWaitingTargets(own, { kind: 'webhook', after: NIL_UUID, floor: null })
  expect(found.map(one => one.targetId)).toContain(targetId)
  await own.end()
})

test('delivery: a server of 0.3.0 reads webhooks without a pause, resumes targets, and settles deliveries', async () => {
  const { id: projectId } = await newProject({ sql, url: '' })
  const [eventId = ''] = await deliveries.append(projectId)
  const { webhookId } = await insertWebhook(deliveries, projectId, {
    ...{ eventId: toId('evt', eventId), mark: 'a' },
  })
  const read = await sql`
    select webhook ->> 'pausedUntilMs' as paused, webhook ->> 'hasProbe' as probe, webhook ->> 'hasFailures' as failures
    from read_webhook_deliveries(
      project_ids => array[${projectId}::uuid], webhook_ids => array[${parseId('whk', webhookId)!}::uuid],
      event_ids => array[${eventId}::uuid], may_probe => true, failures_to_pause => 10, probe_s => 30
    )
    where webhook is not null
  `
  expect([...read]).toEqual([{ paused: null, probe: 'false', failures: 'false' }])
  const { targetId, claim, pause } = await newTarget(2)
  await pause('infinity')
  await sql`
    insert into resumed_targets (kind, target_id) values ('webhook', ${targetId})
    on conflict (kind, target_id) do update set next_at = excluded.next_at, since = excluded.since
  `
  const resumed = await sql`select kind, target_id, is_done from resume_deliveries(1000)`
  expect([...resumed]).toEqual([{ kind: 'webhook', target_id: targetId, is_done: true }])
  expect(await sql`select from resume_deliveries(1000)`).toHaveLength(0)
  const [mine, lost] = await claim()
  expect([mine, lost]).not.toContain(undefined)
  const settled = await sql<{ id: string }[]>`
    select store_settlements(
      ids => array[${mine!.id}, ${lost!.id}]::uuid[],
      tokens => array[${mine!.token}, gen_random_uuid()]::uuid[],
      states => '{delivered,delivered}', made_attempts => '{1,1}', delays_ms => '{null,null}',
      reasons => '{null,null}', latencies_ms => '{1,1}'
    ) as id
  `
  expect(settled.map(({ id }) => id)).toEqual([lost!.id])
  const left = await sql<{ id: string }[]>`select id from outbox where target_id = ${targetId}`
  expect(left.map(({ id }) => id)).toEqual([lost!.id])
})
