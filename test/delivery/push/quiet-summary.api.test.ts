import { expect, test } from 'bun:test'
import { NIL_UUID, newId, parseId } from '../../../src/base/ids.ts'
import { PUSH_SCHEDULE_MS } from '../../../src/delivery/outbox/schedule.ts'
import { WITHHELD_REASONS } from '../../../src/delivery/push/dispatch.ts'
import { openPushWorld, toDailyHours } from '../../support/worlds/push.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'
import { forProcess } from '../../support/for-file.ts'
import { newSession } from '../../support/worlds/signed-in-account.ts'

const world = forProcess(openPushWorld)

const HOUR = 60
const NOW = () => toDailyHours(-2 * HOUR, 2 * HOUR)

interface Summary {
  id: string
  available_at: Date
  is_due: boolean
  token: string | null
}

/** Subscribes a device that is quiet now and wants the summary. */
async function newQuietDevice(tenant: TestTenant, settings: object = {}) {
  const { sql } = world.server
  const browser = await world.subscribe(tenant.account)
  const edit = (json: object) => tenant.account.patch(`/api/push/subscriptions/${browser.id}`, json)
  expect((await edit({ quietHours: NOW(), hasQuietSummary: true, ...settings })).status).toBe(200)
  const uuid = parseId('psh', browser.id) ?? ''
  return {
    browser,
    edit,
    /** Resolves when all events are withheld from the device. */
    untilWithheld: (count: number) =>
      until(async () => {
        await world.untilDispatched(tenant.projectId)
        const rows = await sql`
          select from delivery_records where target_id = ${uuid} and project_id = ${tenant.projectId} and state = 'withheld'
            and not exists (select from outbox where target_id = ${uuid} and project_id = ${tenant.projectId})
        `
        return rows.count === count
      }),
    list: () => sql<Summary[]>`
      select id, available_at, available_at <= now() as is_due, token from outbox where target_id = ${uuid} and project_id = ${NIL_UUID}
    `,
    /** Returns the number of pushes that are kept for the summary. */
    kept: async () => (await sql`select from quiet_pushes where target_id = ${uuid}`).count,
    /** Keeps all pushes of the project for the summary. */
    keepAll: () => sql`
      insert into quiet_pushes (project_id, event_id, target_id, is_summary)
      select project_id, event_id, target_id, false from delivery_records
      where target_id = ${uuid} and project_id = ${tenant.projectId}
      on conflict do nothing
    `,
    /** Makes the summary due, as if its first push was withheld at a time. */
    makeDue: (sinceMs = Date.now(), attempts = 0) => sql`
      update outbox set available_at = now(), requested_at = now() - interval '2 days', attempts = ${attempts}, id = ${toUuid(sinceMs)} where target_id = ${uuid} and project_id = ${NIL_UUID}
    `,
    /** Resolves with the outcome of the summary. */
    async outcome(): Promise<string> {
      const read = () => sql<{ outcome: string }[]>`
        delete from deliveries where target_id = ${uuid} and project_id = ${NIL_UUID}
        returning concat_ws(': ', state, reason) as outcome
      `
      let found = ''
      await until(async () => (found = (await read())[0]?.outcome ?? '') !== '')
      return found
    },
    bodies: () => world.service.of(browser).map(({ notification }) => notification.body),
  }
}

/** A uuid of version 7 with a time. */
function toUuid(ms: number): string {
  const digits = ms.toString(16).padStart(12, '0')
  return `${digits.slice(0, 8)}-${digits.slice(8)}${newId('dlv').uuid.slice(13)}`
}

test('attention §3 one push after quiet hours counts the withheld events by channel', async () => {
  const tenant = await newTenant(world.server)
  const device = await newQuietDevice(tenant)
  const startedMs = Date.now()
  // Of a burst, 10 pushes and its summary are withheld one by one. The others are not counted.
  for (let n = 0; n < 14; n++) await tenant.send({ channelName: 'payments' })
  const [deleted, , muted] = [
    await tenant.send(),
    await tenant.send(),
    await tenant.send({ channelName: 'muted' }),
  ]
  await device.untilWithheld(17)
  const [summary, ...others] = await device.list()
  expect(others).toHaveLength(0)
  const dueInMs = summary!.available_at.getTime() - startedMs
  expect(Math.abs(dueInMs - 2 * HOUR * 60_000)).toBeLessThan(2 * 60_000)
  await tenant.account.delete(`${tenant.path}/events/${deleted.id}`)
  await tenant.account.put(`${tenant.path}/channels/${muted.channelId}/notifications`, {
    state: 'mute',
  })

  // It waits while the hours last.
  await device.makeDue()
  await until(async () => {
    const [row] = await device.list()
    return row !== undefined && !row.is_due && row.token === null
  })
  expect(device.bodies()).toEqual([])
  await device.edit({ quietHours: [] })
  await device.makeDue(startedMs)
  expect(await device.outcome()).toBe('delivered')
  expect(device.bodies()).toEqual(['11+ in payments, 1 in ops while you were away'])
  expect(world.service.of(device.browser)[0]).toMatchObject({
    urgency: 'normal',
    notification: { title: 'Quiet hours are over', navigate: `${world.server.server.url}/` },
  })
  expect([await device.list(), await device.kept()]).toMatchObject([[], 0])

  // The next one begins anew. Given up, it is no dead letter, which would need an event.
  await device.edit({ quietHours: NOW() })
  await tenant.send()
  await device.untilWithheld(18)
  await device.edit({ quietHours: [] })
  world.service.script(device.browser, { status: 500 })
  await device.makeDue(startedMs, PUSH_SCHEDULE_MS.length - 1)
  expect(await device.outcome()).toBe('dead: The push service answered 500')
  expect(await device.kept()).toBe(0)
  expect(world.service.problems).toEqual([])
})

