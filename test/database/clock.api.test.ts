import { beforeAll, expect, test } from 'bun:test'
import { checkDatabase } from '../../src/cli/doctor/database.ts'
import { createClockCheck, moveWaits } from '../../src/database/clock.ts'
import { createPool } from '../../src/database/pool.ts'
import { listStaleSegments } from '../../src/log/events/search-index.ts'
import { purgeDeleted } from '../../src/log/events/retention.ts'
import { sweep, SWEEPS } from '../../src/server/sweeps.ts'
import {
  prepareClockedDatabases,
  type ClockedDatabase,
} from '../support/worlds/clocked-database.ts'
import { newFullTenant } from '../support/worlds/full-tenant.ts'
import { boot } from '../support/servers/server.ts'
import { newSession } from '../support/worlds/signed-in-account.ts'
import { createRequests } from '../support/worlds/project.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { until } from '../support/until.ts'

let createDatabase: () => Promise<ClockedDatabase>
beforeAll(async () => {
  createDatabase = await prepareClockedDatabases()
})

/** Opens a pool, and a check of its clock that sees what happens from now on. */
async function startChecks({ url }: Pick<ClockedDatabase, 'url'>) {
  const pool = createPool(url, { name: 'test clock', max: 1, settings: { lock_timeout: 100 } })
  const isUntrusted = createClockCheck(pool)
  await isUntrusted()
  const { signal } = new AbortController()
  return {
    isUntrusted,
    moveWaits: () => moveWaits(pool, signal),
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

test.concurrent('clock: deletions and erasures that began while the clock was ahead end after it was set back', async () => {
  await using database = await createDatabase()
  const { sql, url: databaseUrl } = database
  await using server = await boot({ databaseUrl }, { kinds: [] })
  const tenant = await newTenant(server)
  const { account, path, projectId, send } = tenant
  await database.moveClock('5 days')

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

test.concurrent('clock: nothing is deleted for a day after a jump, unless an operator confirms the clock', async () => {
  await using database = await createDatabase()
  const { sql, moveClock } = database
  await using first = await startChecks(database)
  // Without a server, a time that passes is none.
  await using running = await startChecks(database)
  await moveClock('59 minutes')
  expect(await running.isUntrusted()).toBe(false)
  await moveClock('20 hours')
  const started = await startChecks(database)
  expect(await started.isUntrusted()).toBe(false)
  // A process that ran through the jump notices it, although another one has recorded the time.
  expect(await first.isUntrusted()).toBe(true)
  expect(await started.isUntrusted()).toBe(true)
  await moveClock('23 hours')
  expect(await started.isUntrusted()).toBe(true)
  await checkDatabase(sql, { kind: 'external', port: 0, trustsClock: true })
  expect(await started.isUntrusted()).toBe(false)
  await moveClock('61 minutes')
  expect(await started.isUntrusted()).toBe(true)
  await moveClock('-61 minutes')
  expect(await started.isUntrusted()).toBe(false)
  // A start takes only a long time for a jump.
  await moveClock('31 days')
  await using later = await startChecks(database)
  expect(await later.isUntrusted()).toBe(true)
  await started[Symbol.asyncDispose]()
})

test.concurrent('clock: waits are moved once for each jump, forward and back, whatever interrupts it', async () => {
  await using database = await createDatabase()
  const { sql, url: databaseUrl, moveClock } = database
  const { projectId } = await (async () => {
    await using server = await boot({ databaseUrl }, { kinds: [] })
    return await newTenant(server)
  })()
  const enqueue = (count: number, requestedAt: string) => sql`
    insert into outbox (project_id, event_id, kind, target_id, requested_at)
    select ${projectId}, gen_random_uuid(), 'push', gen_random_uuid(), now() + ${requestedAt}::interval
    from generate_series(1, ${count}::int)
  `
  await using one = await startChecks(database)
  await using other = await startChecks(database)
  const checkTwice = () =>
    Promise.allSettled(
      [one, other].map(async ({ isUntrusted, moveWaits: move }) => {
        await isUntrusted()
        await move()
      }),
    )
  const untilMoved = () =>
    until(async () => {
      await checkTwice()
      return (await sql`select from wait_extensions`).length === 0
    })
  await enqueue(15_000, '-1 day')
  await sql`
    insert into webhooks (project_id, id, name, host, preset, has_all_channels, deleted_at, failing_since)
    values (${projectId}, gen_random_uuid(), 'failing', '127.0.0.1', 'standard', true, now(), now() - interval '1 day')
  `
  const [before] = await sql<[{ at: Date }]>`select min(requested_at) as at from outbox`
  const [{ id }] = await sql<[{ id: string }]>`select id from outbox order by id desc limit 1`
  /** Counts deliveries by the hours of their waits, and reads those of the failing webhook. */
  const readWaits = async () => [
    ...(await sql`
      select round(extract(epoch from now() - requested_at) / 3600)::int as hours, count(*)::int as n
      from outbox
      group by 1
      union all
      select round(extract(epoch from now() - failing_since) / 3600)::int, 0 from webhooks
      order by 1, 2
    `),
  ]

  await sql.begin(async holder => {
    // Its lock ends each try before the last batch.
    await holder`select from outbox where id = ${id} for update`
    await moveClock('2 hours')
    await checkTwice()
    await enqueue(1, '0')
    const [first] = await sql`
      select
        checked_at > now() - interval '1 hour' as is_checked, checked_now() < now() - interval '1 hour' as is_still
      from clock
    `
    expect(first).toEqual({ is_checked: true, is_still: true })
    await moveClock('3 hours')
    await checkTwice()
    await moveClock('2 minutes')
    expect(await one.isUntrusted()).toBe(true)
  })
  await untilMoved()
  const [{ hours }] = await sql<[{ hours: number }]>`
    select round(extract(epoch from min(requested_at) - ${before.at}) / 3600)::int as hours from outbox
  `
  expect(hours).toBe(5)
  const day = [
    { hours: 0, n: 1 },
    { hours: 24, n: 0 },
    { hours: 24, n: 15_000 },
  ]
  expect(await readWaits()).toEqual(day)
  const [last] = await sql`select checked_now() > now() - interval '1 hour' as is_on_time`
  expect(last).toEqual({ is_on_time: true })

  await sql`update outbox set available_at = now() + interval '10 minutes' where id <= ${id}`
  await moveClock('-30 hours')
  await untilMoved()
  expect(await readWaits()).toEqual(day)
  // The jump is measured from the last check, which was before that update.
  const due = await sql`select from outbox where available_at > now() + interval '20 minutes'`
  expect(due).toHaveLength(0)
})
