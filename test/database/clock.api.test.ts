import { beforeAll, expect, test } from 'bun:test'
import { checkQueue } from '../../src/cli/doctor/database.ts'
import { isClockUntrusted } from '../../src/database/clock.ts'
import { createPool } from '../../src/database/pool.ts'
import type { Sql } from '../../src/database/sql.ts'
import { listStaleSegments } from '../../src/log/events/search-index.ts'
import { purgeDeleted } from '../../src/log/events/retention.ts'
import { sweep, SWEEPS } from '../../src/server/sweeps.ts'
import { parseId } from '../../src/base/ids.ts'
import { sweepWebhooks } from '../../src/delivery/webhooks/dispatch.ts'
import {
  prepareClockedDatabases,
  type ClockedDatabase,
} from '../support/worlds/clocked-database.ts'
import { newFullTenant } from '../support/worlds/full-tenant.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { startReceiver } from '../support/servers/receiver.ts'
import { boot } from '../support/servers/server.ts'
import { newSession } from '../support/worlds/signed-in-account.ts'
import { createRequests } from '../support/worlds/project.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { until } from '../support/until.ts'
import { openSql } from '../support/sql.ts'

interface StoredTime {
  place: string
  written_by: string
  is_extended: boolean
  when_back: 'bounded' | 'moved' | 'other' | null
  latest: string | null
  reason: string
}

let createDatabase: () => Promise<ClockedDatabase>
beforeAll(async () => {
  createDatabase = await prepareClockedDatabases()
})

test('clock: every column with a time is on the list of stored_times once, and no other', async () => {
  const sql = openSql(await cloneDatabase())
  const columns = await sql<{ place: string }[]>`
    select c.relname || '.' || a.attname as place
    from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      join pg_type t on t.oid = a.atttypid
      left join pg_type e on e.oid = t.typelem
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
      -- Dates, times, intervals, and arrays and ranges of them.
      and (t.typcategory in ('D', 'T') or e.typcategory in ('D', 'T') or t.typname ~ '^(ts|date).*range')
  `
  const times = await sql<StoredTime[]>`select * from stored_times()`
  await sql.end()
  const places = (rows: readonly { place: string }[]) => rows.map(({ place }) => place).toSorted()
  expect(places(times)).toEqual(places(columns))
  for (const { reason, when_back, latest } of times) {
    expect(reason).toMatch(/^[A-Z].*\.$/)
    expect(latest !== null).toBe(when_back === 'bounded' || when_back === 'moved')
  }
})

/** Checks the clock, as every server does within seconds. */
async function check({ url }: Pick<ClockedDatabase, 'url'>): Promise<{ isUntrusted: boolean }> {
  const pool = createPool(url, { name: 'test clock', max: 1 })
  try {
    return { isUntrusted: await isClockUntrusted(pool) }
  } finally {
    await pool.end()
  }
}

/** Lists the times that a jump back corrects, with the number of rows that are too late. */
async function listLate(sql: Sql): Promise<{ place: string; rows: number }[]> {
  const times = await sql<StoredTime[]>`
    select * from stored_times() where when_back in ('bounded', 'moved') order by place
  `
  const late = []
  for (const { place, latest } of times) {
    const [table = '', column = ''] = place.split('.')
    const [row] = await sql<[{ n: number }]>`
      select count(*)::int as n from ${sql(table)}
      where ${sql(column)} > now() + greatest(${latest}::interval, interval '0')
    `
    late.push({ place, rows: row.n })
  }
  return late
}

/** Moves all times that a jump back corrects ahead by 10 days. */
async function moveAhead(sql: Sql): Promise<void> {
  const times = await sql<StoredTime[]>`
    select * from stored_times() where when_back in ('bounded', 'moved')
  `
  for (const { place, latest } of times) {
    const [table = '', column = ''] = place.split('.')
    await sql`
      update ${sql(table)} set
        ${sql(column)} = now() + greatest(${latest}::interval, interval '0') + interval '10 days'
      where ${sql(column)} is not null
    `
  }
}

