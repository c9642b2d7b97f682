import { expect, test } from 'bun:test'
import { SERVER } from '../../../src/access/audit/audit.ts'
import type { CallOn } from '../../../src/access/guard/guard.ts'
import { parseId } from '../../../src/base/ids.ts'
import { acknowledge as acknowledgeIn } from '../../../src/delivery/acknowledgements/acknowledgements.ts'
import type { DeliveryAttempt } from '../../../src/delivery/outbox/delivery-kind.ts'
import { WITHHELD_REASONS } from '../../../src/delivery/push/dispatch.ts'
import { stepAlarm } from '../../../src/delivery/timers/alarm-step.ts'
import { createTimerKind } from '../../../src/delivery/timers/timers.ts'
import { lockPushDispatch } from '../../support/database-lock.ts'
import { openPushWorld, toDailyHours } from '../../support/worlds/push.ts'
import { newMember, type SignedInAccount } from '../../support/worlds/signed-in-account.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(openPushWorld)

/** A critical event of a thread, after its dispatch. */
async function raise(tenant: TestTenant, event: object = {}): Promise<{ id: string; seq: number }> {
  const sent = await tenant.send({ thread: 'disk', state: 'firing', level: 'critical', ...event })
  await world.untilDispatched(tenant.projectId)
  return sent
}

/** Returns the timers of an event: `0 pending`, or `1 withheld: why`, by their numbers. */
async function timersOf({ id }: { id: string }): Promise<string[]> {
  const rows = await world.server.sql<{ timer: string }[]>`
    select concat(right(t.target_id::text, 1), ' ', t.state, ': ' || t.reason) as timer
    from (
      select o.target_id, 'pending' as state, null as reason
      from outbox o
      where o.kind = 'timer' and o.event_id = ${parseId('evt', id)!}
      union all
      select d.target_id, d.state, d.reason from deliveries d
      where d.kind = 'timer' and d.event_id = ${parseId('evt', id)!}
    ) t
    order by 1
  `
  return rows.map(({ timer }) => timer)
}

const untilTimers = (event: { id: string }, expected: string[]) =>
  until(async () => Bun.deepEquals(await timersOf(event), expected))

/** Resolves when the pushes of an event to `n` devices are settled. */
const untilTold = (event: { id: string }, n: number) =>
  until(
    async () =>
      Object.values(await world.outcomes(event)).filter(one => one === 'delivered').length === n,
  )

/** Lets time pass for the timers and the pushes of an event, and so makes its next timers due. */
async function pass({ id }: { id: string }, minutes: number, lateMinutes = 0): Promise<void> {
  const { sql } = world.server
  const uuid = parseId('evt', id)!
  const late = `${minutes + lateMinutes} minutes`
  await sql`update deliveries set at = at - ${late}::interval where event_id = ${uuid}`
  await sql`
    update outbox set
      available_at = case
        when available_at - ${late}::interval > now() then available_at - ${late}::interval
        -- A scan skips what was due long before.
        else now()
      end,
      requested_at = requested_at - ${late}::interval
    where event_id = ${uuid} and kind = 'timer'
  `
}

async function setEscalation(
  tenant: TestTenant,
  escalation: object | null,
  status = 200,
): Promise<void> {
  await tenant.send({ notify: false })
  const { account, path } = tenant
  const { body } = await account.get(`${path}/channels`)
  const answer = await account.patch(`${path}/channels/${body.data.items[0].id}`, { escalation })
  expect(answer.status).toBe(status)
}

const acknowledge = ({ account, path }: TestTenant, { id }: { id: string }, body = {}) =>
  account.post(`${path}/events/${id}/acknowledgement`, body)

type Device = Awaited<ReturnType<typeof world.subscribe>>
const count = (device: Device) => world.service.of(device).length

/** Two members with a device each: the admin of the tenant, and another one. */
async function newTeam(): Promise<{
  tenant: TestTenant
  owner: SignedInAccount
  devices: {
    admin: Awaited<ReturnType<typeof world.subscribe>>
    owner: Awaited<ReturnType<typeof world.subscribe>>
  }
}> {
  const tenant = await newTenant(world.server)
  const owner = await newMember(world.server, tenant.organization, 'owner')
  const devices = {
    admin: await world.subscribe(tenant.account),
    owner: await world.subscribe(owner),
  }
  await world.server.sql`update push_subscriptions set created_at = now() - interval '1 hour'`
  return { tenant, owner, devices }
}

