import { expect, test } from 'bun:test'
import { lockPushDispatch } from '../../support/database-lock.ts'
import { openPushWorld } from '../../support/worlds/push.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { forProcess } from '../../support/for-file.ts'

const world = forProcess(openPushWorld)

/** Sends an event, and resolves with the notification of a device. */
async function tell(
  tenant: TestTenant,
  of: Parameters<typeof world.service.of>[0],
  event: Record<string, unknown>,
) {
  const count = world.service.of(of).length + 1
  const sent = await tenant.send(event)
  const push = (await world.service.until(of, count)).at(-1)!
  const { notification, app_badge: badge } = JSON.parse(push.text)
  expect(notification.app_badge).toBe(String(badge))
  return { ...sent, tag: notification.tag, badge, close: notification.data.close ?? [] }
}

test('attention §5 a push closes what was read, opened or acknowledged elsewhere, and its badge counts the rest', async () => {
  const tenant = await newTenant(world.server)
  const { account, path } = tenant
  const phone = await world.subscribe(account)
  const [payment, order, job, disk] = [
    await tell(tenant, phone, { channelName: 'payments' }),
    await tell(tenant, phone, { channelName: 'orders' }),
    await tell(tenant, phone, { thread: 'job', state: 'running' }),
    await tell(tenant, phone, { thread: 'disk', state: 'firing', level: 'high' }),
  ]
  expect([payment, order, job, disk].map(({ badge, close }) => [badge, close])).toEqual([
    ...[1, 2, 3, 4].map(badge => [badge, []]),
  ])
  await account.put(`${path}/read`, { channelId: payment.channelId, seq: payment.seq })
  expect((await account.post(`${path}/events/${order.id}/opened`)).body.data.seq).toBe(order.seq)
  await account.post(`${path}/events/${disk.id}/acknowledgement`, {})
  const next = await tell(tenant, phone, { channelName: 'orders' })
  expect(next.close.sort()).toEqual([payment.tag, order.tag, disk.tag].sort())
  expect(next.badge).toBe(2)
  // The end of a thread replaces its notification, and is not unread. A thread that fires again is.
  const end = await tell(tenant, phone, { thread: 'job', state: 'succeeded', level: 'high' })
  expect([end.tag, end.badge]).toEqual([job.tag, 1])
  const again = await tell(tenant, phone, { thread: 'disk', level: 'critical' })
  expect([again.tag, again.badge, again.close.includes(disk.tag)]).toEqual([disk.tag, 2, false])
})

test('attention §5 pushes that are sent together count each other', async () => {
  const tenant = await newTenant(world.server)
  const phone = await world.subscribe(tenant.account)
  const lock = await lockPushDispatch(world.server.sql, tenant.projectId)
  for (let n = 0; n < 3; n++) await tenant.send()
  await lock.release()
  const pushes = await world.service.until(phone, 3)
  expect(Math.max(...pushes.map(({ text }) => JSON.parse(text).app_badge))).toBe(3)
})
