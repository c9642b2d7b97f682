import { expect, test } from 'bun:test'
import { ageEvents, ageMembership } from '../../support/worlds/ageing.ts'
import { createApi, newMember } from '../../support/worlds/signed-in-account.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

test('dashboard §3 unread events are counted per channel and member', async () => {
  const tenant = await newTenant(server, 'viewer')
  const { organization, account, path, send } = tenant
  const other = await newMember(server, organization, 'viewer')
  const { channelId: a } = await send({ channelName: 'a' })
  const { channelId: b } = await send({ channelName: 'b' })
  await send({ channelName: 'a' })
  expect(await getUnread(tenant)).toEqual({ total: 3, [a]: 2, [b]: 1 })

  expect((await account.put(`${path}/read`, { channelId: a, seq: 1 })).body.data).toEqual({
    seq: 1,
  })
  expect(await getUnread(tenant)).toEqual({ total: 2, [a]: 1, [b]: 1 })
  await account.put(`${path}/read`, { channelId: a, seq: 3 })
  expect(await getUnread(tenant)).toEqual({ total: 1, [b]: 1 })
  expect(await getUnread({ path, account: other })).toEqual({ total: 3, [a]: 2, [b]: 1 })

  // Another device of the same account.
  const device = createApi(server.url, account.cookie)
  expect((await device.get(`${path}/unread`)).body.data.total).toBe(1)
})

test('dashboard §3 all channels, and later ones, are marked as read at once', async () => {
  const tenant = await newTenant(server)
  const { account, path, send } = tenant
  for (const name of ['a', 'b', 'c']) await send({ channelName: name })
  await account.put(`${path}/read`, { seq: 2 })
  expect(await getUnread(tenant)).toMatchObject({ total: 1 })
  await account.put(`${path}/read`, { seq: 3 })
  expect(await getUnread(tenant)).toEqual({ total: 0 })
  const { channelId } = await send({ channelName: 'd' })
  expect(await getUnread(tenant)).toEqual({ total: 1, [channelId]: 1 })
})

test('dashboard §3 a read mark never moves back, nor beyond the head', async () => {
  const tenant = await newTenant(server)
  const { account, path, send } = tenant
  const { channelId } = await send()
  await send()
  const read = async (json: object) => (await account.put(`${path}/read`, json)).body.data.seq
  expect(await read({ channelId, seq: 2 })).toBe(2)
  expect(await read({ channelId, seq: 1 })).toBe(2)
  expect(await read({ channelId, seq: Number.MAX_SAFE_INTEGER })).toBe(2)
  expect(await read({ seq: Number.MAX_SAFE_INTEGER })).toBe(2)
  expect(await read({ seq: 0 })).toBe(2)
  await send()
  expect(await getUnread(tenant)).toEqual({ total: 1, [channelId]: 1 })
})

test('dashboard §3 a new member starts with everything read, until they mark otherwise', async () => {
  const { organization, projectId, path, send, account } = await newTenant(server)
  const { channelId } = await send()
  await ageEvents(server.sql, projectId, { seq: 1, interval: '1 day' })
  const late = await newMember(server, organization, 'viewer')
  expect(await getUnread({ path, account: late })).toEqual({ total: 0 })
  await send()
  expect(await getUnread({ path, account: late })).toEqual({ total: 1, [channelId]: 1 })
  await late.put(`${path}/read`, { channelId, seq: 0 })
  expect(await getUnread({ path, account: late })).toEqual({ total: 2, [channelId]: 2 })
  await ageMembership(server.sql, account.uuid, '2 days')
  expect(await getUnread({ path, account })).toEqual({ total: 2, [channelId]: 2 })
})

test('dashboard §3 a channel counts up to 100 unread events, and an archived one none', async () => {
  const tenant = await newTenant(server)
  const { account, path, send } = tenant
  const { channelId } = await send()
  await Promise.all(Array.from({ length: 120 }, () => send()))
  const { channelId: archived } = await send({ channelName: 'archived' })
  await account.patch(`${path}/channels/${archived}`, { isArchived: true })
  expect(await getUnread(tenant)).toEqual({ total: 100, [channelId]: 100 })
})

test('dashboard §3 a deleted event is not unread, and is unread again once it is restored', async () => {
  const tenant = await newTenant(server)
  const { account, path, send } = tenant
  const { channelId, id } = await send()
  await send()
  await account.delete(`${path}/events/${id}`)
  expect(await getUnread(tenant)).toEqual({ total: 1, [channelId]: 1 })
  await account.post(`${path}/events/${id}/restore`)
  expect(await getUnread(tenant)).toEqual({ total: 2, [channelId]: 2 })
})

/** Returns the member's unread counts as `{total, [channel]: unread}`. */
async function getUnread({ path, account }: Pick<TestTenant, 'path' | 'account'>) {
  const { total, channels } = (await account.get(`${path}/unread`)).body.data
  return Object.fromEntries([
    ['total', total],
    ...channels.map(({ id, unread }: { id: string; unread: number }) => [id, unread]),
  ])
}