test('attention §4 a critical alarm is repeated from the last push that was sent, until it is acknowledged', async () => {
  const { tenant, devices } = await newTeam()
  const event = await raise(tenant)
  await untilTold(event, 2)
  expect(await timersOf(event)).toEqual(['0 pending'])
  await tenant.send({ level: 'high' })
  await pass(event, 5)
  await until(() => count(devices.admin) === 3)
  const [first, , again] = world.service.of(devices.admin)
  expect([first!.notification.renotify, first!.ttl]).toEqual([undefined, 300])
  expect([again!.notification.tag, again!.notification.renotify, again!.ttl]).toEqual([
    first!.notification.tag,
    true,
    300,
  ])
  // A step that is made again after a crash repeats nothing.
  await world.server.sql`update outbox set available_at = now() where kind = 'timer'`
  await until(async () => {
    const [row] = await world.server.sql<{ is_waiting: boolean }[]>`
      select bool_and(available_at > now() + interval '4 minutes') as is_waiting from outbox
      where kind = 'timer' and event_id = ${parseId('evt', event.id)!}
    `
    return row!.is_waiting
  })
  expect(count(devices.admin)).toBe(3)
  expect((await acknowledge(tenant, event)).status).toBe(200)
  expect(await timersOf(event)).toEqual([`0 cancelled: ${WITHHELD_REASONS.acknowledged}`])
})

test('attention §4 repetition ends after two hours, an hour late, with the thread, and in a storm', async () => {
  const { sql } = world.server
  const { tenant } = await newTeam()
  const old = await raise(tenant, { thread: 'old' })
  await sql`update events set created_at = created_at - interval '121 minutes' where id = ${parseId('evt', old.id)!}`
  await pass(old, 5)
  await untilTimers(old, ['0 withheld: Repeated for two hours'])
  const late = await raise(tenant, { thread: 'late' })
  await pass(late, 5, 61)
  await untilTimers(late, ['0 withheld: More than an hour late'])
  const solved = await raise(tenant, { thread: 'solved' })
  await raise(tenant, { thread: 'solved', state: 'resolved' })
  expect(await timersOf(solved)).toEqual(['0 cancelled: The thread has ended'])
  const deleted = await raise(tenant, { thread: 'deleted' })
  await sql`delete from events where id = ${parseId('evt', deleted.id)!}`
  expect(await timersOf(deleted)).toEqual(['0 cancelled: The event was deleted'])
  const alone = await raise(tenant, { thread: undefined, state: undefined })
  expect(await timersOf(alone)).toEqual(['0 pending'])
  // Those that stopped before a step, and failures that were told aloud.
  const failed = await raise(tenant, { thread: 'job', state: 'failed' })
  expect(await timersOf(failed)).toEqual(['0 pending'])
  await raise(tenant, { thread: 'job', state: 'succeeded' })
  await pass(failed, 5)
  await untilTimers(failed, ['0 withheld: The thread has ended'])
})

test('attention §4 of a storm only what speaks for it is repeated, until all of it has ended', async () => {
  const { tenant, devices } = await newTeam()
  const fired: { id: string }[] = []
  for (let n = 0; n < 6; n++) fired.push(await raise(tenant, { thread: `disk ${n}` }))
  await pass(fired[0]!, 5)
  await untilTimers(fired[0]!, [`0 withheld: ${WITHHELD_REASONS.storm}`])
  expect(await timersOf(fired[5]!)).toEqual([])
  await raise(tenant, { thread: 'disk 4', state: 'resolved' })
  await until(async () => (await world.outcomes(fired[4]!))[devices.admin.id] === 'delivered')
  const before = count(devices.admin)
  await pass(fired[4]!, 5)
  await until(() => count(devices.admin) > before)
  expect(world.service.of(devices.admin).at(-1)!.notification.title).toBe('5 firing in ops')
  for (const n of [0, 1, 2, 3, 5]) await raise(tenant, { thread: `disk ${n}`, state: 'resolved' })
  expect(await timersOf(fired[4]!)).toEqual(['0 cancelled: The thread has ended'])
})

