import { expect, test } from 'bun:test'
import { createPool } from '../../../src/database/pool.ts'
import { createEgress } from '../../../src/http/egress/egress.ts'
import { toSite } from '../../../src/http/site.ts'
import { parseId } from '../../../src/base/ids.ts'
import { createPushKind } from '../../../src/delivery/push/sender.ts'
import { createPushClient } from '../../../src/delivery/push/encrypt-and-send.ts'
import { makeDeliveriesDue } from '../../support/worlds/ageing.ts'
import { createApi } from '../../support/worlds/signed-in-account.ts'
import type { ScriptedAnswer } from '../../support/servers/push-service.ts'
import { openPushWorld } from '../../support/worlds/push.ts'
import { testSecrets } from '../../support/secret.ts'
import { countSeconds, until } from '../../support/until.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(openPushWorld)

/** Returns a member with a device whose push service gives these answers. */
async function newDevice(...answers: ScriptedAnswer[]) {
  const { tenant, browser } = await world.newPhone()
  world.service.script(browser, ...answers)
  const path = '/api/push/subscriptions'
  return {
    tenant,
    browser,
    devices: async () => (await tenant.account.get(path)).body.data.items,
    test: () => tenant.account.post('/api/push/test', {}),
    /** Appends an event; resolves with the outcome of its push. */
    async send(level = 'normal') {
      const event = await tenant.send({ channelName: crypto.randomUUID(), level })
      await until(async () => Object.keys(await world.outcomes(event)).length > 0)
      return Object.values(await world.outcomes(event))[0]
    },
    forgetTest: () => world.server.sql`
      update push_subscriptions set tested_at = null where id = ${parseId('psh', browser.id) ?? ''}
    `,
  }
}

test('delivery: a required second factor that a device lacks is the reason, and shown on it', async () => {
  const device = await newDevice({ status: 201 })
  const { account } = device.tenant
  await account.patch(`/api/push/subscriptions/${device.browser.id}`, { letsCriticalThrough: true })
  const require = (isRequired: boolean) => world.server.sql`
    update organizations o set requires_second_factor = ${isRequired}
    from projects p
    where p.organization_id = o.id and p.id = ${device.tenant.projectId}
  `
  await require(true)
  expect(await device.send('critical')).toBe(
    'withheld: The organization requires a second factor. Sign in with one on this device',
  )
  expect(await device.devices()).toMatchObject([{ lacksSecondFactor: true }])
  await require(false)
  expect(await device.send()).toBe('delivered')
  expect(await device.devices()).toMatchObject([{ lacksSecondFactor: false }])
})

test('delivery: after a 413 the push is sent once more, with the title alone', async () => {
  const device = await newDevice({ status: 413 }, { status: 201 })
  expect(await device.send()).toBe('delivered')
  const [whole, short] = world.service.of(device.browser)
  expect(whole?.notification).toHaveProperty('body')
  const { body: _, ...others } = whole!.notification
  expect(short?.notification).toEqual(others)
  expect(short?.topic).toBe(whole!.topic)
  const hopeless = await newDevice({ status: 413 })
  expect(await hopeless.send()).toBe(
    'failed: The push service answered 413: the message is too large',
  )
  expect(await hopeless.devices()).toHaveLength(1)
})

test('delivery: 429 and 5xx are retried for a day, not before Retry-After, with the rest of the day as TTL', async () => {
  const retryAfter = { status: 429, headers: { 'Retry-After': '1000' } }
  const device = await newDevice(retryAfter, { status: 500 })
  const { tenant, browser } = device
  const { sql } = world.server
  const passed = countSeconds()
  const event = await tenant.send()
  await world.service.until(browser, 1)
  await world.untilWaiting(tenant.projectId)
  const [row] = await sql<{ in_s: number }[]>`
    select extract(epoch from available_at - now())::float8 as in_s
    from outbox
    where project_id = ${tenant.projectId} and kind = 'push'
  `
  expect(row!.in_s).toBeWithin(1_000 - passed(), 1_001)
  const passHalfADay = async () => {
    await sql`
      update outbox set requested_at = requested_at - interval '12 hours' where project_id = ${tenant.projectId}
    `
    await makeDeliveriesDue(sql, tenant.projectId)
  }
  await passHalfADay()
  const pushes = await world.service.until(browser, 2)
  await world.untilWaiting(tenant.projectId)
  expect(pushes[0]!.ttl).toBe(86_400)
  expect(pushes[1]!.ttl).toBeWithin(43_199 - passed(), 43_201)
  expect(pushes[1]!.topic).toBe(pushes[0]!.topic)
  await passHalfADay()
  await until(async () => Object.keys(await world.outcomes(event)).length > 0)
  expect(await world.outcomes(event)).toEqual({
    [browser.id]: 'failed: The push was not accepted within a day',
  })
  expect(world.service.of(browser)).toHaveLength(2)
})