test('attention §3 hundreds of withheld events have one summary, which counts 500 of them', async () => {
  const tenant = await newTenant(world.server)
  const device = await newQuietDevice(tenant)
  const startedMs = Date.now()
  for (let n = 0; n < 11; n++)
    await Promise.all(Array.from({ length: 50 }, () => tenant.send({ level: 'high' })))
  await device.untilWithheld(550)
  expect(await device.list()).toHaveLength(1)
  // Pushes that are withheld at the same time can each be the last that is kept.
  await device.keepAll()
  await device.edit({ quietHours: [] })
  await device.makeDue(startedMs)
  expect(await device.outcome()).toBe('delivered')
  expect(device.bodies()).toEqual(['500+ in ops while you were away'])
})

test('attention §3 nothing is told without access, after 12 hours, or to a device that does not want it', async () => {
  const { sql } = world.server
  const tenant = await newTenant(world.server)
  const device = await newQuietDevice(tenant)
  const nowMs = Date.now()
  const cases: [object, number, string][] = [
    [{ isOn: false }, 0, `withheld: ${WITHHELD_REASONS.off}`],
    [{ hasQuietSummary: false }, 0, 'withheld: The member does not want it'],
    [
      { quietHours: toDailyHours(-15 * HOUR, -13 * HOUR) },
      14 * HOUR,
      'withheld: It is more than 12 hours late',
    ],
    [{ quietHours: toDailyHours(-15 * HOUR, -11 * HOUR) }, 14 * HOUR, 'delivered'],
  ]
  for (const [nth, [edit, ageMinutes, outcome]] of cases.entries()) {
    await device.edit({ quietHours: NOW(), isOn: true, hasQuietSummary: true })
    await tenant.send()
    await device.untilWithheld(nth + 1)
    await device.edit({ quietHours: [], ...edit })
    await device.makeDue(nowMs - ageMinutes * 60_000 - 60_000)
    expect(await device.outcome()).toBe(outcome)
    expect(await device.kept()).toBe(0)
  }
  expect(device.bodies()).toEqual(['1 in ops while you were away'])

  await device.edit({ quietHours: NOW() })
  await tenant.send()
  await device.untilWithheld(5)
  await sql`delete from memberships where account_id = ${tenant.account.uuid}`
  await device.edit({ quietHours: [] })
  await device.makeDue(nowMs - 60_000)
  expect(await device.outcome()).toBe('withheld: Nothing that was withheld is left')
})

test('attention §3 without the setting there is no summary, else one, and none for a removed device', async () => {
  const tenant = await newTenant(world.server)
  const device = await newQuietDevice(tenant, { hasQuietSummary: false })
  await tenant.send()
  await device.untilWithheld(1)
  expect(await device.list()).toHaveLength(0)
  await device.edit({ hasQuietSummary: true })
  const { id } = await tenant.send()
  await device.untilWithheld(2)
  expect(await device.list()).toHaveLength(1)
  // As if the server had been killed before it recorded the push.
  await world.server.sql`
    with unrecorded as (
      delete from deliveries where project_id = ${tenant.projectId} and event_id = ${parseId('evt', id)!}
      returning project_id, event_id, kind, target_id
    )
    insert into outbox (project_id, event_id, kind, target_id) select * from unrecorded
  `
  await device.untilWithheld(2)
  expect(await device.list()).toHaveLength(1)
  await tenant.account.delete(`/api/push/subscriptions/${device.browser.id}`)
  expect(await device.kept()).toBe(0)
  await device.makeDue()
  expect(await device.outcome()).toBe('cancelled: The device was signed out or removed')
  expect(device.bodies()).toEqual([])
})

test('attention §3 hours that end early, of two devices of an account, have their summaries then', async () => {
  const tenant = await newTenant(world.server)
  const setHours = (quietHours: object[]) =>
    tenant.account.put('/api/push/quiet-hours', { quietHours })
  await setHours(NOW())
  const devices = [
    await newQuietDevice(tenant, { quietHours: null }),
    await newQuietDevice(
      { ...tenant, account: await newSession(world.server, tenant.account) },
      { quietHours: null },
    ),
  ]
  await tenant.send()
  for (const device of devices) await device.untilWithheld(1)
  await setHours([])
  for (const device of devices) {
    expect(await device.outcome()).toBe('delivered')
    expect(device.bodies()).toEqual(['1 in ops while you were away'])
  }
})
