import { expect, test } from 'bun:test'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
const ON = { state: 'on', muteUntil: null, collapse: true }
/** A channel without settings of its own. */
const INHERITED = { isDefault: true, isCollapseDefault: true }
/** A channel whose state alone was set. */
const OWN_STATE = { isDefault: false, isCollapseDefault: true }

test('contract §12 every member, viewers too, reads and changes their own notification settings alone', async () => {
  const tenant = await newTenant(server, 'viewer')
  const other = await newMember(server, tenant.organization, 'owner')
  const { channelId } = await tenant.send()
  const path = `${tenant.path}/notifications`
  expect((await tenant.account.get(path)).body.data).toEqual({
    default: ON,
    items: [],
    nextCursor: null,
  })

  const until = inHours(1)
  const all = await tenant.account.put(path, { state: 'mute', muteUntil: until })
  const muted = { state: 'mute', muteUntil: until, collapse: true }
  expect(all.body.data).toEqual(muted)
  const one = await tenant.account.put(`${tenant.path}/channels/${channelId}/notifications`, {
    state: 'on',
  })
  expect(one.body.data).toEqual({ channelId, ...OWN_STATE, ...ON })
  expect((await tenant.account.get(path)).body.data).toEqual({
    default: muted,
    items: [{ channelId, ...OWN_STATE, ...ON }],
    nextCursor: null,
  })
  expect((await other.get(path)).body.data).toEqual({ default: ON, items: [], nextCursor: null })

  const back = await tenant.account.put(`${tenant.path}/channels/${channelId}/notifications`, {
    state: 'default',
  })
  expect(back.body.data).toEqual({ channelId, ...INHERITED, ...muted })
  expect((await tenant.account.get(path)).body.data.items).toEqual([])
  const entries = await server.sql<{ action: string; target: string }[]>`
    select action, target from audit_log where account_id = ${tenant.account.uuid} order by id
  `
  expect([...entries]).toEqual(
    [tenant.organization.project.id, channelId, channelId].map(target => ({
      action: 'notifications.edited',
      target,
    })),
  )
})

test('dashboard: an expired mute has no effect', async () => {
  const tenant = await newTenant(server)
  const { channelId } = await tenant.send()
  const path = `${tenant.path}/notifications`
  const channel = `${tenant.path}/channels/${channelId}/notifications`
  await tenant.account.put(channel, { state: 'mute', muteUntil: inHours(1) })
  await tenant.account.put(path, { state: 'mute', muteUntil: inHours(1) })
  const isMuted = async () => {
    const [row] = await server.sql<{ is_muted: boolean }[]>`
      select is_muted(c.project_id, c.id, ${tenant.account.uuid})
      from channels c
      where c.project_id = ${tenant.projectId}
    `
    return row!.is_muted
  }
  expect(await isMuted()).toBe(true)
  const age = (where: 'channel' | 'project') => server.sql`
    update notification_settings set mute_until = mute_until - interval '61 minutes'
    where project_id = ${tenant.projectId} and (channel_id is not null) = ${where === 'channel'}
  `
  await age('channel')
  expect((await tenant.account.get(path)).body.data.items).toEqual([])
  // The settings of the whole project count again.
  expect(await isMuted()).toBe(true)
  await age('project')
  expect((await tenant.account.get(path)).body.data.default).toEqual(ON)
  expect(await isMuted()).toBe(false)
})

test('delivery: collapsing is set per project and per channel, independent of mutes', async () => {
  const tenant = await newTenant(server, 'viewer')
  const { channelId } = await tenant.send()
  const path = `${tenant.path}/notifications`
  const channel = `${tenant.path}/channels/${channelId}/notifications`
  const read = async () => (await tenant.account.get(channel)).body.data
  const off = { ...ON, collapse: false }

  const all = await tenant.account.put(path, { state: 'on', collapse: false })
  expect(all.body.data).toEqual(off)
  expect(await read()).toEqual({ channelId, ...INHERITED, ...off })
  const own = await tenant.account.put(channel, { state: 'default', collapse: true })
  const expected = { channelId, isDefault: true, isCollapseDefault: false, ...ON }
  expect(own.body.data).toEqual(expected)
  expect((await tenant.account.get(path)).body.data).toEqual({
    default: off,
    items: [expected],
    nextCursor: null,
  })

  // A request without it does not change it, nor does the end of a mute.
  const until = inHours(1)
  const mute = await tenant.account.put(channel, { state: 'mute', muteUntil: until })
  const muted = { state: 'mute', muteUntil: until }
  expect(mute.body.data).toEqual({ ...expected, isDefault: false, ...muted })
  await server.sql`
    update notification_settings set mute_until = mute_until - interval '61 minutes'
    where project_id = ${tenant.projectId} and channel_id is not null
  `
  expect(await read()).toEqual(expected)
  await tenant.account.put(channel, { state: 'on' })
  expect(await read()).toEqual({ ...expected, isDefault: false })

  const back = await tenant.account.put(channel, { state: 'default', collapse: null })
  expect(back.body.data).toEqual({ channelId, ...INHERITED, ...off })
  expect((await tenant.account.get(path)).body.data.items).toEqual([])
})

test.each([
  [{ state: 'loud' }, 'state'],
  [{}, 'state'],
  [{ state: 'on', muteUntil: '2099-01-01T00:00:00Z' }, 'muteUntil'],
  [{ state: 'mute', muteUntil: '2020-01-01T00:00:00Z' }, 'muteUntil'],
  [{ state: 'mute', muteUntil: 'tomorrow' }, 'muteUntil'],
  [{ state: 'mute', muteUntil: 5 }, 'muteUntil'],
  [{ state: 'on', collapse: 'no' }, 'collapse'],
])('dashboard: %j is refused', async (wish, field) => {
  const tenant = await newTenant(server)
  const { channelId } = await tenant.send()
  for (const path of [
    `${tenant.path}/notifications`,
    `${tenant.path}/channels/${channelId}/notifications`,
  ]) {
    const { status, body } = await tenant.account.put(path, wish)
    expect([status, body.details[0].path]).toEqual([400, [field]])
  }
  const unset = await tenant.account.put(`${tenant.path}/notifications`, { state: 'default' })
  expect(unset.status).toBe(400)
  const nothing = await tenant.account.put(`${tenant.path}/notifications`, {
    state: 'on',
    collapse: null,
  })
  expect([nothing.status, nothing.body.details[0].path]).toEqual([400, ['collapse']])
})

test('dashboard: settings of many channels are paged', async () => {
  const tenant = await newTenant(server)
  const ids: string[] = []
  for (const channelName of ['a', 'b', 'c']) {
    const { channelId } = await tenant.send({ channelName })
    ids.push(channelId)
    await tenant.account.put(`${tenant.path}/channels/${channelId}/notifications`, {
      state: 'mute',
    })
  }
  const path = `${tenant.path}/notifications`
  const first = (await tenant.account.get(`${path}?limit=2`)).body.data
  const second = (await tenant.account.get(`${path}?limit=2&cursor=${first.nextCursor}`)).body.data
  const listed = [...first.items, ...second.items].map(({ channelId }) => channelId)
  expect(listed).toEqual(ids)
  expect(second.nextCursor).toBeNull()
  const bad = await tenant.account.get(`${path}?cursor=x`)
  expect([bad.status, bad.body.details[0].path]).toEqual([400, ['cursor']])
})