test('attention §4 a storm is repeated while something in it is urgent, whoever spoke for it', async () => {
  const { tenant, devices } = await newTeam()
  const fire = (thread: string, level: string, state = 'firing') =>
    raise(tenant, { thread, level, state })
  const urgent = await fire('urgent', 'critical')
  for (let n = 1; n < 4; n++) await fire(`disk ${n}`, 'normal')
  await fire('disk 4', 'normal')
  await until(async () => (await world.outcomes(urgent))[devices.admin.id] === 'delivered')
  // The storm is less urgent, so this one was told on its own.
  let before = count(devices.admin)
  await pass(urgent, 5)
  await until(() => count(devices.admin) > before)
  expect(await timersOf(urgent)).toEqual(['0 pending'])

  const speaker = await fire('speaker', 'critical')
  await fire('joined', 'critical')
  await until(async () => (await world.outcomes(speaker))[devices.admin.id] === 'delivered')
  await fire('speaker', 'critical', 'resolved')
  before = count(devices.admin)
  await pass(speaker, 5)
  await until(() => count(devices.admin) > before)
  await fire('joined', 'critical', 'resolved')
  await fire('urgent', 'critical', 'resolved')
  await pass(speaker, 5)
  await untilTimers(speaker, ['0 withheld: No longer critical'])
})

test('attention §4 a device that fails, a clock that was set back and a deleted event stop no repetition', async () => {
  const { sql } = world.server
  const { tenant, devices } = await newTeam()
  const event = await raise(tenant)
  const eventId = parseId('evt', event.id)!
  await untilTold(event, 2)
  await sql`
    insert into outbox (project_id, event_id, kind, target_id, attempts, reason, available_at)
    values
      (${tenant.projectId}, ${eventId}, 'push', new_delivery_id(), 1, null, now() + interval '1 hour'),
      (${tenant.projectId}, ${eventId}, 'push', new_delivery_id(), 0, 'The service asks to wait', now() + interval '1 hour')
  `
  await sql`update deliveries set at = now() + interval '50 minutes' where event_id = ${eventId}`
  await pass(event, 5)
  await sql`update deliveries set at = now() + interval '50 minutes' where event_id = ${eventId}`
  await until(() => count(devices.admin) === 2)
  // Without the event that was told last, the thread goes on with its newest one.
  await tenant.send({ level: 'high' })
  const loud = await raise(tenant)
  await until(async () => (await world.outcomes(loud))[devices.admin.id] === 'delivered')
  const last = await raise(tenant)
  await until(async () => (await world.outcomes(last))[devices.admin.id] === 'delivered')
  await tenant.account.delete(`${tenant.path}/events/${loud.id}`)
  const before = count(devices.admin)
  await sql`update deliveries set at = at - interval '5 minutes' where event_id = ${parseId('evt', last.id)!}`
  await pass(event, 5)
  await until(() => count(devices.admin) > before)
})

test('attention §4 a silence keeps an alarm without a thread waiting, and that of a key no storm', async () => {
  const { tenant, devices } = await newTeam()
  const silence = async (of: object) => {
    const { body } = await tenant.v1.post('/v1/silences', { minutes: 60, reason: 'Update', ...of })
    return () => tenant.account.delete(`${tenant.path}/silences/${body.data.id}`)
  }
  const alone = await raise(tenant, { thread: undefined, state: undefined })
  await untilTold(alone, 2)
  const end = await silence({})
  await pass(alone, 5)
  await until(async () => {
    const [row] = await world.server.sql<{ is_waiting: boolean }[]>`
      select available_at > now() + interval '50 seconds' and requested_at <= now() as is_waiting from outbox
      where kind = 'timer' and event_id = ${parseId('evt', alone.id)!}
    `
    return row!.is_waiting
  })
  await end()
  await pass(alone, 5)
  await until(() => count(devices.admin) === 2)

  const fired: { id: string }[] = []
  for (let n = 0; n < 5; n++) fired.push(await raise(tenant, { thread: `disk ${n}` }))
  await until(async () => (await world.outcomes(fired[4]!))[devices.admin.id] === 'delivered')
  await silence({ channel: 'ops', thread: 'disk 4' })
  const before = count(devices.admin)
  await pass(fired[4]!, 5)
  await until(() => count(devices.admin) > before)
})

