import { expect, test } from 'bun:test'
import { HOUR_MS } from '../../../src/log/events/time-buckets.ts'
import { parseId } from '../../../src/base/ids.ts'
import { insertDeadLetter } from '../../support/worlds/deliveries.ts'
import { newMember, type SignedInAccount } from '../../support/worlds/signed-in-account.ts'
import { withServer } from '../../support/servers/server.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { insertWebhook } from '../../support/worlds/webhooks.ts'

const server = withServer({}, { kinds: [] })

async function read(account: SignedInAccount) {
  const { status, body } = await account.get('/api/overview')
  expect(status).toBe(200)
  return body.data
}

test('dashboard overview: an account sees the newest events of all its projects, and of no others', async () => {
  const shop = await newTenant(server, 'admin')
  const api = await newTenant(server, 'viewer')
  const stranger = await newTenant(server)
  await server.sql`
    insert into memberships (organization_id, account_id, role)
    values (${api.organization.uuid}, ${shop.account.uuid}, 'viewer')
  `
  expect(
    await read(await newMember(server, { uuid: stranger.organization.uuid }, 'viewer')),
  ).toEqual(
    expect.objectContaining({ projects: [expect.objectContaining({ head: 0, newest: [] })] }),
  )
  await shop.send({ title: 'one', icon: '💰' })
  for (const title of ['two', 'three']) await shop.send({ title })
  await shop.send({ title: 'four', level: 'critical', thread: 'disk', state: 'firing' })
  const gone = await shop.send({ title: 'gone' })
  await shop.account.delete(`${shop.path}/events/${gone.id}`)
  const theirs = await stranger.send()
  await shop.account.put(`${shop.path}/read`, { seq: 2 })

  const { projects, more } = await read(shop.account)
  expect(more).toBe(0)
  expect(projects.map(({ id }: { id: string }) => id)).toEqual([
    shop.organization.project.id,
    api.organization.project.id,
  ])
  expect(projects[0]).toEqual({
    id: shop.organization.project.id,
    name: 'Test project',
    organization: { id: shop.organization.id, name: 'Test organization' },
    head: 5,
    unseen: 2,
    newest: ['four', 'three', 'two'].map(title => ({
      id: expect.stringMatching(/^evt_/),
      title,
      icon: '💰',
      channelName: 'ops',
      createdAt: expect.any(String),
      level: title === 'four' ? 'critical' : null,
    })),
    firing: 1,
    acknowledged: 0,
    questions: 0,
    isSilenced: false,
    hours: expect.any(Array),
    unusual: [],
    failed: { deliveries: 0, lastAt: null, webhooks: 0 },
    isComplete: true,
  })
  expect(projects[0].hours).toHaveLength(24)
  expect(projects[0].hours.reduce((sum: number, n: number) => sum + n)).toBe(4)
  expect(projects[1]).toMatchObject({ head: 0, unseen: 0, newest: [], firing: 0, failed: null })

  const mine = await api.send()
  const find = (id: string) => shop.account.get(`/api/events/${id}/project`)
  expect((await find(mine.id)).body.data).toEqual({ id: api.organization.project.id })
  for (const id of [theirs.id, gone.id, 'none']) expect((await find(id)).status).toBe(404)
  await shop.account.post(`${shop.path}/events/${projects[0].newest[0].id}/acknowledgement`, {})
  await shop.account.post(`${shop.path}/silences`, { minutes: 60, reason: 'Tests' })
  const answer = { expiresInSeconds: 60 }
  await shop.send({ title: 'Refund?', actions: [{ id: 'yes', label: 'Yes' }], answer })
  expect((await read(shop.account)).projects[0]).toMatchObject({
    ...{ firing: 0, acknowledged: 1, questions: 1, isSilenced: true },
  })
  await shop.send({ title: 'five', thread: 'cpu', state: 'firing' })
  expect((await shop.account.get(`${shop.path}/channels`)).body.data.alarms).toBe(2)
})

test('dashboard overview: a project that is louder or quieter than in its past weeks is unusual', async () => {
  const { account, projectId, send } = await newTenant(server)
  const hourMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  const { channelId } = await send({ channelName: 'steady' })
  const other = await send({ channelName: 'bursts' })
  const put = async (channel: string, hoursAgo: number, n: number) => {
    await server.sql`
      insert into event_counts (project_id, hour, channel_id, n)
      values (${projectId}, ${new Date(hourMs - hoursAgo * HOUR_MS)}, ${parseId('chn', channel)!}, ${n})
    `
  }
  for (const week of [1, 2, 3, 4]) {
    for (const hours of [1, 2, 3]) await put(channelId, week * 168 + hours, 200 + week)
    await put(other.channelId, week * 168 + 1, 10)
  }
  for (const hours of [1, 2, 3]) await put(channelId, hours, 201)
  await put(other.channelId, 1, 90)
  const [project] = (await read(account)).projects
  const atHour = (hoursAgo: number) => new Date(hourMs - hoursAgo * HOUR_MS).toISOString()
  // The project as a whole is as usual.
  expect(project.unusual).toEqual([
    {
      channel: { id: other.channelId, name: 'bursts', icon: null },
      kind: 'loud',
      from: atHour(1),
      to: atHour(0),
      count: 90,
      usual: { least: 10, most: 10 },
    },
  ])
  await server.sql`delete from event_counts where project_id = ${projectId} and hour > ${atHour(100)}`
  const [silent] = (await read(account)).projects
  expect(silent.unusual).toEqual([
    {
      channel: null,
      kind: 'silent',
      from: atHour(24),
      to: atHour(0),
      count: 0,
      usual: { least: 613, most: 622 },
    },
  ])
  expect(silent.hours).toEqual(new Array(24).fill(0))
})

