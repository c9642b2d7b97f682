import { afterEach, expect, test } from 'bun:test'
import { checkPush } from '../../../src/cli/doctor/database.ts'
import { parseId } from '../../../src/base/ids.ts'
import { listRefusingServices } from '../../../src/delivery/push/refusing-services.ts'
import { makeDeliveriesDue } from '../../support/worlds/ageing.ts'
import { captureLog } from '../../support/log.ts'
import type { ScriptedAnswer } from '../../support/servers/push-service.ts'
import { forFile } from '../../support/for-file.ts'
import { openPushWorld } from '../../support/worlds/push.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'

const ALL = '/api/push/subscriptions'
const REFUSED = 'The push service answered 403: it refused the key or the message'
const VAPID_SUBJECT = 'mailto:ops@example.com'
const SETTINGS = {
  label: 'Night shift',
  isOn: false,
  quietHours: [{ days: [5, 6], from: '22:00', to: '07:00', timeZone: 'Europe/Berlin' }],
  hasQuietSummary: true,
}

// An answer of the push service to one device concerns the others, and is logged once an hour.
const world = forFile(openPushWorld)
afterEach(async () => void (await world.server.sql`delete from push_subscriptions`))

/** Returns a device of a new member, whose push service gives these answers. */
async function newDevice(tenant: TestTenant, ...answers: ScriptedAnswer[]) {
  const { server, service, subscribe } = world
  const account = await newMember(server, tenant.organization, 'member')
  // Every sign-in makes its browser a known one.
  await server.sql`
    with known as (
      insert into known_devices (hash, account_id)
      values (sha256(${account.sessionId}::bytea), ${account.uuid})
      returning id
    )
    update sessions set browser_id = known.id from known where sessions.id = ${account.sessionId}
  `
  const browser = await subscribe(account)
  if (answers.length > 0) service.script(browser, ...answers)
  const uuid = parseId('psh', browser.id) ?? ''
  return {
    account,
    browser,
    /** Returns the device as the API shows it. */
    get: async () => (await account.get(ALL)).body.data.items[0],
    /** Sends a test; resolves with the status of the push service. */
    async test(): Promise<number> {
      await server.sql`update push_subscriptions set tested_at = null where id = ${uuid}`
      return (await account.post('/api/push/test', {})).body.data.status
    },
  }
}

/** Makes everything that push services said older by two minutes. */
function ageAnswers() {
  return world.server.sql`
    update push_subscriptions set
      accepted_at = accepted_at - interval '2 minutes', refused_at = refused_at - interval '2 minutes'
  `
}

test('a push service that refuses every device is named in the log and by doctor, with the cause', async () => {
  using log = captureLog()
  const { service, server } = world
  const tenant = await newTenant(server)
  const doctor = async () => (await checkPush(server.sql, { vapidSubject: VAPID_SUBJECT })).at(-1)
  const devices = [await newDevice(tenant), await newDevice(tenant)]
  await world.untilOutcomes(await tenant.send(), 2)
  expect(await doctor()).toMatchObject({ check: 'push services', state: 'ok' })

  // A minute after the last acceptance, both are refused.
  await ageAnswers()
  const slow = {
    status: 403,
    headers: { Date: new Date(Date.now() + 13 * 3_600_000).toUTCString() },
  }
  for (const { browser } of devices) service.script(browser, slow)
  await tenant.send()
  await until(() => log.lines.some(line => line.includes(service.host)))
  await world.untilWaiting(tenant.projectId)
  const finding = await doctor()
  expect(finding).toMatchObject({ check: 'push services', state: 'failed' })
  expect(finding?.message).toMatch(
    /^127\.0\.0\.1:\d+ accepts no push of this server, and has refused 2 devices since 20\S+Z\. The push service answered 403: it refused the key or the message\. The likely cause is the clock of the database, which is 13\.0 h slow\. Synchronize it with NTP\.$/,
  )
  expect(log.lines.filter(line => line.includes('accepts no push'))).toHaveLength(1)

  // Without a difference of the clocks, the contact and the key remain.
  for (const { browser } of devices) service.script(browser, { status: 403 })
  for (const device of devices) await device.test()
  expect((await doctor())?.message).toContain(
    `The likely cause is the contact, which is ${VAPID_SUBJECT}`,
  )

  for (const { browser } of devices) service.script(browser, { status: 201 })
  await makeDeliveriesDue(server.sql, tenant.projectId)
  await until(async () => (await doctor())?.state === 'ok')
})

test('a push service refuses this server unless another device was accepted beside the refused one', async () => {
  const tenant = await newTenant(world.server)
  const list = async () =>
    (await listRefusingServices(world.server.sql)).map(({ deviceCount }) => deviceCount)
  const [one, other] = [await newDevice(tenant), await newDevice(tenant)]
  const say = (device: typeof one, status: number) => {
    world.service.script(device.browser, { status })
    return device.test()
  }
  // The first push of all is refused, as with a wrong contact.
  await say(one, 403)
  expect(await list()).toEqual([1])
  await say(one, 201)
  expect(await list()).toEqual([])

  // One of two is refused, and the other one was accepted last.
  await ageAnswers()
  await say(other, 201)
  await ageAnswers()
  await say(one, 403)
  expect(await list()).toEqual([])
  await say(other, 403)
  expect(await list()).toEqual([2])
  // An acceptance ends it, and makes the next refusal one of the device.
  await say(other, 201)
  expect(await list()).toEqual([])
  await ageAnswers()
  await say(one, 403)
  expect([await list(), (await one.get()).refusals]).toEqual([[], 1])

  await ageAnswers()
  await say(other, 403)
  expect(await list()).toEqual([1])
  // A time in the future is older than the clock, which was set back.
  const setFuture = (column: string) =>
    world.server.sql.unsafe(`update push_subscriptions set ${column} = now() + interval '1 day'`)
  await setFuture('accepted_at')
  expect(await list()).toEqual([1])
  await setFuture('refused_at')
  expect(await list()).toEqual([])
})

