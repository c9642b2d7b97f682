import { expect, test } from 'bun:test'
import { WITHHELD_REASONS } from '../../../src/delivery/push/dispatch.ts'
import { lockPushDispatch } from '../../support/database-lock.ts'
import { makeDeliveriesDue } from '../../support/worlds/ageing.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { openPushWorld } from '../../support/worlds/push.ts'
import type { Arrived } from '../../support/servers/push-service.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { until } from '../../support/until.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(openPushWorld)

const COLLAPSED = `withheld: ${WITHHELD_REASONS.collapsed}`

/** Appends `count` events to a channel; resolves when all are dispatched. */
async function sendMany(tenant: TestTenant, channelName: string, count: number) {
  const titles = Array.from({ length: count }, (_, n) => `No ${n}`)
  const events = await Promise.all(titles.map(title => tenant.send({ channelName, title })))
  await world.untilDispatched(tenant.projectId)
  return events
}

/** Makes the pending counts due; resolves when none is left. */
async function untilPushed(tenant: TestTenant): Promise<void> {
  // Skips pushes that are in flight: they would be sent again.
  await world.server.sql`
    update outbox set available_at = now() where project_id = ${tenant.projectId} and token is null
  `
  await until(async () => {
    const { count } = await world.server.sql`
      select id from outbox where project_id = ${tenant.projectId}
    `
    return count === 0
  })
}

const isCount = ({ notification }: Arrived) => / more in /.test(notification.title)

test('delivery: after 10 pushes of a channel in 60 s, one push counts the rest and is updated in place', async () => {
  const { tenant, browser } = await world.newPhone()
  const [first] = await sendMany(tenant, 'payments', 3)
  await sendMany(tenant, 'payments', 27)
  await untilPushed(tenant)
  await sendMany(tenant, 'payments', 17)
  await untilPushed(tenant)

  const pushes = world.service.of(browser)
  expect(pushes.filter(push => !isCount(push))).toHaveLength(10)
  const counts = pushes.filter(isCount)
  // Intermediate counts may have been pushed, each replacing the one before.
  expect(counts.at(-1)?.notification.title).toBe('37 more in payments')
  expect(new Set(counts.map(({ topic }) => topic)).size).toBe(1)
  expect(counts.at(-1)?.notification.tag).toBe(counts[0]!.topic)
  expect(counts.at(-1)?.notification.navigate).toBe(
    `${world.server.server.url}/p/${tenant.organization.project.id}?channel=${first!.channelId}`,
  )
  expect(world.service.problems).toEqual([])
  // The first ten are pushed, and all others are recorded.
  const rows = await world.server.sql<{ outcome: string; n: number; last: number }[]>`
    select concat_ws(': ', d.state, d.reason) as outcome, count(*)::int as n, max(e.seq)::int as last
    from delivery_records d
      join events e on e.project_id = d.project_id and e.id = d.event_id
    where d.project_id = ${tenant.projectId} and d.kind = 'push'
    group by 1
    order by 1
  `
  expect([...rows]).toEqual([
    { outcome: 'delivered', n: 10, last: 10 },
    { outcome: COLLAPSED, n: 37, last: 47 },
  ])
})

test('delivery: events of a muted channel use up no burst', async () => {
  const { tenant, browser } = await world.newPhone()
  await tenant.account.put(`${tenant.path}/notifications`, { state: 'mute' })
  await sendMany(tenant, 'payments', 10)
  await tenant.account.put(`${tenant.path}/notifications`, { state: 'on' })
  await sendMany(tenant, 'payments', 1)
  await untilPushed(tenant)
  expect(world.service.of(browser).map(isCount)).toEqual([false])
})

test('delivery: after a minute ten more are pushed; a burst that goes on keeps its count', async () => {
  const { tenant, browser } = await world.newPhone()
  await sendMany(tenant, 'payments', 12)
  await untilPushed(tenant)
  // The ten were pushed a minute ago, and the last counted event half a minute ago.
  await world.server.sql`
    update push_bursts set
      recent = array(select r - interval '61 seconds' from unnest(recent) as r),
      burst_at = burst_at - interval '61 seconds',
      collapsed_at = collapsed_at - interval '30 seconds'
    where project_id = ${tenant.projectId}
  `
  await sendMany(tenant, 'payments', 11)
  await untilPushed(tenant)
  const counts = world.service.of(browser).filter(isCount)
  expect(counts.map(one => one.notification.title)).toEqual([
    '2 more in payments',
    '3 more in payments',
  ])
  expect(world.service.of(browser)).toHaveLength(22)

  await world.server.sql`
    update push_bursts set
      recent = array(select r - interval '61 seconds' from unnest(recent) as r),
      collapsed_at = collapsed_at - interval '61 seconds'
    where project_id = ${tenant.projectId}
  `
  await sendMany(tenant, 'payments', 11)
  await untilPushed(tenant)
  // Single pushes may arrive after the count.
  const last = world.service.of(browser).findLast(isCount)
  expect(last?.notification.title).toBe('1 more in payments')
  expect(last?.topic).not.toBe(counts[0]!.topic)
})

