import { expect, test } from 'bun:test'
import { ageVerification } from '../../support/worlds/ageing.ts'
import { fillNameSlugs, findChannels } from '../../../src/log/channels/channels.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { newMember, type SignedInAccount } from '../../support/worlds/signed-in-account.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

test('dashboard §7 the list of channels has settings, last event and the last 24 hours of each', async () => {
  const { account, path, send } = await newTenant(server)
  const hoursAgo = (n: number) => new Date(Date.now() - n * 3_600_000).toISOString()
  const first = await send({ channelName: 'Payments', icon: '💰' })
  await send({ channelName: 'payments', timestamp: hoursAgo(3) })
  await send({ channelName: 'payments', timestamp: hoursAgo(30) })
  const last = await send({ channelName: 'payments' })
  await send({ channelName: 'payments', timestamp: hoursAgo(50) })
  const backfilled = await send({ channelName: 'empty hours', timestamp: hoursAgo(40) })

  const { body } = await account.get(`${path}/channels`)
  expect(body.data.nextCursor).toBeNull()
  const [other, payments] = body.data.items
  expect(payments).toMatchObject({
    ...{ id: first.channelId, slug: 'payments', name: 'Payments', icon: '💰', level: 'normal' },
    ...{ createdAt: first.createdAt, lastSeq: 5, lastEventAt: last.timestamp, unread: 5 },
  })
  const counts: number[] = payments.today
  expect(counts.reduce((sum, n) => sum + n)).toBe(3)
  // A new hour may begin between the two events.
  expect(counts.slice(-2).reduce((sum, n) => sum + n)).toBe(2)
  expect(other.today).toEqual(new Array(24).fill(0))
  expect(other.lastEventAt).toBe(backfilled.timestamp)
  expect((await account.get(`${path}/channels/${payments.id}`)).body.data).toEqual(payments)
})

test('contract §12 the list of channels is a keyset page, newest first', async () => {
  const { account, path, send } = await newTenant(server)
  for (const channelName of ['a', 'b', 'c']) await send({ channelName })
  const first = (await account.get(`${path}/channels?limit=2`)).body.data
  const next = `${path}/channels?limit=2&cursor=${first.nextCursor}`
  const { items, nextCursor } = (await account.get(next)).body.data
  const names = [...first.items, ...items].map(({ name }: { name: string }) => name)
  expect([names, nextCursor]).toEqual([['c', 'b', 'a'], null])
})

test('contract §12 a channel is created before its first event, once', async () => {
  const { organization, account, path, projectId, send } = await newTenant(server, 'admin')
  const input = { name: ' Pay  ments', icon: '💰', description: 'Every payment', keepDays: 7 }
  const created = await account.post(`${path}/channels`, input)
  expect(created.status).toBe(201)
  const { id } = created.body.data
  expect(created.body.data).toMatchObject({
    ...input,
    name: 'Pay  ments',
    lastSeq: null,
    unread: 0,
  })
  expect(await send({ channelName: 'PAY ments' })).toMatchObject({
    channelId: id,
    channelName: 'Pay  ments',
  })
  expectFailure(await account.post(`${path}/channels`, { name: 'pay ments' }), 409, 'conflict')
  expectIssues(await account.post(`${path}/channels`, { icon: '💰' }), 'name required')
  expectIssues(await account.post(`${path}/channels`, { name: 'a\u202E' }), 'name invalid_format')
  const member = await newMember(server, organization, 'member')
  const viewer = await newMember(server, organization, 'viewer')
  const ask = (who: SignedInAccount, json: object) => who.post(`${path}/channels`, json)
  expectFailure(await ask(viewer, { name: 'later' }), 403, 'forbidden')
  expectFailure(await ask(member, { name: 'later', keepDays: 1 }), 403, 'forbidden')
  expect((await ask(member, { name: 'later' })).status).toBe(201)
  await ageVerification(server.sql, account.sessionId)
  expectFailure(await ask(account, { name: 'last', keepDays: 1 }), 403, 'verification_needed')
  const entries = await server.sql<{ target: string; details: object }[]>`
    select target, details from audit_log
    where project_id = ${projectId} and action = 'channel.created' order by id limit 1
  `
  expect([...entries]).toEqual([{ target: id, details: { isArchived: false, keepDays: 7 } }])
})