test('dashboard: a test shows the answer of the push service and its meaning', async () => {
  const device = await newDevice(
    { status: 201 },
    { status: 403, body: '{"reason":"BadJwtToken"}' },
    { status: 410 },
  )
  const { body } = await device.test()
  expect(body.data).toMatchObject({
    subscriptionId: device.browser.id,
    isAccepted: true,
    status: 201,
    isRemoved: false,
  })
  const [push] = world.service.of(device.browser)
  expect(push).toMatchObject({ ttl: 60, notification: { title: '👋 Test from Tidings' } })
  expect(await device.devices()).toMatchObject([{ lastOutcome: 'The push service answered 201' }])

  const soon = await device.test()
  expect([soon.status, soon.headers.get('retry-after')]).toEqual([429, '3'])
  await device.forgetTest()
  expect((await device.test()).body.data).toMatchObject({
    isAccepted: false,
    status: 403,
    body: '{"reason":"BadJwtToken"}',
    isRemoved: false,
  })
  await device.forgetTest()
  expect((await device.test()).body.data).toMatchObject({ status: 410, isRemoved: true })
  const gone = await device.test()
  expect([gone.status, gone.body.code]).toEqual([404, 'not_found'])
})

test('reliability §6 only an accepted push proves a subscription, sent as a test or for an event', async () => {
  const isProven = async ({ browser: { id } }: { browser: { id: string } }) =>
    (
      await world.server.sql`
        select is_proven from push_subscriptions where id = ${parseId('psh', id) ?? ''}
      `
    ).map(row => row['is_proven'])
  const refused = await newDevice({ status: 403 }, { status: 503 }, { status: 201 })
  for (const expected of [false, false, true]) {
    await refused.forgetTest()
    await refused.test()
    expect(await isProven(refused)).toEqual([expected])
  }
  const accepted = await newDevice({ status: 201 })
  expect(await isProven(accepted)).toEqual([false])
  expect(await accepted.send()).toBe('delivered')
  expect(await isProven(accepted)).toEqual([true])
})

test('case 22: a push service that was removed from PUSH_HOSTS is not connected to', async () => {
  const device = await newDevice({ status: 201 })
  await using other = await openPushWorld({ databaseUrl: world.server.databaseUrl, pushHosts: [] })
  const { post } = createApi(other.server.url, device.tenant.account.cookie)
  expect((await post('/api/push/test', {})).body.data).toMatchObject({
    isAccepted: false,
    status: null,
    reason: 'This server does not know the push service. Add its host to PUSH_HOSTS',
  })
  expect(world.service.of(device.browser)).toEqual([])
})

test('delivery: an accepted push is not repeated, even if its answer cannot be recorded', async () => {
  const { sql } = world.server
  const device = await newDevice({ status: 201 })
  await sql.unsafe(`
    create function refuse_answer() returns trigger language plpgsql as $$
    begin raise exception 'A bug'; end $$;
    create trigger refuse_answer before update on push_subscriptions execute function refuse_answer();
  `)
  try {
    expect(await device.send()).toBe('delivered')
  } finally {
    await sql`drop trigger refuse_answer on push_subscriptions`
  }
  expect(world.service.of(device.browser)).toHaveLength(1)
})

test('delivery: an event that is deleted between claim and push is pushed once it is restored', async () => {
  const device = await newDevice({ status: 201 })
  const { tenant, browser } = device
  const event = await tenant.send({ notify: false })
  const pool = createPool(world.server.databaseUrl, { name: 'test worker', max: 2 })
  const egress = createEgress({ allowCidrs: ['127.0.0.0/8'], ca: world.service.ca })
  const parts = {
    pool,
    egress,
    secrets: testSecrets(),
    pushHosts: [world.service.host],
    vapidSubject: 'mailto:ops@example.com',
  }
  const kind = createPushKind({
    ...parts,
    pushClient: createPushClient(parts),
    site: toSite(world.server.url),
  })
  const send = () =>
    kind.send(
      {
        id: crypto.randomUUID(),
        projectId: tenant.projectId,
        eventId: parseId('evt', event.id) ?? '',
        targetId: parseId('psh', browser.id) ?? '',
        attempt: 1,
        isLast: false,
        waitedMs: 0,
        begin: () => true,
      },
      new AbortController().signal,
    )
  await tenant.account.delete(`${tenant.path}/events/${event.id}`)
  expect(await send()).toMatchObject({
    kind: 'postponed',
    reason: 'The event was deleted and can still be restored',
  })
  expect(world.service.of(browser)).toEqual([])
  await tenant.account.post(`${tenant.path}/events/${event.id}/restore`)
  expect(await send()).toEqual({ kind: 'done' })
  expect(world.service.of(browser)).toHaveLength(1)
  egress.close()
  await pool.end()
})
