import { expect, test } from 'bun:test'
import { toLock } from '../../../src/database/locks.ts'
import { WITHHELD_REASONS } from '../../../src/delivery/push/dispatch.ts'
import { hold, lockPushDispatch } from '../../support/database-lock.ts'
import { makeDeliveriesDue } from '../../support/worlds/ageing.ts'
import {
  newMember,
  newSession,
  newSignedInAccount,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { openPushWorld, toDailyHours } from '../../support/worlds/push.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(openPushWorld)

const withheld = (reason: keyof typeof WITHHELD_REASONS) => `withheld: ${WITHHELD_REASONS[reason]}`

/** Subscribes a device, by default of a new member. It lets critical events through or does not. */
async function newDevice(
  tenant: TestTenant,
  letsCriticalThrough?: boolean,
  session?: SignedInAccount,
) {
  const account = session ?? (await newMember(world.server, tenant.organization, 'member'))
  const browser = await world.subscribe(account)
  const edit = (json: object) => account.patch(`/api/push/subscriptions/${browser.id}`, json)
  if (letsCriticalThrough !== undefined) await edit({ letsCriticalThrough })
  return { account, browser, edit }
}

test('delivery: an event is pushed encrypted to every device of every member, and opens that event', async () => {
  const tenant = await newTenant(world.server, 'viewer')
  const other = await newMember(world.server, tenant.organization, 'owner')
  const stranger = await newSignedInAccount(world.server)
  const browsers = [await world.subscribe(tenant.account), await world.subscribe(other)]
  const outside = await world.subscribe(stranger)
  const event = await tenant.send({
    channelName: 'payments',
    title: 'New payment',
    icon: '💰',
    description: 'Ada paid 12 €',
    ...{ level: 'high', url: 'https://shop.example.com/?order=1' },
  })
  const navigate = `${world.server.server.url}/e/${event.id}`
  for (const browser of browsers) {
    const [push] = await world.service.until(browser, 1)
    expect(push).toMatchObject({
      ttl: 86_400,
      urgency: 'high',
      records: 1,
      notification: {
        title: '💰 New payment',
        body: 'Ada paid 12 €\npayments · Test project',
        navigate: 'https://shop.example.com/?order=1',
        actions: [{ action: 'event', title: 'Show event', navigate }],
        tag: push?.topic,
      },
    })
    expect(push?.claims.sub).toBe('mailto:ops@example.com')
  }
  const outcomes = await world.untilOutcomes(event, 2)
  expect(outcomes).toEqual(Object.fromEntries(browsers.map(({ id }) => [id, 'delivered'])))
  expect(world.service.of(outside)).toEqual([])
  expect(world.service.problems).toEqual([])
})

/** Resolves when an event without devices is dispatched, with the reason on its page. */
async function readSilence(tenant: TestTenant, event: { id: string }) {
  await world.untilDispatched(tenant.projectId)
  const reader = await newMember(world.server, tenant.organization, 'viewer')
  const page = await reader.get(`${tenant.path}/events/${event.id}/deliveries`)
  expect(await world.outcomes(event)).toEqual({})
  return page.body.data.items
}

test('delivery: without devices no push is written, and the event page says why', async () => {
  const tenant = await newTenant(world.server)
  const told = await tenant.send()
  expect(await readSilence(tenant, told)).toMatchObject([
    {
      kind: 'push',
      target: null,
      state: 'withheld',
      reason: WITHHELD_REASONS.noDevice,
      at: told.createdAt,
    },
  ])
  const quiet = await tenant.send({ notify: false })
  expect(await readSilence(tenant, quiet)).toMatchObject([{ reason: WITHHELD_REASONS.notifyFalse }])
  await world.server.sql`
    update events set created_at = created_at - interval '30 days' where project_id = ${tenant.projectId}
  `
  expect(await readSilence(tenant, told)).toEqual([])
})

test('delivery: an event that is pushed to nobody records the reason', async () => {
  const { tenant, browser } = await world.newPhone()

  const cases: [Record<string, unknown>, string][] = [
    [{ notify: false }, WITHHELD_REASONS.notifyFalse],
    [{ timestamp: new Date(Date.now() - 11 * 60_000).toISOString() }, WITHHELD_REASONS.old],
  ]
  for (const [event, reason] of cases) {
    expect(await world.untilOutcomes(await tenant.send(event))).toEqual({
      nobody: `withheld: ${reason}`,
    })
  }
  const fresh = await tenant.send({ timestamp: new Date(Date.now() - 9 * 60_000).toISOString() })
  expect(await world.untilOutcomes(fresh)).toEqual({ [browser.id]: 'delivered' })

  const { channelId } = await tenant.send({ channelName: 'old things', notify: false })
  await tenant.account.patch(`${tenant.path}/channels/${channelId}`, { isArchived: true })
  const archived = await tenant.send({ channelName: 'old things' })
  expect(await world.untilOutcomes(archived)).toEqual({
    nobody: `withheld: ${WITHHELD_REASONS.archived}`,
  })
  expect(world.service.of(browser)).toHaveLength(1)
})

test('case 19: a former member gets no push from the next event on', async () => {
  const tenant = await newTenant(world.server, 'owner')
  const member = await newMember(world.server, tenant.organization, 'member')
  const [own, theirs] = [await world.subscribe(tenant.account), await world.subscribe(member)]
  const before = await tenant.send()
  await world.untilOutcomes(before, 2)
  const path = `/api/organizations/${tenant.organization.id}/members/${member.id}`
  expect((await tenant.account.delete(path)).status).toBe(200)
  const after = await tenant.send()
  expect(await world.untilOutcomes(after)).toEqual({ [own.id]: 'delivered' })
  expect(world.service.of(theirs)).toHaveLength(1)
  // The page of the event no longer names the former member.
  const page = await tenant.account.get(`${tenant.path}/events/${before.id}/deliveries`)
  const names = page.body.data.items.map(({ target }: any) => [target.id, target.name])
  expect(new Map(names)).toEqual(
    new Map([
      [own.id, 'Test person: A browser'],
      [theirs.id, null],
    ]),
  )
  expect(page.text).not.toContain(own.path)
})

const letThrough = { letsCriticalThrough: true }

test.each([
  [
    'who has muted the project',
    'withheld: The member has muted the channel',
    ({ path }: TestTenant, member: SignedInAccount) =>
      member.put(`${path}/notifications`, { state: 'mute' }),
    {},
  ],
  [
    'who was removed',
    'cancelled: The account is no longer a member',
    ({ account, organization }: TestTenant, { id }: SignedInAccount) =>
      account.delete(`/api/organizations/${organization.id}/members/${id}`),
    letThrough,
  ],
  [
    'whose device is off',
    `withheld: ${WITHHELD_REASONS.off}`,
    (_tenant: TestTenant, member: SignedInAccount, device: string) =>
      member.patch(device, { isOn: false }),
    letThrough,
  ],
  [
    'because the channel is archived',
    `withheld: ${WITHHELD_REASONS.archived}`,
    ({ account, path }: TestTenant, _member: SignedInAccount, _device: string, channel: string) =>
      account.patch(`${path}/channels/${channel}`, { isArchived: true }),
    letThrough,
  ],
] as const)(
  'case 19: a critical push that waits for its next attempt is not sent to a member %s',
  async (_, outcome, change, settings) => {
    const tenant = await newTenant(world.server, 'owner')
    const member = await newMember(world.server, tenant.organization, 'member')
    const browser = await world.subscribe(member)
    const device = `/api/push/subscriptions/${browser.id}`
    expect((await member.patch(device, settings)).status).toBe(200)
    world.service.script(browser, { status: 503 }, { status: 201 })
    const event = await tenant.send({ level: 'critical' })
    await world.service.until(browser, 1)
    await world.untilWaiting(tenant.projectId)
    expect((await change(tenant, member, device, event.channelId)).status).toBe(200)
    await makeDeliveriesDue(world.server.sql, tenant.projectId)
    expect(await world.untilOutcomes(event)).toEqual({ [browser.id]: outcome })
    expect(world.service.of(browser)).toHaveLength(1)
  },
)

test('case 19: a session that ends by signing out or by its age gets no push, before any sweep', async () => {
  const [tenant, old] = [await newTenant(world.server), await newTenant(world.server)]
  const browsers = [await world.subscribe(tenant.account), await world.subscribe(old.account)]
  expect((await tenant.account.delete('/api/session')).status).toBe(200)
  const rows = await world.server.sql`
    select id from push_subscriptions where account_id = ${tenant.account.uuid}
  `
  expect(rows.count).toBe(0)
  await world.server.sql`
    update sessions set last_seen_at = now() - interval '8 days' where id = ${old.account.sessionId}
  `
  for (const one of [tenant, old]) {
    const silence = await readSilence(one, await one.send())
    expect(silence).toMatchObject([{ reason: WITHHELD_REASONS.noDevice }])
  }
  expect(browsers.flatMap(world.service.of)).toEqual([])
})

test('a device gets only events after its subscription', async () => {
  const tenant = await newTenant(world.server)
  const own = await world.subscribe(tenant.account)
  expect(await world.untilOutcomes(await tenant.send())).toEqual({ [own.id]: 'delivered' })
  // Dispatched only after the subscription, as by a busy server.
  const lock = await lockPushDispatch(world.server.sql, tenant.projectId)
  const before = await tenant.send()
  await world.server.sql`
    update push_subscriptions set created_at = clock_timestamp() + interval '10 milliseconds'
    where account_id = ${tenant.account.uuid}
  `
  await lock.release()
  expect(await world.untilOutcomes(before)).toEqual({
    nobody: `withheld: ${WITHHELD_REASONS.noDevice}`,
  })
  const other = await newMember(world.server, tenant.organization, 'viewer')
  const theirs = await world.subscribe(other)
  expect(await world.untilOutcomes(await tenant.send(), 2)).toEqual({
    [own.id]: 'delivered',
    [theirs.id]: 'delivered',
  })
  expect(world.service.of(own)).toHaveLength(2)
})

test('attention §1 low events are never pushed, and the page of the event says so', async () => {
  const tenant = await newTenant(world.server)
  const readReasons = async (event: { id: string }) => {
    await world.untilDispatched(tenant.projectId)
    const page = await tenant.account.get(`${tenant.path}/events/${event.id}/deliveries`)
    return page.body.data.items.map(({ reason }: { reason: string }) => reason)
  }
  expect(await readReasons(await tenant.send({ level: 'low' }))).toEqual([WITHHELD_REASONS.low])
  const { browser } = await newDevice(tenant, true)
  const low = await tenant.send({ level: 'low' })
  expect(await readReasons(low)).toEqual([WITHHELD_REASONS.low])
  expect(await world.outcomes(low)).toEqual({ nobody: withheld('low') })
  expect(await world.untilOutcomes(await tenant.send())).toEqual({ [browser.id]: 'delivered' })
  expect(world.service.of(browser)).toHaveLength(1)
})

test('a server of 0.3.0, which has no sentence for low events, records them with the level', async () => {
  const tenant = await newTenant(world.server)
  await world.subscribe(tenant.account)
  const { sql } = world.server
  await using _ = await lockPushDispatch(sql, tenant.projectId)
  const low = await tenant.send({ level: 'low' })
  const { low: _low, ...sentences } = WITHHELD_REASONS
  await sql`
    select dispatch_pushes(
      project_ids => array[${tenant.projectId}]::uuid[],
      from_seqs => array[${low.seq - 1}]::bigint[],
      to_seqs => array[${low.seq}]::bigint[],
      sentences => ${JSON.stringify(sentences)}::text::jsonb
    )
  `
  expect(await world.outcomes(low)).toEqual({ nobody: 'withheld: low' })
})

test('attention §1 high and critical events are pushed at once beside a burst, which does not count them', async () => {
  const { tenant, browser } = await world.newPhone()
  // They share a dispatch with the events of the burst.
  const lock = await lockPushDispatch(world.server.sql, tenant.projectId)
  const urgent = []
  for (let n = 0; n < 13; n++) {
    await tenant.send({ title: `Normal ${n}` })
    urgent.push(await tenant.send({ title: `Urgent ${n}`, level: n % 2 ? 'high' : 'critical' }))
  }
  await lock.release()
  for (const event of urgent) {
    expect(await world.untilOutcomes(event)).toEqual({ [browser.id]: 'delivered' })
  }
  await makeDeliveriesDue(world.server.sql, tenant.projectId)
  const isSummary = (title: string) => / more in /.test(title)
  await until(() => world.service.of(browser).some(push => isSummary(push.notification.title)))
  const pushes = world.service.of(browser)
  const countOf = (urgency: string, start: string) =>
    pushes.filter(one => one.urgency === urgency && one.notification.title.startsWith(start)).length
  expect([countOf('high', 'Urgent'), countOf('normal', 'Normal')]).toEqual([13, 10])
  expect(countOf('normal', '3 more in')).toBe(1)
  expect(pushes).toHaveLength(24)
  const [row] = await world.server.sql`
    select cardinality(recent) as recent, collapsed from push_bursts where project_id = ${tenant.projectId}
  `
  expect(row).toEqual({ recent: 10, collapsed: 3 })
  expect(world.service.problems).toEqual([])
})

test('attention §1 critical events pass mutes and quiet hours on the devices that let them through', async () => {
  const tenant = await newTenant(world.server)
  const quietHours = toDailyHours(-120, 120)
  const devices = await Promise.all([
    newDevice(tenant),
    newDevice(tenant, false),
    newDevice(tenant, true),
  ])
  const send = async (level: string) =>
    Object.fromEntries(
      Object.entries(await world.untilOutcomes(await tenant.send({ level }), 3)).map(
        ([id, outcome]) => [devices.findIndex(({ browser }) => browser.id === id), outcome],
      ),
    )
  const none = { 0: 'delivered', 1: 'delivered', 2: 'delivered' }
  const allBut = (reason: keyof typeof WITHHELD_REASONS) => ({
    0: withheld(reason),
    1: withheld(reason),
    2: 'delivered',
  })
  const all = (reason: keyof typeof WITHHELD_REASONS) => ({
    ...allBut(reason),
    2: withheld(reason),
  })
  expect(await send('critical')).toEqual(none)

  for (const { edit } of devices) await edit({ quietHours })
  expect(await send('high')).toEqual(all('quiet'))
  expect(await send('critical')).toEqual(allBut('quiet'))

  const mute = (state: string) =>
    Promise.all(
      devices.map(({ account }) => account.put(`${tenant.path}/notifications`, { state })),
    )
  await mute('mute')
  expect(await send('high')).toEqual(all('muted'))
  expect(await send('critical')).toEqual(allBut('muted'))
  await mute('on')
  for (const { edit } of devices) await edit({ quietHours: null })

  const { items } = (await tenant.account.get(`${tenant.path}/channels`)).body.data
  const muteChannel = (state: string) =>
    Promise.all(
      devices.map(({ account }) =>
        account.put(`${tenant.path}/channels/${items[0].id}/notifications`, { state }),
      ),
    )
  await muteChannel('mute')
  expect(await send('high')).toEqual(all('muted'))
  await muteChannel('default')

  // On the device alone: a mute that has ended, one of the channel, and one of the project.
  const until = (ms: number) => new Date(Date.now() + ms).toISOString()
  const muteHere = (id: string, end: string | null) =>
    Promise.all(devices.map(({ edit }) => edit({ mutes: [{ id, until: end }] })))
  await muteHere(items[0].id, until(-1_000))
  expect(await send('high')).toEqual(none)
  await muteHere(items[0].id, until(3_600_000))
  expect(await send('high')).toEqual(all('mutedHere'))
  await muteHere(tenant.organization.project.id, null)
  expect(await send('critical')).toEqual(allBut('mutedHere'))

  // A device that is off gets nothing.
  for (const { edit } of devices) await edit({ isOn: false })
  expect(await send('critical')).toEqual(all('off'))
  expect((await devices[0].edit({ isOn: true, quietHours: null })).status).toBe(200)
  expect((await devices[0].edit({ letsCriticalThrough: null })).status).toBe(400)
})

test('attention §1 a bell notifies of a critical event where it passes no mute, and nobody twice', async () => {
  const { sql } = world.server
  const tenant = await newTenant(world.server)
  const [other, phone] = [await newDevice(tenant), await newDevice(tenant, true)]
  const desk = await newDevice(tenant, false, await newSession(world.server, phone.account))
  const search = { name: 'Pages', q: 'level>=high', isShared: true }
  const { id } = (await tenant.account.post(`${tenant.path}/views`, search)).body.data
  for (const { account } of [other, phone]) {
    await account.put(`${tenant.path}/notifications`, { state: 'mute' })
    expect((await account.put(`${tenant.path}/views/${id}/bell`, { isOn: true })).status).toBe(200)
  }
  // The bell comes when the phone already has its push, and nothing of it is in the outbox.
  const bells = await hold(
    sql,
    tx => tx`select pg_advisory_xact_lock(${toLock(tx, 'bells', tenant.organization.uuid)})`,
  )
  const levels = ['critical', ...Array.from({ length: 11 }, () => 'high')]
  const sent = await Promise.all(levels.map(level => tenant.send({ level })))
  await until(async () => (await world.outcomes(sent[0]))[phone.browser.id] === 'delivered')
  await bells.release()
  const ids = [other, phone, desk].map(({ browser }) => browser.id)
  const delivered = Object.fromEntries(ids.map(device => [device, 'delivered']))
  for (const event of sent) {
    await until(async () => Bun.deepEquals(await world.outcomes(event), delivered))
  }
  await until(
    async () =>
      (await sql`select from outbox where project_id = ${tenant.projectId} and kind = 'push'`)
        .count === 0,
  )
  for (const { browser } of [other, phone, desk]) {
    expect(world.service.of(browser)).toHaveLength(12)
  }
})
