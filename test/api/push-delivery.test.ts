import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { WITHHELD_REASONS } from '../../src/push/dispatch.ts'
import { endWaits } from '../support/age.ts'
import { newMember, newPerson } from '../support/person.ts'
import { openPushWorld, type PushWorld } from '../support/push.ts'
import { newTenant, type TestTenant } from '../support/tenant.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

let world: PushWorld
beforeAll(async () => {
  world = await openPushWorld()
})
afterAll(() => world[Symbol.asyncDispose]())

/** Resolves with what became of an event's pushes, once there are so many. */
async function untilOutcomes(event: { id: string }, count = 1): Promise<Record<string, string>> {
  await until(async () => Object.keys(await world.outcomes(event)).length >= count)
  return world.outcomes(event)
}

test('delivery: an event is pushed to every device of every member, encrypted, and opens exactly that event', async () => {
  const tenant = await newTenant(world.server, 'viewer')
  const other = await newMember(world.server, tenant.organization, 'owner')
  const stranger = await newPerson(world.server)
  const browsers = [await world.subscribe(tenant.person), await world.subscribe(other)]
  const outside = await world.subscribe(stranger)
  const event = await tenant.send({
    channelName: 'payments',
    title: 'New payment',
    icon: '💰',
    description: 'Ada paid 12 €',
  })
  for (const browser of browsers) {
    const [push] = await world.service.until(browser, 1)
    expect(push).toMatchObject({
      ttl: 86_400,
      urgency: 'high',
      records: 1,
      notification: {
        title: '💰 New payment',
        body: 'Ada paid 12 €\npayments · Test project',
        navigate: `${world.server.server.url}/e/${event.id}`,
        tag: push?.topic,
      },
    })
    expect(push?.claims.sub).toBe('mailto:ops@example.com')
  }
  const outcomes = await untilOutcomes(event, 2)
  expect(outcomes).toEqual(Object.fromEntries(browsers.map(({ id }) => [id, 'delivered'])))
  expect(world.service.of(outside)).toEqual([])
  expect(world.service.problems).toEqual([])
})

test('RFC 8292: one token serves many pushes, and each push has a key of its own', async () => {
  const tenant = await newTenant(world.server)
  const browser = await world.subscribe(tenant.person)
  await tenant.send()
  await tenant.send()
  const [one, two] = await world.service.until(browser, 2)
  expect(one?.authorization).toBe(two!.authorization)
  expect(one?.topic).not.toBe(two!.topic)
  const key = await tenant.person.get('/api/push/key')
  expect(key.body.data.publicKey).toBe(one!.key)
})

/** Resolves when an event of somebody without a device is dispatched, with what its page says of pushes. */
async function readSilence(tenant: TestTenant, event: { id: string }) {
  await world.untilDispatched(tenant.projectId)
  const reader = await newMember(world.server, tenant.organization, 'viewer')
  const page = await reader.get(`${tenant.path}/events/${event.id}/deliveries`)
  expect(await world.outcomes(event)).toEqual({})
  return page.body.data.items
}

