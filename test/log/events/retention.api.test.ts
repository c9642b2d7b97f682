import { afterAll, beforeAll, expect, test } from 'bun:test'
import { expireEvents, startRetention } from '../../../src/log/events/retention.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { ageEvents } from '../../support/worlds/ageing.ts'
import { expectExactCounts } from '../../support/counts.ts'
import { withServer } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { hold, lockLog } from '../../support/database-lock.ts'
import { until } from '../../support/until.ts'

const server = withServer()
let pool: Pool
beforeAll(() => {
  pool = createPool(server.databaseUrl, { name: 'test retention', max: 4 })
})
afterAll(() => pool.end())

test('contract §11 the retention of a channel goes before that of its project; without either events stay', async () => {
  const tenant = await newTenant(server)
  const { account, path, send, projectId, v1 } = tenant
  for (const channelName of ['short', 'long', 'project']) {
    const { channelId } = await send({ channelName, title: `${channelName} old` })
    const keepDays = { short: 1, long: 1_000 }[channelName]
    if (keepDays) await account.patch(`${path}/channels/${channelId}`, { keepDays })
  }
  await ageEvents(server.sql, projectId, { seq: 3, interval: '20 days' })
  for (const channelName of ['short', 'long', 'project']) {
    await send({ channelName, title: `${channelName} new` })
  }
  const titles = async () =>
    (await v1.get('/v1/events')).body.data.items.map(({ title }: { title: string }) => title)
  await expire()
  expect(await titles()).toEqual([
    'project new',
    'long new',
    'short new',
    'project old',
    'long old',
  ])
  await keepProject(tenant, 10)
  await expire()
  expect(await titles()).toEqual(['project new', 'long new', 'short new', 'long old'])
  await expectExactCounts(server.sql, projectId)
  // The log continues at its next seq.
  expect((await send()).seq).toBe(7)
})

test('contract §11 a retention of a day keeps events for 24 hours from acceptance', async () => {
  const tenant = await newTenant(server)
  const other = await newTenant(server)
  await other.send()
  await ageEvents(server.sql, other.projectId, { seq: 1, interval: '2 days' })
  const { send, projectId, v1 } = tenant
  // Its timestamp is old, but it was accepted now.
  await send({ timestamp: '2020-01-01T00:00:00Z' })
  await send()
  await keepProject(tenant, 1)
  await ageEvents(server.sql, projectId, { seq: 1, interval: '23 hours 59 minutes' })
  await expire()
  expect((await v1.get('/v1/events')).body.data.items).toHaveLength(2)
  await ageEvents(server.sql, projectId, { seq: 1, interval: '1 minute 1 second' })
  await expire()
  expect((await v1.get('/v1/events')).body.data.items).toMatchObject([{ seq: 2 }])
  expect(await countEvents(other.projectId)).toBe(1)
  await expectExactCounts(server.sql, projectId)
})

test('contract §11 events with a time in the future neither stop retention nor outlive the next expired event', async () => {
  const tenant = await newTenant(server)
  const { account, path, send, projectId } = tenant
  const { id } = await send()
  await fill(projectId, 2, 1_200)
  // A hidden event expires, too.
  await account.delete(`${path}/events/${id}`)
  for (let n = 0; n < 3; n++) await send()
  // The clock was ahead for more than a batch, and for one event later. Then it was set back.
  await setCreated(projectId, [1, 1_200], '400 days')
  await setCreated(projectId, [1_201, 1_201], '-2 days')
  await setCreated(projectId, [1_202, 1_202], '400 days')
  await keepProject(tenant, 1)
  await expire()
  const rows = await server.sql<{ seq: string }[]>`
    select seq from events where project_id = ${projectId} order by seq
  `
  expect(rows.map(({ seq }) => Number(seq))).toEqual([1_202, 1_203])
  await expectExactCounts(server.sql, projectId)
})

test('contract §11 concurrent retention, appends, deletions and an erasure keep exact counts without deadlock', async () => {
  const tenants = [await newTenant(server), await newTenant(server)]
  const deadlocks = await countDeadlocks()
  for (const tenant of tenants) {
    for (const channelName of ['a', 'b', 'c']) await tenant.send({ channelName, userId: 'ada' })
    await fill(tenant.projectId, 4, 3_000)
    await ageEvents(server.sql, tenant.projectId, { seq: 3, interval: '2 days' })
    await keepProject(tenant, 1)
  }
  const created = await Promise.all([
    ...tenants.map(async ({ send, account, path }) => {
      const seqs: number[] = []
      for (let n = 0; n < 30; n++) {
        const events = await Promise.all(
          ['a', 'b', 'c'].map(channelName => send({ channelName, userId: 'ada' })),
        )
        seqs.push(...events.map(({ seq }) => seq))
        if (n % 10 === 0) await account.delete(`${path}/events/${events[0].id}`)
        if (n % 10 === 0) await account.post(`${path}/events/${events[0].id}/restore`)
      }
      return seqs
    }),
    ...[1, 2].map(async () => {
      await expire()
      return []
    }),
    ...tenants.map(async ({ v1 }) => {
      await v1.request('/v1/users/ada', { method: 'DELETE' })
      return []
    }),
  ])
  // The next pass takes rows that one process left to the other.
  await expire()
  for (const [index, { projectId }] of tenants.entries()) {
    const seqs = await server.sql<{ seq: string }[]>`
      select seq from events where project_id = ${projectId} order by seq
    `
    expect(seqs.map(({ seq }) => Number(seq))).toEqual(created[index]!.sort((a, b) => a - b))
    await expectExactCounts(server.sql, projectId)
  }
  expect(await countDeadlocks()).toBe(deadlocks)
})