test('delivery: a count that its push service refuses for now is retried, and is never lost', async () => {
  const { tenant, browser } = await world.newPhone()
  await sendMany(tenant, 'payments', 10)
  await untilPushed(tenant)
  world.service.script(browser, { status: 503 }, { status: 201 })
  const [event] = await sendMany(tenant, 'payments', 1)
  await makeDeliveriesDue(world.server.sql, tenant.projectId)
  await world.service.until(browser, 11)
  await world.untilWaiting(tenant.projectId)
  await untilPushed(tenant)
  const counts = world.service.of(browser).filter(isCount)
  expect(counts.map(one => one.notification.title)).toEqual([
    '1 more in payments',
    '1 more in payments',
  ])
  expect(await world.outcomes(event!)).toEqual({ [browser.id]: COLLAPSED })
})

test('delivery: the next event counts a burst that ended with the deletion of its event', async () => {
  const { tenant, browser } = await world.newPhone()
  // The count is due soon after its dispatch, and is that of the newest event.
  const dispatch = await lockPushDispatch(world.server.sql, tenant.projectId)
  await Promise.all(Array.from({ length: 10 }, () => tenant.send({ channelName: 'payments' })))
  const newest = await tenant.send({ channelName: 'payments' })
  const { status } = await tenant.account.delete(`${tenant.path}/events/${newest.id}`)
  expect(status).toBe(200)
  await world.server.sql`
    update events set deleted_at = deleted_at - interval '1 minute' where project_id = ${tenant.projectId}
  `
  await dispatch.release()
  await world.untilDispatched(tenant.projectId)
  await untilPushed(tenant)
  expect(world.service.of(browser).filter(isCount)).toEqual([])
  await world.server.sql`
    update push_bursts set summary_at = summary_at - interval '2 minutes' where project_id = ${tenant.projectId}
  `
  await sendMany(tenant, 'payments', 1)
  await untilPushed(tenant)
  const [count] = world.service.of(browser).filter(isCount)
  expect(count?.notification.title).toBe('2 more in payments')
})

test('delivery: a member who turned collapsing off, for the project or a channel, gets every push from then on', async () => {
  const tenant = await newTenant(world.server)
  const other = await newMember(world.server, tenant.organization, 'viewer')
  const own = await world.subscribe(tenant.account)
  const theirs = await world.subscribe(other)
  const { channelId } = await tenant.send({ channelName: 'two', notify: false })
  await tenant.account.put(`${tenant.path}/notifications`, { state: 'on', collapse: false })
  const channel = `${tenant.path}/channels/${channelId}/notifications`
  await tenant.account.put(channel, { state: 'default', collapse: true })
  await other.put(channel, { state: 'default', collapse: false })
  await sendMany(tenant, 'one', 13)
  const events = await sendMany(tenant, 'two', 13)
  await untilPushed(tenant)

  const counts = (pushes: readonly Arrived[]) =>
    pushes.filter(isCount).map(({ notification }) => notification.title)
  expect(counts(world.service.of(own))).toEqual(['3 more in two'])
  expect(world.service.of(own)).toHaveLength(13 + 10 + 1)
  expect(counts(world.service.of(theirs))).toEqual(['3 more in one'])
  expect(world.service.of(theirs)).toHaveLength(10 + 1 + 13)
  const outcomes = await Promise.all(events.map(world.outcomes))
  expect(outcomes.filter(one => one[own.id] === COLLAPSED)).toHaveLength(3)
  expect(outcomes.filter(one => one[theirs.id] === 'delivered')).toHaveLength(13)

  // Events that were collapsed before it was turned off are still counted.
  await sendMany(tenant, 'two', 1)
  await tenant.account.put(channel, { state: 'default', collapse: false })
  await sendMany(tenant, 'two', 3)
  await untilPushed(tenant)
  expect(counts(world.service.of(own)).at(-1)).toBe('4 more in two')
  expect(world.service.of(own).filter(push => !isCount(push))).toHaveLength(13 + 10 + 3)
})