/** Inserts a row into each table that a full tenant leaves empty. */
async function fillOthers(
  sql: Sql,
  { projectId, accountId, channelId }: { projectId: string; accountId: string; channelId: string },
): Promise<void> {
  await sql`insert into sign_in_failures (account, lane, failures, last_at) values (sha256('a'), sha256('b'), 9, now())`
  await sql`insert into known_devices (hash, account_id) values (sha256('a'), ${accountId})`
  await sql`insert into setup_links (hash, expires_at) values (sha256('a'), now())`
  await sql`insert into sign_in_steps (hash, account_id, is_installed, expires_at) values (sha256('a'), ${accountId}, false, now())`
  await sql`insert into stale_segments (project_id, segment, first_at, last_at) values (${projectId}, 0, now(), now())`
  // The server continues an erasure that is 10 s old.
  await sql`
    insert into erasures (project_id, user_id, touched_at)
    values (${projectId}, 'somebody', now() + interval '1 day')
  `
  await sql`
    insert into push_bursts (project_id, channel_id, account_id, recent, burst_at, collapsed_at, summary_at)
    values (${projectId}, ${channelId}, ${accountId}, array[now()], now(), now(), now())
  `
  await sql`
    insert into outbox (project_id, event_id, kind, target_id, claimed_at)
    values (${projectId}, gen_random_uuid(), 'push', gen_random_uuid(), now())
  `
  await sql`
    insert into delivery_targets (kind, id, paused_until, single_until, resumed_at)
    values ('push', gen_random_uuid(), now(), now(), now())
  `
  await sql`
    insert into exports (project_id, month, name, events, first_seq, last_seq)
    values (${projectId}, '2020-01-01', 'a file', 1, 1, 1)
  `
  await sql`
    update webhooks set
      disabled_at = now(), disabled_reason = 'It failed', failing_since = now(),
      tested_at = now(), previous_secret = secret, previous_until = now()
  `
  await sql`
    insert into webhooks (project_id, id, name, host, preset, has_all_channels, deleted_at)
    values (${projectId}, gen_random_uuid(), 'deleted', '127.0.0.1', 'standard', true, now())
  `
  await sql`update push_subscriptions set tested_at = now()`
  await sql`update api_keys set last_used_at = now()`
  await sql`update management_tokens set last_used_at = now()`
  await sql`update events set deleted_at = now() + interval '1 day'`
}

test.concurrent('clock: after a jump back, no time of the list is later than it can be', async () => {
  await using server = await boot({}, { kinds: [] })
  const { sql } = server
  const { params, members } = await newFullTenant(server)
  const projectId = parseId('prj', params['projectId'] ?? '') ?? ''
  await (await newTenant(server)).send({}, { 'idempotency-key': 'a key' })
  await fillOthers(sql, {
    projectId,
    accountId: members.owner.uuid,
    channelId: parseId('chn', params['channelId'] ?? '') ?? '',
  })
  const [token] = await sql<[{ expires_at: Date }]>`select expires_at from management_tokens`

  // One transaction, so that a check of the server finds all of it.
  await sql.begin(async tx => {
    await tx`insert into wait_extensions (number, jump, until) values (1, '1 day', now())`
    await moveAhead(tx as unknown as Sql)
    await tx`update push_bursts set recent = array[now() + interval '10 days']`
    expect((await listLate(tx as unknown as Sql)).filter(({ rows }) => rows === 0)).toEqual([])
    await tx`update clock set checked_at = now() + interval '10 days'`
  })
  expect(await check({ url: server.databaseUrl })).toEqual({ isUntrusted: false })
  expect((await listLate(sql)).filter(({ rows }) => rows > 0)).toEqual([])
  expect(await sql`select from push_bursts where recent <> '{}'`).toHaveLength(0)
  const [moved] = await sql<[{ days: number }]>`
    select round(extract(epoch from ${token.expires_at} - expires_at) / 86400)::int as days
    from management_tokens
  `
  expect(moved.days).toBe(10)
})