test('contract §11 a project that another process clears is skipped', async () => {
  const tenant = await newTenant(server)
  const { send, projectId } = tenant
  await send()
  await ageEvents(server.sql, projectId, { seq: 1, interval: '2 days' })
  await keepProject(tenant, 1)
  const other = await hold(server.sql, tx => tx`select try_lock_cleanup(${projectId})`)
  await expire()
  expect(await countEvents(projectId)).toBe(1)
  await other.release()
  await expire()
  expect(await countEvents(projectId)).toBe(0)
})

test('contract §11 retention locks the log after the deletion, and gives way to a writer that holds it', async () => {
  const tenant = await newTenant(server)
  const { send, projectId } = tenant
  await send()
  await ageEvents(server.sql, projectId, { seq: 1, interval: '2 days' })
  await keepProject(tenant, 1)
  const listFree = () => server.sql`
    select seq from events where project_id = ${projectId} for update skip locked
  `
  {
    await using writer = await lockLog(server.sql, projectId)
    const expired = expire()
    await writer.untilBlocked()
    expect(await listFree()).toHaveLength(0)
    await expired
    expect(await listFree()).toHaveLength(1)
  }
  await expire()
  expect(await countEvents(projectId)).toBe(0)
  await expectExactCounts(server.sql, projectId)
})

test('contract §11 a channel whose deletion failed is tried again within seconds', async () => {
  const tenant = await newTenant(server)
  await tenant.send()
  await ageEvents(server.sql, tenant.projectId, { seq: 1, interval: '2 days' })
  await keepProject(tenant, 1)
  await server.sql.unsafe(`
    create sequence failures;
    create function refuse_deletion() returns trigger language plpgsql as $$
    begin perform nextval('failures'); raise 'The database is busy'; end $$;
    create trigger refuse_deletion before delete on events for each row execute function refuse_deletion();
  `)
  const retention = startRetention(pool, { needsExport: false }, async () => false)
  await until(async () => (await server.sql`select from failures where is_called`).count > 0)
  await server.sql`drop trigger refuse_deletion on events`
  await until(async () => (await countEvents(tenant.projectId)) === 0)
  await retention.stop()
})

async function expire(): Promise<void> {
  const pass = { after: undefined, isMore: true, hasFailed: false }
  while (pass.isMore) {
    pass.isMore = false
    do await expireEvents(pool, pass, { needsExport: false })
    while (pass.after)
  }
}

async function keepProject({ projectId }: TestTenant, days: number): Promise<void> {
  await server.sql`update projects set keep_days = ${days} where id = ${projectId}`
}

/** Sets when events were accepted: `interval` from now. */
async function setCreated(
  projectId: string,
  [first, last]: [first: number, last: number],
  interval: string,
): Promise<void> {
  await server.sql`
    update events set created_at = now() + ${interval}::interval
    where project_id = ${projectId} and seq between ${first} and ${last}
  `
}

/** Inserts events of two days ago in all channels, with the seqs from `first` to `last`. */
async function fill(projectId: string, first: number, last: number): Promise<void> {
  await server.sql`
    insert into events (
      project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, user_ref, source, notify
    )
    select
      ${projectId}, gen_random_uuid(), (array(select id from channels where project_id = ${projectId}))[
        1 + n % (select count(*) from channels where project_id = ${projectId})
      ], n, now() - interval '2 days', now() - interval '2 days', 'old', '{}', '{}', 'ada', 'test', true
    from generate_series(${first}::bigint, ${last}::bigint) as n
  `
  await server.sql`delete from event_counts where project_id = ${projectId}`
  await server.sql`
    insert into event_counts (project_id, hour, channel_id, n)
    select project_id, hour_of(occurred_at), channel_id, count(*)
    from events
    where project_id = ${projectId} and deleted_at is null
    group by 1, 2, 3
  `
  await server.sql`update event_logs set last_seq = ${last} where project_id = ${projectId}`
}

async function countEvents(projectId: string): Promise<number> {
  const [row] = await server.sql<[{ n: number }]>`
    select count(*)::int as n from events where project_id = ${projectId}
  `
  return row.n
}

async function countDeadlocks(): Promise<string> {
  const [row] = await server.sql<[{ deadlocks: string }]>`
    select pg_stat_get_db_deadlocks(oid) as deadlocks from pg_database where datname = current_database()
  `
  return row.deadlocks
}