test('contract §4 of a request and an event that create one channel at once, both have it', async () => {
  const { account, path, send } = await newTenant(server, 'member')
  const names = Array.from({ length: 10 }, (_, nth) => `raced ${nth}`)
  const channels = await Promise.all(
    names.map(async name => {
      const [created, event] = await Promise.all([
        account.post(`${path}/channels`, { name }),
        send({ channelName: name }),
      ])
      return [created.status === 409 || created.body.data.id === event.channelId, created.status]
    }),
  )
  expect(channels.filter(([isOne, status]) => !isOne || status === 500)).toEqual([])
  expect((await account.get(`${path}/channels`)).body.data.total).toBe(10)
})

test('contract §2 concurrent spellings of a name create one channel', async () => {
  const { send } = await newTenant(server)
  const names = Array.from({ length: 40 }, (_, n) => (n % 2 ? 'Big Race' : 'big  race'))
  const sent = await Promise.all(names.map(channelName => send({ channelName })))
  expect(new Set(sent.map(one => `${one.channelId} ${one.channelName}`)).size).toBe(1)
})

test('contract §2 renaming changes the display name only: events still use the first name', async () => {
  const { account, path, send, v1 } = await newTenant(server, 'member')
  const { channelId } = await send({ channelName: 'Payments' })
  const edited = await account.patch(`${path}/channels/${channelId}`, { name: '  Money\u0301  ' })
  expect([edited.status, edited.body.data.name]).toEqual([200, 'Money\u0301'.normalize('NFC')])
  expect((await send({ channelName: 'PAYMENTS' })).channelId).toBe(channelId)
  expect((await send({ channelName: 'Money' })).channelId).not.toBe(channelId)
  const { items } = (await v1.get('/v1/events?channel=payments')).body.data
  expect(items).toHaveLength(2)
})

test('contract §2 a search finds a renamed channel by its new name, unless another channel has it', async () => {
  const { account, path, send, v1 } = await newTenant(server, 'member')
  const { channelId } = await send({ channelName: 'payments' })
  await send({ channelName: 'refunds' })
  const rename = (name: string) => account.patch(`${path}/channels/${channelId}`, { name })
  const search = async (q: string) => {
    const { body } = await account.get(`${path}/events?q=${encodeURIComponent(q)}`)
    return body.data.items.map(({ seq }: { seq: number }) => seq)
  }
  const suggest = async () =>
    (await account.get(`${path}/suggestions?field=channel`)).body.data.items.map(
      ({ value }: { value: string }) => value,
    )
  await rename('Big  Money')
  expect(await suggest()).toEqual(['refunds', 'Big  Money'])
  expect(
    await Promise.all((await suggest()).map((value: string) => search(`channel:"${value}"`))),
  ).toEqual([[2], [1]])
  expect(await search('channel:"BIG   money"')).toEqual([1])
  // It differs by more than case and white space.
  expect(await search('channel:"bíg money"')).toEqual([])
  expect(await search('-channel:"Big Money"')).toEqual([2])
  expect(await search('channel:"big money" hello')).toEqual([1])
  expect(await search('channel:"big money" OR channel:refunds')).toEqual([2, 1])
  expect(await search('channel:payments')).toEqual([1])
  expect(await search('channel:nothing')).toEqual([])
  const { body } = await v1.get('/v1/events?channel=Big%20Money')
  expect(body.data.items).toMatchObject([{ seq: 1, channelName: 'Big  Money' }])

  await rename('Refunds')
  expect(await search('channel:refunds')).toEqual([2])
  expect(await suggest()).toEqual(['refunds', 'payments'])
})