test('delivery: a refused push honours Retry-After, and is signed anew', async () => {
  const tenant = await newTenant(world.server)
  const retryAfter = { 'Retry-After': '1000' }
  const device = await newDevice(tenant, { status: 401, headers: retryAfter }, { status: 201 })
  const event = await tenant.send()
  await world.service.until(device.browser, 1)
  await world.untilWaiting(tenant.projectId)
  const [row] = await world.server.sql<{ in_s: number }[]>`
    select extract(epoch from available_at - now())::float8 as in_s
    from outbox
    where project_id = ${tenant.projectId}
  `
  expect(row!.in_s).toBeWithin(900, 1001)
  await makeDeliveriesDue(world.server.sql, tenant.projectId)
  expect(await world.untilOutcomes(event)).toEqual({ [device.browser.id]: 'delivered' })
  const [before, after] = world.service.of(device.browser)
  expect(after!.authorization).not.toBe(before!.authorization)
})

test('delivery: 400 ends the delivery, and the device stays', async () => {
  const tenant = await newTenant(world.server)
  const device = await newDevice(tenant, { status: 400 })
  for (let n = 0; n < 2; n++) {
    const event = await tenant.send({ channelName: crypto.randomUUID() })
    expect(await world.untilOutcomes(event)).toEqual({
      [device.browser.id]:
        'failed: The push service answered 400: it refused the key or the message',
    })
  }
  expect(await device.get()).toMatchObject({ refusals: 0, flagged: null })
})

test('delivery: a failure that all devices share removes and flags none, and loses no event', async () => {
  const { server } = world
  const tenant = await newTenant(server)
  const devices = [
    await newDevice(tenant, { status: 403 }),
    await newDevice(tenant, { status: 403 }),
  ]
  const events = []
  for (let n = 0; n < 2; n++) {
    events.push(await tenant.send({ channelName: crypto.randomUUID() }))
    for (const { browser } of devices) await world.service.until(browser, n + 1)
  }
  await world.untilWaiting(tenant.projectId)
  for (const device of devices) {
    expect(await device.get()).toMatchObject({ refusals: 0, flagged: null, lastOutcome: REFUSED })
  }
  for (const { browser } of devices) world.service.script(browser, { status: 201 })
  await makeDeliveriesDue(server.sql, tenant.projectId)
  for (const event of events) {
    const outcomes = await world.untilOutcomes(event, devices.length)
    expect(new Set(Object.values(outcomes))).toEqual(new Set(['delivered']))
  }
})

test('delivery: a device that is refused alone is flagged, and stays with its settings', async () => {
  const tenant = await newTenant(world.server)
  const bad = await newDevice(tenant, { status: 403 })
  const good = await newDevice(tenant)
  await bad.account.patch(`${ALL}/${bad.browser.id}`, { ...SETTINGS, isOn: true, quietHours: null })
  expect(await bad.test()).toBe(403)
  // Devices of other push services say nothing about a refusal.
  expect(await good.test()).toBe(201)
  await world.server.sql`
    update push_subscriptions set host = 'other.example.com' where account_id = ${good.account.uuid}
  `
  expect(await bad.test()).toBe(403)
  expect(await bad.get()).toMatchObject({ refusals: 0, flagged: null })
  await world.server.sql`update push_subscriptions set host = ${world.service.host}`
  await world.server.sql`update push_subscriptions set accepted_at = null`
  // The one before may have been caused by something that all share, and so may one right after it.
  expect(await bad.test()).toBe(403)
  expect(await bad.get()).toMatchObject({ refusals: 0, flagged: null })
  for (let n = 1; n <= 5; n++) {
    expect(await good.test()).toBe(201)
    expect(await bad.test()).toBe(403)
    expect(await bad.get()).toMatchObject({ refusals: n, flagged: REFUSED })
    expect(await bad.test()).toBe(403)
    expect(await bad.get()).toMatchObject({ refusals: n, flagged: REFUSED })
  }
  // It is tried once for each event, without retries.
  const event = await tenant.send()
  expect(await world.untilOutcomes(event, 2)).toEqual({
    [bad.browser.id]: `failed: ${REFUSED}`,
    [good.browser.id]: 'delivered',
  })
  world.service.script(bad.browser, { status: 201 })
  expect(await bad.test()).toBe(201)
  expect(await bad.get()).toMatchObject({ label: 'Night shift', refusals: 0, flagged: null })
})

test('delivery: after a 410 the next subscription of the same browser has the settings of the old one', async () => {
  const tenant = await newTenant(world.server)
  const device = await newDevice(tenant, { status: 410 })
  await device.account.patch(`${ALL}/${device.browser.id}`, SETTINGS)
  expect(await device.test()).toBe(410)
  expect(await device.get()).toBeUndefined()
  const renewed = await world.subscribe(device.account)
  expect(await device.get()).toMatchObject({ ...SETTINGS, id: renewed.id })
  // A device that its member removes leaves nothing behind.
  await device.account.delete(`${ALL}/${renewed.id}`)
  await world.subscribe(device.account)
  expect(await device.get()).toMatchObject({ label: 'A browser', isOn: true, quietHours: null })
})