test('delivery: where nobody has a device nothing is written, and the page of an event says why it was silent', async () => {
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

test('delivery: where nobody is to be told, the reason is recorded', async () => {
  const tenant = await newTenant(world.server)
  const browser = await world.subscribe(tenant.person)

  const cases: [Record<string, unknown>, string][] = [
    [{ notify: false }, WITHHELD_REASONS.notifyFalse],
    [{ timestamp: new Date(Date.now() - 11 * 60_000).toISOString() }, WITHHELD_REASONS.old],
  ]
  for (const [event, reason] of cases) {
    expect(await untilOutcomes(await tenant.send(event))).toEqual({ nobody: `withheld: ${reason}` })
  }
  const fresh = await tenant.send({ timestamp: new Date(Date.now() - 9 * 60_000).toISOString() })
  expect(await untilOutcomes(fresh)).toEqual({ [browser.id]: 'delivered' })

  const { channelId } = await tenant.send({ channelName: 'old things', notify: false })
  await tenant.person.patch(`${tenant.path}/channels/${channelId}`, { isArchived: true })
  const archived = await tenant.send({ channelName: 'old things' })
  expect(await untilOutcomes(archived)).toEqual({
    nobody: `withheld: ${WITHHELD_REASONS.archived}`,
  })
  expect(world.service.of(browser)).toHaveLength(1)
})

test('delivery: what a person does not want is withheld, device by device, with the reason', async () => {
  const tenant = await newTenant(world.server)
  const other = await newMember(world.server, tenant.organization, 'viewer')
  const [off, on] = [await world.subscribe(tenant.person), await world.subscribe(other)]
  const { channelId } = await tenant.send({ notify: false })
  const one = (id: string) => `/api/push/subscriptions/${id}`

  await tenant.person.patch(one(off.id), { isOn: false })
  expect(await untilOutcomes(await tenant.send(), 2)).toEqual({
    [off.id]: `withheld: ${WITHHELD_REASONS.off}`,
    [on.id]: 'delivered',
  })

  await other.put(`${tenant.path}/channels/${channelId}/notifications`, { state: 'mute' })
  await tenant.person.patch(one(off.id), { isOn: true })
  expect(await untilOutcomes(await tenant.send(), 2)).toEqual({
    [off.id]: 'delivered',
    [on.id]: `withheld: ${WITHHELD_REASONS.muted}`,
  })
  expect(await untilOutcomes(await tenant.send({ channelName: 'another' }), 2)).toEqual({
    [off.id]: 'delivered',
    [on.id]: 'delivered',
  })

  // All of the day but a minute that is not now.
  const minute = (offset: number) =>
    new Date(Date.now() + offset * 60_000).toISOString().slice(11, 16)
  const quietHours = { from: minute(-120), to: minute(120), timeZone: 'UTC' }
  await tenant.person.patch(one(off.id), { quietHours })
  expect(await untilOutcomes(await tenant.send({ channelName: 'another' }), 2)).toEqual({
    [off.id]: `withheld: ${WITHHELD_REASONS.quiet}`,
    [on.id]: 'delivered',
  })
  await tenant.person.patch(one(off.id), { quietHours: null })
  expect(await untilOutcomes(await tenant.send({ channelName: 'another' }), 2)).toEqual({
    [off.id]: 'delivered',
    [on.id]: 'delivered',
  })
})

test('delivery: a page of an event shows whose device was told, and what came of it', async () => {
  const tenant = await newTenant(world.server)
  const browser = await world.subscribe(tenant.person)
  const event = await tenant.send()
  await untilOutcomes(event)
  const page = await tenant.person.get(`${tenant.path}/events/${event.id}/deliveries`)
  expect(page.body.data.items).toMatchObject([
    {
      kind: 'push',
      state: 'delivered',
      target: { id: browser.id, name: 'Test person: A browser' },
    },
  ])
  expect(page.text).not.toContain(browser.path)
})

test('case 19: who is no member any more is not pushed to, from the next event on', async () => {
  const tenant = await newTenant(world.server, 'owner')
  const member = await newMember(world.server, tenant.organization, 'member')
  const [own, theirs] = [await world.subscribe(tenant.person), await world.subscribe(member)]
  const before = await tenant.send()
  await untilOutcomes(before, 2)
  const path = `/api/organizations/${tenant.organization.id}/members/${member.id}`
  expect((await tenant.person.delete(path)).status).toBe(200)
  const after = await tenant.send()
  expect(await untilOutcomes(after)).toEqual({ [own.id]: 'delivered' })
  expect(world.service.of(theirs)).toHaveLength(1)
  // Nor does the page of the event name them any more.
  const page = await tenant.person.get(`${tenant.path}/events/${before.id}/deliveries`)
  const names = page.body.data.items.map((item: any) => [item.target.id, item.target.name])
  expect(new Map(names).get(theirs.id)).toBeNull()
})

test('delivery: membership and wishes count at the moment of sending, also of what waits for a retry', async () => {
  const tenant = await newTenant(world.server, 'owner')
  const member = await newMember(world.server, tenant.organization, 'member')
  const browser = await world.subscribe(member)
  world.service.script(browser, { status: 503 }, { status: 201 })
  const event = await tenant.send()
  await world.service.until(browser, 1)
  await member.put(`${tenant.path}/notifications`, { state: 'mute' })
  await world.untilWaiting(tenant.projectId)
  await endWaits(world.server.sql, tenant.projectId)
  expect(await untilOutcomes(event)).toEqual({
    [browser.id]: `withheld: ${WITHHELD_REASONS.muted}`,
  })
  expect(world.service.of(browser)).toHaveLength(1)
})

test('case 19: signing out deletes the subscription of that browser, and nothing is pushed there', async () => {
  const tenant = await newTenant(world.server)
  const browser = await world.subscribe(tenant.person)
  expect((await tenant.person.delete('/api/session')).status).toBe(200)
  const rows = await world.server.sql`
    select id from push_subscriptions where account_id = ${tenant.person.uuid}
  `
  expect(rows.count).toBe(0)
  const event = await tenant.send()
  expect(await readSilence(tenant, event)).toMatchObject([{ reason: WITHHELD_REASONS.noDevice }])
  expect(world.service.of(browser)).toEqual([])
})

test('reliability §6 a session that has expired is pushed nothing, swept or not', async () => {
  const tenant = await newTenant(world.server)
  const browser = await world.subscribe(tenant.person)
  await world.server.sql`
    update sessions set last_seen_at = now() - interval '8 days' where id = ${tenant.person.sessionId}
  `
  const event = await tenant.send()
  expect(await readSilence(tenant, event)).toMatchObject([{ reason: WITHHELD_REASONS.noDevice }])
  expect(world.service.of(browser)).toEqual([])
})

test('a device is told of what happens from its subscription on', async () => {
  const tenant = await newTenant(world.server)
  const own = await world.subscribe(tenant.person)
  expect(await untilOutcomes(await tenant.send())).toEqual({ [own.id]: 'delivered' })
  // Dispatched only after the subscription, as by a server that was busy.
  const before = await world.server.sql.begin(async tx => {
    await tx`select from delivery_cursors where project_id = ${tenant.projectId} for update`
    const event = await tenant.send()
    await tx`
      update push_subscriptions set created_at = clock_timestamp() + interval '10 milliseconds'
      where account_id = ${tenant.person.uuid}
    `
    return event
  })
  expect(await untilOutcomes(before)).toEqual({ nobody: `withheld: ${WITHHELD_REASONS.noDevice}` })
  const other = await newMember(world.server, tenant.organization, 'viewer')
  const theirs = await world.subscribe(other)
  expect(await untilOutcomes(await tenant.send())).toEqual({
    [own.id]: 'delivered',
    [theirs.id]: 'delivered',
  })
  expect(world.service.of(own)).toHaveLength(2)
})