test('attention §4 stages tell who is on duty, then others; one that reaches nobody hastens the next', async () => {
  const { tenant, owner, devices } = await newTeam()
  const { account, path } = tenant
  const stages = [
    { afterMinutes: 0, to: 'onDuty' },
    { afterMinutes: 5, to: { members: [account.id] } },
    { afterMinutes: 30, to: { role: 'admin' } },
  ]
  await setEscalation(tenant, { level: 'normal', stages }, 400)
  await setEscalation(tenant, { level: 'high', stages })
  const until_ = new Date(Date.now() + 3_600_000).toISOString()
  const put = await account.put(`${path}/on-duty`, { memberId: owner.id, until: until_ })
  expect(put.body.data).toEqual({
    member: { id: owner.id, name: expect.any(String) },
    until: until_,
  })
  const event = await raise(tenant, { level: 'high' })
  await until(() => count(devices.owner) === 1)
  expect((await world.outcomes(event))['nobody']).toBe(`withheld: ${WITHHELD_REASONS.staged}`)
  await untilTimers(event, ['1 delivered', '2 pending', '3 pending'])
  expect(count(devices.admin)).toBe(0)
  await pass(event, 5)
  await until(() => count(devices.admin) === 1)
  await pass(event, 25)
  await untilTimers(event, ['1 delivered', '2 delivered', '3 delivered'])
  // Those that were told already are not told again.
  expect([count(devices.admin), count(devices.owner)]).toEqual([1, 1])

  expect((await account.delete(`${path}/on-duty`)).body.data.member).toBeNull()
  const nobody = await raise(tenant, { level: 'high', thread: 'nobody' })
  await until(() => count(devices.admin) === 2)
  await untilTimers(nobody, ['1 withheld: Nobody is on duty', '2 delivered', '3 pending'])
  // An acknowledgement with an end moves the stages that are left.
  expect((await acknowledge(tenant, nobody, { minutes: 60 })).status).toBe(200)
  expect(await timersOf(nobody)).toContain('3 pending')
  const [left] = await world.server.sql<{ minutes: number }[]>`
    select round(extract(epoch from available_at - now()) / 60)::int as minutes from outbox
    where kind = 'timer' and event_id = ${parseId('evt', nobody.id)!}
  `
  expect(left!.minutes).toBe(90)
  await world.server
    .sql`update acknowledgements set until = now() where project_id = ${tenant.projectId}`
  expect((await acknowledge(tenant, nobody)).status).toBe(200)
  expect(await timersOf(nobody)).toContain(`3 cancelled: ${WITHHELD_REASONS.acknowledged}`)
})

test('attention §4 if the last stage reaches nobody, the owners are told, once', async () => {
  const { sql } = world.server
  const { tenant, devices } = await newTeam()
  await setEscalation(tenant, {
    stages: [{ afterMinutes: 0, to: { members: [tenant.account.id] } }],
  })
  await sql`update push_subscriptions set is_on = false where id = ${parseId('psh', devices.admin.id)!}`
  const event = await raise(tenant)
  await until(() => count(devices.owner) === 1)
  const reason = 'No device of them can be told now. The owners were told'
  await untilTimers(event, ['0 pending', `1 withheld: ${reason}`])
  // As if the server had been killed before it settled the step.
  await sql`delete from deliveries where kind = 'timer'`
  await sql`
    insert into outbox (project_id, event_id, kind, target_id, reason)
    values (${tenant.projectId}, ${parseId('evt', event.id)!}, 'timer', timer_target(${tenant.projectId}, 1), ${reason})
  `
  await untilTimers(event, ['0 pending', `1 withheld: ${reason}`])
  expect(count(devices.owner)).toBe(1)
})

test('attention §4 a stage that was removed during an alarm reaches nobody, so that others are told', async () => {
  const { tenant, devices } = await newTeam()
  const stage = { afterMinutes: 5, to: { members: [tenant.account.id] } }
  await setEscalation(tenant, { stages: [stage, { ...stage, afterMinutes: 30 }] })
  const event = await raise(tenant)
  await setEscalation(tenant, { stages: [stage] })
  await pass(event, 30)
  await until(() => count(devices.admin) === 1)
  const reason = 'No device of them can be told now. The owners were told'
  await untilTimers(event, ['0 pending', '1 delivered', `2 withheld: ${reason}`])
  expect(count(devices.owner)).toBe(1)
})