test('performance §3 100 names are found by 100 look-ups, whatever the number of channels', async () => {
  const { projectId } = await newTenant(server)
  await server.sql.begin(async tx => {
    await tx`
      insert into channels (project_id, id, public_id, slug, name, name_slug, created_at)
      select ${projectId}, md5('many ' || n)::uuid, 'chn_' || n, 'first ' || n, 'Later ' || n, 'later ' || n, now()
      from generate_series(1, 5000) as n
    `
    const names = Array.from({ length: 100 }, (_, n) => `LATER ${n - 50}`)
    const found = await findChannels(tx, projectId, names)
    const [read] = await tx`
      select (seq_tup_read + idx_tup_fetch)::int as n
      from pg_stat_xact_user_tables where relname = 'channels'
    `
    expect([found.length, read]).toEqual([49, { n: 49 }])
  })
})

test('contract §2 a channel that was renamed by a former version is found by its new name', async () => {
  const { projectId, send } = await newTenant(server)
  const { channelId } = await send({ channelName: 'payments' })
  const find = () => findChannels(server.sql, projectId, ['ÄRGER'])
  await server.sql`update channels set name = 'Ärger', name_slug = null where public_id = ${channelId}`
  expect(await find()).toEqual([])
  while (await fillNameSlugs(server.sql));
  expect(await find()).toHaveLength(1)
})

test('dashboard §7 absent fields keep their values, and null removes them', async () => {
  const { account, path, send } = await newTenant(server, 'admin')
  const { channelId } = await send({ channelName: 'ops', icon: '💾' })
  const edit = async (json: object) =>
    (await account.patch(`${path}/channels/${channelId}`, json)).body.data
  const full = { description: 'Servers', isArchived: true, keepDays: 30, level: 'high' }
  expect(await edit(full)).toMatchObject({ name: 'ops', icon: '💾', ...full })
  // `❤` is an emoji only with the variation selector U+FE0F.
  expect(await edit({ icon: '❤' })).toMatchObject({ icon: '❤\uFE0F', ...full })
  expect(await edit({})).toMatchObject({ name: 'ops', ...full })
  expect(await edit({ icon: null, description: null, keepDays: null })).toMatchObject({
    icon: null,
    description: null,
    keepDays: null,
    isArchived: true,
  })
  expect(await edit({ isArchived: false })).toMatchObject({ isArchived: false })
})

test('contract §2 settings of a channel follow the same rules as events', async () => {
  const { account, path, send } = await newTenant(server, 'admin')
  const { channelId } = await send()
  const edit = (json: object) => account.patch(`${path}/channels/${channelId}`, json)
  expectIssues(await edit({ name: '' }), 'name too_short')
  expectIssues(await edit({ name: 'x\u202Ey' }), 'name invalid_format')
  expectIssues(await edit({ icon: '1' }), 'icon invalid_format')
  expectIssues(await edit({ description: 'x'.repeat(1_001) }), 'description too_long')
  expectIssues(await edit({ keepDays: 0 }), 'keepDays out_of_range')
  expectIssues(await edit({ level: 'urgent' }), 'level invalid_value')
})

test('contract §11 an archived channel accepts events, and is listed on request', async () => {
  const { account, path, send } = await newTenant(server, 'member')
  const { channelId } = await send()
  await account.patch(`${path}/channels/${channelId}`, { isArchived: true })
  expect((await send()).channelId).toBe(channelId)
  expect((await account.get(`${path}/channels`)).body.data.items).toEqual([])
  const { items } = (await account.get(`${path}/channels?archived=true`)).body.data
  expect(items).toMatchObject([{ id: channelId, isArchived: true, lastSeq: 2, unread: 2 }])
})