test.concurrent('clock: deletions and erasures that began while the clock was ahead end after it was set back', async () => {
  await using database = await createDatabase()
  const { sql, url: databaseUrl } = database
  await using server = await boot({ databaseUrl }, { kinds: [] })
  const tenant = await newTenant(server)
  const { account, path, projectId, send } = tenant
  await check(database)
  await database.moveClock('5 days')
  expect(await check(database)).toEqual({ isUntrusted: true })

  const once = { 'idempotency-key': 'an order' }
  const first = await send({}, once)
  const deleted = await send()
  expect((await account.delete(`${path}/events/${deleted.id}`)).status).toBe(200)
  await sql`insert into stale_segments (project_id, segment, first_at, last_at) values (${projectId}, 0, now(), now())`
  // Another process began to erase a user, and has ended.
  await tenant.identify('ada')
  await sql`select begin_erasure(${projectId}, 'ada', null)`

  await database.moveClock('-5 days')
  const session = await newSession(server, account)
  expect((await session.post(`${path}/events/${deleted.id}/restore`)).status).toBe(404)
  const pool = createPool(databaseUrl, { name: 'test clock', max: 1 })
  await purgeDeleted(pool)
  await pool.end()
  expect(await sql`select from events where seq = ${deleted.seq}`).toHaveLength(0)
  await until(async () => (await sql`select from erasures`).length === 0)
  await database.moveClock('11 minutes')
  expect(await listStaleSegments(sql)).toMatchObject([{ projectId, segment: '0' }])
  expect(await send({}, once)).toEqual(first)
  await sql`select delete_expired_keys(100)`
  await database.moveClock('24 hours')
  expect((await send({}, once)).seq).toBeGreaterThan(first.seq)
})

test.concurrent('clock: after it was set back by 10 days, what lasts too long is over, and nothing waits', async () => {
  await using database = await createDatabase()
  const { sql, url: databaseUrl } = database
  await database.moveClock('10 days')
  await using server = await boot({ databaseUrl }, { kinds: [] })
  const { organization, members, params, key } = await newFullTenant(server)
  await sql`update webhooks set tested_at = now(), previous_secret = secret, previous_until = now() + interval '7 days'`
  await sql`
    insert into webhooks (project_id, id, name, host, preset, has_all_channels, deleted_at)
    values (${organization.project.uuid}, gen_random_uuid(), 'deleted', '127.0.0.1', 'standard', true, now())
  `
  await database.moveClock('-10 days')

  expect((await members.owner.get('/api/me')).status).toBe(401)
  const owner = await newSession(server, members.owner)
  const path = `/api/projects/${params['projectId']}`
  const webhook = await owner.get(`${path}/webhooks/${params['webhookId']}`)
  expect(webhook.body.data.previousSecretUntil).toBeNull()
  expect((await owner.post(`${path}/webhooks/${params['webhookId']}/test`)).status).not.toBe(429)
  // The member has joined before any new event.
  await createRequests(server.url, key).post('/v1/events', { channelName: 'New', title: 'New' })
  const { body } = await owner.get(`${path}/channels`)
  expect(body.data.items).toContainEqual(expect.objectContaining({ name: 'New', unread: 1 }))
  const pool = createPool(databaseUrl, { name: 'test clock', max: 1 })
  for (const one of SWEEPS) await sweep(pool, one)
  await pool.end()
  for (const [table, left] of [
    ['invites', 0],
    ['reset_links', 0],
    ['sessions', 1],
    ['webhooks', 1],
  ] as const)
    expect((await sql`select from ${sql(table)}`).length, table).toBe(left)
})

test.concurrent('clock: a step back of 25 seconds suspends no deletion', async () => {
  await using database = await createDatabase()
  const { sql, url: databaseUrl } = database
  await using server = await boot({ databaseUrl }, { kinds: [] })
  await newTenant(server)
  await check(database)
  await database.moveClock('-25 seconds')
  expect(await check(database)).toEqual({ isUntrusted: false })
  const [clock] = await sql<[{ untrusted_until: Date | null }]>`select untrusted_until from clock`
  expect(clock.untrusted_until).toBeNull()
})