test('dashboard overview: weeks whose events are not kept any longer show no pattern', async () => {
  const { account, path, projectId, send } = await newTenant(server)
  const { channelId } = await send()
  await server.sql`
    update projects set created_at = now() - interval '60 days' where id = ${projectId}
  `
  const putDays = async (days: number) => {
    await server.sql`
      insert into event_counts (project_id, hour, channel_id, n)
      select ${projectId}, hour_of(now()) - make_interval(hours => h.n), ${parseId('chn', channelId)!}, 20
      from generate_series(1, ${days * 24}) as h (n)
      on conflict do nothing
    `
  }
  const listKinds = async () =>
    (await read(account)).projects[0].unusual.map(({ kind }: { kind: string }) => kind)
  await putDays(3)
  expect(await listKinds()).toEqual(['loud'])
  const keep = (days: number | null) => account.patch(path, { keepDays: days })
  expect((await keep(3)).status).toBe(200)
  expect(await listKinds()).toEqual([])
  await keep(null)
  await account.patch(`${path}/channels/${channelId}`, { keepDays: 3 })
  expect(await listKinds()).toEqual([])
  await account.patch(`${path}/channels/${channelId}`, { keepDays: null })
  expect(await listKinds()).toEqual(['loud'])

  // A retention of 23 days keeps the same hours of three weeks, whose silence is found.
  await keep(23)
  await putDays(23)
  await server.sql`
    delete from event_counts
    where project_id = ${projectId} and hour >= hour_of(now()) - interval '24 hours'
  `
  expect(await listKinds()).toEqual(['silent'])
})

test('dashboard overview: an archived channel is not missed', async () => {
  const { account, path, projectId, send } = await newTenant(server)
  const busy = await send({ channelName: 'busy' })
  const { channelId } = await send({ channelName: 'nightly' })
  await server.sql`
    update event_counts set hour = hour - interval '2 days' where project_id = ${projectId}
  `
  for (const [channel, n, lastWeek] of [
    [channelId, 100, 1],
    [busy.channelId, 10_000, 0],
  ] as const) {
    await server.sql`
      insert into event_counts (project_id, hour, channel_id, n)
      select ${projectId}, hour_of(now()) - interval '3 hours' - make_interval(weeks => w), ${parseId('chn', channel)!}, ${n}
      from generate_series(${lastWeek}::int, 4) as w
    `
  }
  const list = async () =>
    (await read(account)).projects[0].unusual.map(
      ({ kind, channel }: { kind: string; channel: { name: string } }) => [kind, channel.name],
    )
  expect(await list()).toEqual([['silent', 'nightly']])
  await account.patch(`${path}/channels/${channelId}`, { isArchived: true })
  expect(await list()).toEqual([])
})

test('dashboard overview: admins see which deliveries failed in the last seven days', async () => {
  const { organization, account, projectId, send } = await newTenant(server)
  const { id: eventId } = await send()
  const webhook = await insertWebhook(server, projectId, { eventId, mark: 'x' })
  await insertDeadLetter(server, projectId, { eventId, ...webhook })
  await server.sql`
    update webhooks set disabled_at = now(), disabled_reason = 'It is gone.' where project_id = ${projectId}
  `
  const readFailed = async (who: SignedInAccount) => (await read(who)).projects[0].failed
  expect(await readFailed(account)).toEqual({
    deliveries: 1,
    lastAt: expect.any(String),
    webhooks: 1,
  })
  expect(await readFailed(await newMember(server, organization, 'member'))).toBeNull()
  await server.sql`
    update dead_letters set at = at - interval '8 days' where project_id = ${projectId}
  `
  expect(await readFailed(account)).toEqual({ deliveries: 0, lastAt: null, webhooks: 1 })
})

test('dashboard overview: an organization that cannot be read in time leaves only its projects incomplete', async () => {
  const slow = await newTenant(server)
  const fine = await newTenant(server)
  await server.sql`
    insert into memberships (organization_id, account_id, role)
    values (${slow.organization.uuid}, ${fine.account.uuid}, 'admin')
  `
  await slow.send({ title: 'slow' })
  await fine.send({ title: 'fine' })
  await server.sql.unsafe(`
    alter function newest_events(uuid, int) rename to newest_events_in_time;
    create function newest_events(project uuid, max_rows int)
    returns table (seq bigint, id uuid, title text, icon text, channel_name text, created_at timestamptz)
    language plpgsql as $$
    begin
      if project = '${slow.projectId}' then perform pg_advisory_xact_lock_shared(1); end if;
      return query select n.* from newest_events_in_time(project, max_rows) n;
    end
    $$
  `)
  const toTitles = ({
    newest,
    isComplete,
  }: {
    newest: { title: string }[]
    isComplete: boolean
  }) => [newest.map(({ title }) => title), isComplete]
  await server.sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(1)`
    const { projects } = await read(fine.account)
    expect(projects.map(toTitles)).toEqual([
      [[], false],
      [['fine'], true],
    ])
  })
  await server.sql.unsafe(`
    drop function newest_events(uuid, int);
    alter function newest_events_in_time(uuid, int) rename to newest_events;
  `)
  expect((await read(fine.account)).projects.map(toTitles)).toEqual([
    [['slow'], true],
    [['fine'], true],
  ])
})

test('dashboard overview: an organization that requires a second factor is left out without one', async () => {
  const { organization, account } = await newTenant(server)
  await server.sql`
    update organizations set requires_second_factor = true where id = ${organization.uuid}
  `
  expect(await read(account)).toEqual({ projects: [], more: 0 })
})