test('reliability §11 the audit log records a change of a channel without its texts', async () => {
  const { account, path, send, projectId } = await newTenant(server, 'admin')
  const { channelId } = await send()
  const edit = { description: 'secret plan', keepDays: 7, level: 'low' }
  await account.patch(`${path}/channels/${channelId}`, edit)
  const entries = await server.sql<{ action: string; target: string; details: object }[]>`
    select action, target, details, account_id from audit_log where project_id = ${projectId} and actor = 'account'
  `
  expect([...entries]).toEqual([
    {
      action: 'channel.edited',
      target: channelId,
      details: { fields: 'description keepDays level', keepDays: 7, level: 'low' },
      account_id: account.uuid,
    } as never,
  ])
})

test('contract §12 changing the retention of a channel takes an admin and the password', async () => {
  const { organization, account, path, send } = await newTenant(server, 'admin')
  const { channelId } = await send()
  const member = await newMember(server, organization, 'member')
  const edit = (who: SignedInAccount, json: object) =>
    who.patch(`${path}/channels/${channelId}`, json)
  expectFailure(await edit(member, { keepDays: 1 }), 403, 'forbidden')
  expectFailure(await edit(member, { keepDays: null }), 403, 'forbidden')
  expect((await edit(member, { description: 'fine' })).status).toBe(200)
  await ageVerification(server.sql, account.sessionId)
  expectFailure(await edit(account, { keepDays: 1 }), 403, 'verification_needed')
  expect((await edit(account, { keepDays: null })).status).toBe(200)
})

test('dashboard §7 a search matches parts of channel names, and counts all pages', async () => {
  const { account, path, send } = await newTenant(server)
  for (const channelName of ['Payments', 'ops', '100%', 'pay_later', 'Zürich'])
    await send({ channelName })
  const find = async (query: string) => {
    const { data } = (await account.get(`${path}/channels?${query}`)).body
    return [data.items.map(({ name }: { name: string }) => name).join(), data.total]
  }
  expect(await find('limit=2')).toEqual(['Zürich,pay_later', 5])
  expect(await find('search=PAY')).toEqual(['pay_later,Payments', 2])
  expect(await find('search=%25')).toEqual(['100%', 1])
  expect(await find('search=_')).toEqual(['pay_later', 1])
  for (const name of ['ZÜ', 'zu', 'zu\u0308R', 'Zürich '])
    expect(await find(`search=${encodeURIComponent(name)}`)).toEqual(['Zürich', 1])
  expect(await find('search=%20')).toEqual(['Zürich,pay_later,100%,ops,Payments', 5])
  expectIssues(await account.get(`${path}/channels?search=%CC%81`), 'search invalid_format')
  expect(await find('search=none')).toEqual(['', 0])
  expectIssues(await account.get(`${path}/channels?search=`), 'search too_short')
})

test('dashboard §3 the list shows channels that the member muted, directly or with the whole project', async () => {
  const tenant = await newTenant(server, 'viewer')
  const { account, path } = tenant
  const { channelId } = await tenant.send({ channelName: 'loud' })
  await tenant.send({ channelName: 'quiet' })
  const muted = async () =>
    (await account.get(`${path}/channels`)).body.data.items
      .filter(({ isMuted }: { isMuted: boolean }) => isMuted)
      .map(({ name }: { name: string }) => name)
      .join()
  const own = `${path}/channels/${channelId}/notifications`
  expect(await muted()).toBe('')
  await account.put(`${path}/notifications`, { state: 'mute' })
  expect(await muted()).toBe('quiet,loud')
  expect((await account.get(own)).body.data).toMatchObject({ isDefault: true, state: 'mute' })
  await account.put(own, { state: 'on' })
  expect(await muted()).toBe('quiet')
  expect((await account.get(own)).body.data).toEqual({
    ...{ channelId, isDefault: false, state: 'on', muteUntil: null },
    ...{ isCollapseDefault: true, collapse: true },
  })
  const unknown = await account.get(`${path}/channels/chn_01kadz5p6vf2w8y3m4n5q6r7s8/notifications`)
  expect(unknown.status).toBe(404)
})