test.concurrent('clock: a jump forward cancels nothing that waits for a disabled webhook', async () => {
  await using database = await createDatabase()
  await using receiver = await startReceiver()
  const { sql, url: databaseUrl } = database
  const egress = { databaseUrl, egressAllowCidrs: ['127.0.0.0/8'] }
  const tenant = await (async () => {
    await using server = await boot(egress)
    const made = await newTenant(server)
    receiver.script('/hook', { status: 500 })
    const { body } = await made.account.post(`${made.path}/webhooks`, {
      name: 'A webhook',
      url: `${receiver.url}/hook`,
    })
    await made.send()
    await receiver.until(1, '/hook')
    await until(async () => (await sql`select from outbox where attempts = 1`).length === 1)
    const { status } = await made.account.post(`${made.path}/webhooks/${body.data.id}/disable`)
    expect(status).toBe(200)
    await check(database)
    return { ...made, webhookId: body.data.id as string }
  })()

  await database.moveClock('31 days')
  await check(database)
  await using server = await boot(egress)
  await sweepWebhooks(sql, false)
  expect(await sql`select from delivery_targets where paused_until = 'infinity'`).toHaveLength(1)
  const session = await newSession(server, tenant.account)
  const enabled = await session.post(`${tenant.path}/webhooks/${tenant.webhookId}/enable`)
  expect(enabled.status).toBe(200)
  await receiver.until(2, '/hook')
})

test.concurrent('clock: the waits of many deliveries are extended once for each jump, whatever interrupts it', async () => {
  await using database = await createDatabase()
  const { sql, url: databaseUrl } = database
  const { projectId } = await (async () => {
    await using server = await boot({ databaseUrl }, { kinds: [] })
    return await newTenant(server)
  })()
  const enqueue = (count: number, requestedAt: string) => sql`
    insert into outbox (project_id, event_id, kind, target_id, requested_at)
    select ${projectId}, gen_random_uuid(), 'push', gen_random_uuid(), now() + ${requestedAt}::interval
    from generate_series(1, ${count}::int)
  `
  const pools = ['one', 'other'].map(name =>
    createPool(databaseUrl, { name, max: 1, settings: { lock_timeout: 100 } }),
  )
  const checkTwice = () => Promise.allSettled(pools.map(isClockUntrusted))
  await enqueue(15_000, '-1 day')
  const [before] = await sql<[{ at: Date }]>`select min(requested_at) as at from outbox`
  await check(database)
  const [{ id }] = await sql<[{ id: string }]>`select id from outbox order by id desc limit 1`

  await sql.begin(async holder => {
    // Its lock ends each try before the last batch.
    await holder`select from outbox where id = ${id} for update`
    await database.moveClock('2 hours')
    await checkTwice()
    await enqueue(1, '0')
    const [first] = await sql`
      select
        checked_at > now() - interval '1 hour' as is_checked, untrusted_until > now() as is_untrusted,
        checked_now() < now() - interval '1 hour' as is_still
      from clock
    `
    expect(first).toEqual({ is_checked: true, is_untrusted: true, is_still: true })
    await database.moveClock('3 hours')
    await checkTwice()
    await database.moveClock('2 minutes')
    expect(await check(database)).toEqual({ isUntrusted: true })
  })
  await until(async () => {
    await checkTwice()
    return (await sql`select from wait_extensions`).length === 0
  })
  await Promise.all(pools.map(pool => pool.end()))

  const waits = await sql`
    select
      round(extract(epoch from requested_at - ${before.at}) / 3600)::int as hours, count(*)::int as deliveries
    from outbox
    group by 1
    order by 1
  `
  expect([...waits]).toEqual([
    { hours: 5, deliveries: 15_000 },
    { hours: 29, deliveries: 1 },
  ])
  const [last] = await sql`select checked_now() > now() - interval '1 hour' as is_on_time`
  expect(last).toEqual({ is_on_time: true })
})

test('clock: the doctor counts no dead letter of the future as one of the last day', async () => {
  await using server = await boot({}, { kinds: [] })
  const { sql } = server
  await newFullTenant(server)
  const find = async () => (await checkQueue(sql)).map(({ check: name }) => name)
  expect(await find()).toContain('dead letters')
  await sql`update dead_letters set at = now() + interval '1 year'`
  expect(await find()).not.toContain('dead letters')
})
