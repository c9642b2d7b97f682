import { expect, test } from 'bun:test'
import { withSharedServer } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

/** Sets the level of the channel `ops`. */
async function setLevel({ account, path, send }: TestTenant, level: string): Promise<void> {
  const { channelId } = await send({ level: 'normal' })
  const { status, body } = await account.patch(`${path}/channels/${channelId}`, { level })
  expect([status, body.data.level]).toEqual([200, level])
}

test('contract §2 an event without a level has that of its channel, however it is appended', async () => {
  const tenant = await newTenant(server)
  const { send, v1 } = tenant
  const level = async (event: object = {}, headers = {}) => {
    const data = await send({ ...event }, headers)
    const { body } = await v1.get(`/v1/events/${data.id}`)
    expect(body.data).toEqual(data)
    return data.level
  }
  expect(await level()).toBeUndefined()
  await setLevel(tenant, 'high')
  expect(await level()).toBe('high')
  expect(await level({ userId: 'ada' })).toBe('high')
  expect(await level({ url: 'https://example.com' })).toBe('high')
  expect(await level({ level: 'normal' })).toBeUndefined()
  expect(await level({ level: 'critical' })).toBe('critical')
  expect(await level({ channelName: 'other' })).toBeUndefined()
  expect(await level({ channelName: 'other' })).toBeUndefined()
  const key = { 'idempotency-key': 'once' }
  expect(await level({}, key)).toBe('high')
  const many = await Promise.all(
    [{}, { level: 'low' }, { level: 'normal' }, {}].map(one => level(one)),
  )
  expect(many).toEqual(['high', 'low', undefined, 'high'])
  const { body } = await v1.post('/v1/log', { channel: 'ops', event: 'From LogSnag' })
  expect(body.data.level).toBeUndefined()

  await setLevel(tenant, 'normal')
  expect(await level()).toBeUndefined()
  // The first response, as it was.
  expect((await send({}, key)).level).toBe('high')
})

test('contract §2 a channel is created with a level, and projects without one look up no channel', async () => {
  const { account, path, projectId, send } = await newTenant(server)
  const hasLevels = async () => {
    const [row] = await server.sql<[{ has_levels: boolean }]>`
      select has_levels from event_logs where project_id = ${projectId}
    `
    return row.has_levels
  }
  const create = async (body: object) => (await account.post(`${path}/channels`, body)).body.data
  expect(await create({ name: 'plain' })).toMatchObject({ level: 'normal' })
  expect(await hasLevels()).toBe(false)
  const { id } = await create({ name: 'ops', level: 'critical' })
  const other = await create({ name: 'debug', level: 'low' })
  expect((await send()).level).toBe('critical')
  expect((await send({ channelName: 'debug' })).level).toBe('low')
  const edit = (channel: string) =>
    account.patch(`${path}/channels/${channel}`, { level: 'normal' })
  await edit(id)
  expect(await hasLevels()).toBe(true)
  await edit(other.id)
  expect(await hasLevels()).toBe(false)
})

test('contract §2 edits of two channels at once never leave a level unnoticed', async () => {
  const { account, path, send } = await newTenant(server)
  const ids = [(await send()).channelId, (await send({ channelName: 'other' })).channelId]
  const edit = (id: string, level: string) => account.patch(`${path}/channels/${id}`, { level })
  for (let n = 0; n < 10; n++) {
    await edit(ids[1], 'low')
    await Promise.all([edit(ids[0], 'high'), edit(ids[1], 'normal')])
    expect((await send()).level).toBe('high')
    await edit(ids[0], 'normal')
  }
})

test('delivery §1 a server of 0.3.0 appends beside, and its events have the level of the channel', async () => {
  const tenant = await newTenant(server)
  await setLevel(tenant, 'high')
  const { projectId, v1 } = tenant
  const [{ id: channel }] = await server.sql<[{ id: string }]>`
    select id from channels where project_id = ${projectId}
  `
  const [row] = await server.sql<[{ seqs: number[] }]>`
    select seqs
    from append_events(
      project_ids => array[${projectId}::uuid], key_hashes => null, key_counts => null, project_numbers => null,
      key_numbers => null, ids => array[gen_random_uuid()], occurred_ats => null,
      channel_ids => array[${channel}::uuid], channel_public_ids => null, channel_slugs => null,
      channel_names => null, titles => array['t'], descriptions => null, icons => null, tag_lists => null,
      metadatas => null, user_refs => null, sources => null, notifies => null, keys => null,
      fingerprints => null, response_heads => null, response_tails => null
    )
  `
  expect(row.seqs).toEqual([2])
  const [lone] = await server.sql<[{ seqs: number[] }]>`
    select seqs
    from append_event(
      project => ${projectId}, key_hash => null, event_id => gen_random_uuid(), occurred => null,
      channel => ${channel}, event_title => 'u', event_description => null, event_icon => null, event_tags => '{}',
      event_metadata => '{}', event_user => null, event_source => 'api', is_notifying => true
    )
  `
  expect(lone.seqs).toEqual([3])
  const { body } = await v1.get('/v1/events?limit=2')
  expect(body.data.items).toMatchObject([
    { seq: 3, title: 'u', level: 'high' },
    { seq: 2, title: 't', level: 'high' },
  ])
  const [old] = await server.sql<[{ text: string }]>`
    select t.text
    from events_between(${projectId}, 1, 2) e
      cross join lateral event_text(
        e.project_id, e.id, e.seq, 'chn', 'ops', e.user_ref, e.occurred_at, e.created_at, e.title, e.description,
        e.icon, e.tags, e.metadata, e.source, e.notify
      ) t
  `
  expect(old.text).toEndWith('"notify":true}')
})