test('attention §4 a device that a stage has passed over is told of by no other stage', async () => {
  const { tenant, owner, devices } = await newTeam()
  await setEscalation(tenant, {
    stages: [
      { afterMinutes: 0, to: { members: [owner.id] } },
      { afterMinutes: 30, to: { role: 'owner' } },
    ],
  })
  const settings = { quietHours: toDailyHours(-60, 60) }
  await owner.patch(`/api/push/subscriptions/${devices.owner.id}`, settings)
  const event = await raise(tenant)
  await untilTimers(event, [
    '0 pending',
    '1 withheld: No device of them can be told now',
    '2 withheld: No device of them can be told now. No owner can be told now',
  ])
})

test('the steps of a project take connections as its share', async () => {
  const of = (share: string) => {
    throw new Error(`the share ${share}`)
  }
  const kind = createTimerKind({ pool: { of } } as unknown as Parameters<typeof createTimerKind>[0])
  const attempt = { projectId: 'a', eventId: 'b', targetId: 'b' } as DeliveryAttempt
  await expect(kind.send(attempt, AbortSignal.abort())).rejects.toThrow('the share a')
})

test('attention §4 a stage keeps why it did not reach a device, for its quiet summary, too', async () => {
  const { sql } = world.server
  const { tenant, owner, devices } = await newTeam()
  await setEscalation(tenant, { stages: [{ afterMinutes: 0, to: { role: 'admin' } }] })
  const uuid = parseId('psh', devices.owner.id)!
  const settings = { quietHours: toDailyHours(-60, 60), hasQuietSummary: true }
  const set = await owner.patch(`/api/push/subscriptions/${devices.owner.id}`, settings)
  expect(set.status).toBe(200)
  const event = await raise(tenant)
  await until(async () => devices.owner.id in (await world.outcomes(event)))
  expect(await world.outcomes(event)).toMatchObject({
    [devices.owner.id]: `withheld: ${WITHHELD_REASONS.quiet}`,
  })
  expect((await sql`select from quiet_pushes where target_id = ${uuid}`).count).toBe(1)
  // A push that was sent before the hours is not counted again.
  await sql`delete from quiet_pushes`
  await sql`update deliveries set state = 'delivered' where target_id = ${uuid}`
  await sql`
    insert into outbox (project_id, event_id, kind, target_id)
    values (${tenant.projectId}, ${parseId('evt', event.id)!}, 'push', ${uuid})
  `
  const waiting = () =>
    sql`select from outbox where target_id = ${uuid} and project_id = ${tenant.projectId}`
  await until(async () => (await waiting()).count === 0)
  expect((await sql`select from quiet_pushes where target_id = ${uuid}`).count).toBe(0)
})

test('attention §4 a thread whose end is deleted is an alarm again', async () => {
  const { tenant } = await newTeam()
  await setEscalation(tenant, { stages: [{ afterMinutes: 60, to: { role: 'owner' } }] })
  const event = await raise(tenant)
  const end = await raise(tenant, { state: 'resolved' })
  const ended = ['0', '1'].map(n => `${n} cancelled: The thread has ended`)
  expect(await timersOf(event)).toEqual(ended)
  expect((await tenant.account.delete(`${tenant.path}/events/${end.id}`)).status).toBe(200)
  expect(await timersOf(event)).toEqual(expect.arrayContaining(['0 pending', '1 pending']))
  const old = await raise(tenant, { thread: 'old' })
  const oldEnd = await raise(tenant, { thread: 'old', state: 'resolved' })
  await world.server.sql`
    update events set created_at = created_at - interval '121 minutes' where id = ${parseId('evt', old.id)!}
  `
  expect((await tenant.account.delete(`${tenant.path}/events/${oldEnd.id}`)).status).toBe(200)
  expect(await timersOf(old)).toEqual(ended)
})

test('attention §4 with an end, an acknowledgement lets the repetition begin again', async () => {
  const { sql } = world.server
  const { tenant, devices } = await newTeam()
  const event = await raise(tenant)
  await untilTold(event, 2)
  const { body } = await acknowledge(tenant, event, { minutes: 180 })
  expect(Date.parse(body.data.until) - Date.parse(body.data.at)).toBeGreaterThan(179 * 60_000)
  expect(await timersOf(event)).toContain('0 pending')
  // The first one wins.
  expect((await acknowledge(tenant, event)).body.data).toEqual(body.data)
  await sql`update events set created_at = created_at - interval '180 minutes' where id = ${parseId('evt', event.id)!}`
  await sql`update acknowledgements set at = at - interval '180 minutes', until = until - interval '181 minutes' where project_id = ${tenant.projectId}`
  // As if the push of the other device had waited when it was acknowledged.
  await sql`
    update deliveries set state = 'withheld', reason = ${WITHHELD_REASONS.acknowledged}
    where target_id = ${parseId('psh', devices.owner.id)!}
  `
  await pass(event, 181)
  await until(() => count(devices.admin) === 2 && count(devices.owner) === 2)
  expect((await acknowledge(tenant, event)).body.data.until).toBeNull()
})

test('attention §4 an acknowledgement with an end waits for the dispatch that starts the timers', async () => {
  const { sql } = world.server
  const { tenant } = await newTeam()
  const lock = await lockPushDispatch(sql, tenant.projectId)
  const event = await tenant.send({ level: 'critical' })
  const eventId = parseId('evt', event.id)!
  const started = await sql.begin(async tx => {
    // As a dispatch does that has not committed yet.
    await tx`
      insert into outbox (project_id, event_id, kind, target_id, available_at)
      values (${tenant.projectId}, ${eventId}, 'timer', timer_target(${tenant.projectId}, 0), now() + interval '1 minute')
    `
    const answer = acknowledge(tenant, event, { minutes: 60 })
    await until(async () => {
      const waiting =
        await tx`select from pg_locks where locktype = 'transactionid' and not granted`
      return waiting.count > 0
    })
    return { answer }
  })
  expect((await started.answer).status).toBe(200)
  const [timer] = await sql<{ is_later: boolean }[]>`
    select available_at > now() + interval '59 minutes' as is_later from outbox
    where event_id = ${eventId} and kind = 'timer'
  `
  expect(timer!.is_later).toBe(true)
  await lock.release()
})

test('attention §4 no push is enqueued after an acknowledgement has committed', async () => {
  const { sql } = world.server
  const { tenant, owner } = await newTeam()
  const { projectId } = tenant
  await setEscalation(tenant, { stages: [{ afterMinutes: 60, to: { role: 'owner' } }] })
  const [{ organization_id: organizationId }] = await sql<[{ organization_id: string }]>`
    select organization_id from projects where id = ${projectId}
  `
  const call = {
    ...{ projectId, organizationId, actor: SERVER },
    admitted: { account: { id: owner.uuid } },
  } as unknown as CallOn<'project'>
  const event = await raise(tenant, { thread: undefined, state: undefined })
  const eventId = parseId('evt', event.id)!
  const targetId = `${projectId.slice(0, -4)}0001`
  const rounds = Number(process.env['ROUNDS'] ?? 200)
  let told = 0
  for (let round = 0; round < rounds; round++) {
    const [{ id }] = await sql.begin(async tx => {
      await tx`delete from acknowledgements where project_id = ${projectId}`
      await tx`delete from outbox where event_id = ${eventId}`
      await tx`delete from deliveries where event_id = ${eventId}`
      return tx<[{ id: string }]>`
        insert into outbox (project_id, event_id, kind, target_id, available_at)
        values (${projectId}, ${eventId}, 'timer', ${targetId}, now() + interval '1 hour')
        returning id
      `
    })
    const attempt = { id, projectId, eventId, targetId, waitedMs: 0 } as DeliveryAttempt
    const pauses = round % 6
    let pushes = -1
    await Promise.all([
      sql.begin(tx => stepAlarm(tx, attempt)),
      (async () => {
        for (let n = 0; n < pauses; n++) await sql`select`
        await sql.begin(tx => acknowledgeIn(tx, call, { eventId: event.id }))
        pushes = await countPushes()
      })(),
    ])
    const after = await countPushes()
    expect([round, pushes]).toEqual([round, after])
    told += Number(after > 0)
  }
  // Both orders have happened.
  expect([told > 0, told < rounds]).toEqual([true, true])

  async function countPushes(): Promise<number> {
    const [row] = await sql<[{ n: number }]>`
      select count(*)::int as n
      from (
        select from outbox where event_id = ${eventId} and kind = 'push'
        union all
        select from deliveries where event_id = ${eventId} and kind = 'push'
      ) p
    `
    return row.n
  }
})
