import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { toArray } from '../../../src/database/arrays.ts'
import { createPool } from '../../../src/database/pool.ts'
import { readErasedFile, toErasedFile } from '../../../src/log/identities/erased-file.ts'
import { SERVER } from '../../../src/access/audit/audit.ts'
import { createEraser } from '../../../src/log/identities/erasure.ts'
import { SCOPES } from '../../../src/access/keys/schema.ts'
import { hold } from '../../support/database-lock.ts'
import { expectFailure } from '../../support/answers.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { makeFolder, SCRATCH } from '../../support/scratch.ts'
import { openSql } from '../../support/sql.ts'
import { boot, withServer } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'
import { listTraces } from '../../support/traces.ts'
import { until } from '../../support/until.ts'

// Erasures beside each other, and beside a user who comes back.

const server = withServer({}, { erasureWaitMs: 200 })

/** Identifies two users, and moves an alias of each to the other. */
async function identifyPair(mark: string): Promise<TestTenant> {
  const tenant = await newTenant(server)
  const { account, path, identify } = tenant
  const [ada, bob] = [`${mark}-ada`, `${mark}-bob`]
  await identify(ada, [`${ada}@`])
  await identify(bob, [`${bob}@`])
  await account.post(`${path}/users/${bob}/aliases`, { alias: `${ada}@`, from: ada })
  await account.post(`${path}/users/${ada}/aliases`, { alias: `${bob}@`, from: bob })
  return tenant
}

function erase({ account, path }: TestTenant, userId: string) {
  return account.delete(`${path}/users/${userId}`)
}

/** Returns the number of events. */
async function eraseToEnd(tenant: TestTenant, userId: string): Promise<number> {
  let last = await erase(tenant, userId)
  await until(async () => {
    if (last.status !== 200) last = await erase(tenant, userId)
    return last.status === 200
  })
  return last.body.data.events
}

/** Runs a step of an erasure, and commits it on release. */
function holdStep({ projectId }: TestTenant, userId: string) {
  return hold(server.sql, tx => tx`select from continue_erasure(${projectId}, ${userId}, 60000)`)
}

test('no step of an erasure waits for another erasure', async () => {
  const tenant = await identifyPair('zqb')
  const { v1, projectId } = tenant
  for (const [n, userId] of ['zqb-ada', 'zqb-bob', 'other'].entries()) {
    const body = { user_id: userId, aliases: ['zqb-ada', 'zqb-bob', 'zqb-ada@', 'zqb-bob@'] }
    await v1.post('/v1/identify', body, { 'idempotency-key': `${n}` })
  }
  for (const userId of ['zqb-ada', 'zqb-bob'])
    await server.sql`select begin_erasure(${projectId}, ${userId}, null)`
  await server.sql`update erasure_names set is_listed = true`
  {
    await using other = await holdStep(tenant, 'zqb-ada')
    await server.sql.begin(async tx => {
      await tx`set local lock_timeout = 1`
      const [row] = await tx`select is_done from continue_erasure(${projectId}, 'zqb-bob', 60000)`
      expect(row).toEqual({ is_done: false })
    })
    await other.release()
  }
  for (const userId of ['zqb-ada', 'zqb-bob'])
    await until(async () => {
      const rows = await server.sql`select from continue_erasure(${projectId}, ${userId}, 60000)`
      return rows.count === 0
    })
  expect(await listTraces(server.sql, 'zqb-')).toEqual([])
})

test('a step that begins late, as on a busy machine, does something nevertheless', async () => {
  const { identify, projectId } = await newTenant(server)
  await identify('zqf-user', ['zqf-alias@'])
  await server.sql`select begin_erasure(${projectId}, 'zqf-user', null)`
  await server.sql`update erasure_names set is_listed = true where project_id = ${projectId}`
  const readStage = async () =>
    (await server.sql`select stage, done_to from erasures where project_id = ${projectId}`)[0]
  const before = await readStage()
  const stepper = openSql(server.databaseUrl)
  {
    await using other = await hold(
      server.sql,
      tx => tx`select from erasures where project_id = ${projectId} for update`,
    )
    const step = stepper`select from continue_erasure(${projectId}, 'zqf-user', 50)`.execute()
    await other.untilBlocked()
    // The step waits for longer than it has.
    await server.sql`select pg_sleep(0.05)`
    await other.release()
    await step
  }
  await stepper.end()
  expect(await readStage()).not.toEqual(before)
})

test('contract §9 a user who comes back during an erasure is erased again, and nothing is left', async () => {
  const tenant = await newTenant(server)
  const { identify, send, v1, projectId } = tenant
  const first = await identify('zqc-user', ['zqc-first@'])
  const event = await send({ userId: 'zqc-first@' })
  let second
  await server.sql.begin(async tx => {
    await tx`select from events where project_id = ${projectId} and seq = ${event.seq} for update`
    expect((await erase(tenant, 'zqc-user')).status).toBe(202)
    // Until its history is gone, a former alias is a name of the second erasure, too.
    await until(async () => {
      const rows = await tx`
        select from erasures where project_id = ${projectId} and stage = 'events'
      `
      return rows.count === 1
    })
    second = await identify('zqc-user', ['zqc-second@'])
    await send({ userId: 'zqc-second@' }, { 'idempotency-key': 'second' })
    expect((await erase(tenant, 'zqc-user')).status).toBe(202)
    expectFailure(await v1.get('/v1/users/zqc-user'), 404, 'not_found')
    // A repeated request waits, and begins no other erasure.
    expect((await erase(tenant, 'zqc-user')).status).toBe(202)
  })
  await eraseToEnd(tenant, 'zqc-user')
  expect(await listTraces(server.sql, 'zqc-')).toEqual([])
  const entries = await server.sql<{ target: string; events: number }[]>`
    select target, (details ->> 'events')::int as events
    from audit_log
    where project_id = ${projectId} and action = 'user.erased'
    order by at
  `
  expect([...entries]).toEqual([
    { target: first.id, events: 1 },
    { target: second!.id, events: 1 },
  ])
  const erased = await server.sql`select from erased_users where project_id = ${projectId}`
  expect(erased.count).toBe(2)
  const listed = new Map<string, number>()
  for await (const name of readErasedFile(toErasedFile(SCRATCH)))
    if (name.projectId === projectId)
      listed.set(name.erasedUserId, (listed.get(name.erasedUserId) ?? 0) + 1)
  expect([...listed.values()]).toEqual([2, 2])
})

test('contract §9 an erasure that a process has taken over is found before its turn', async () => {
  await using own = await boot()
  const tenant = await newTenant(own)
  const { identify, send, projectId } = tenant
  for (const userId of ['ada', 'bob']) await identify(userId)
  const event = await send({ userId: 'ada' })
  for (const userId of ['ada', 'bob'])
    await own.sql`select begin_erasure(${projectId}, ${userId}, null)`
  // First, because the server may take them over as soon as they are old.
  await using locked = await hold(
    own.sql,
    tx => tx`select from events where project_id = ${projectId} and seq = ${event.seq} for update`,
  )
  await own.sql`update erasures set touched_at = now() - interval '1 hour' where user_id = 'ada'`
  await own.sql`update erasures set touched_at = now() - interval '1 minute' where user_id = 'bob'`
  await using other = await boot({ databaseUrl: own.databaseUrl }, { erasureWaitMs: 200 })
  // It works on one erasure of an organization at a time, so that of bob waits.
  await until(async () => {
    const rows = await own.sql`
      select from erasures where user_id = 'ada' and touched_at > now() - interval '1 minute'
    `
    return rows.count === 1
  })
  const { token } = await createKey(own.sql, { projectId, name: 'eraser', scopes: SCOPES })
  const { request } = createRequests(other.url, token)
  const eraseBob = async () => (await request('/v1/users/bob', { method: 'DELETE' })).status
  expect(await eraseBob()).toBe(202)
  await locked.release()
  await until(async () => (await eraseBob()) === 200)
})

test('contract §9 neither an erasure that has begun is refused nor a repeated request', async () => {
  await using own = await boot()
  const { organization, projectId, identify, send } = await newTenant(own)
  await identify('ada')
  const event = await send({ userId: 'ada' })
  await own.sql`
    insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
    select ${projectId}, 'user-' || n, gen_random_uuid(), 'idn_' || n, '{}', now(), now()
    from generate_series(1, 200) as n
  `
  const [key] = await own.sql<[{ id: string }]>`select id from erasure_keys`
  const pool = createPool(own.databaseUrl, { name: 'erasures', max: 2 })
  const eraser = createEraser({
    ...{ pool, waitMs: 0, file: toErasedFile(makeFolder()) },
    key: { ...key, hash: (_, name) => createHash('sha256').update(name).digest('hex') },
  })
  const erase = (userId: string) =>
    eraser.erase({ organizationId: organization.uuid, projectId, userId }, SERVER)
  {
    // It holds the only turn of the organization.
    await using _ = await hold(
      own.sql,
      tx =>
        tx`select from events where project_id = ${projectId} and seq = ${event.seq} for update`,
    )
    expect((await erase('ada')).isDone).toBe(false)
    const users = Array.from({ length: 200 }, (_, n) => `user-${n + 1}`)
    const erased = await Promise.all([...users, ...Array<string>(250).fill('ada')].map(erase))
    expect(erased.filter(({ isDone }) => isDone)).toEqual([])
    await expect(erase('another')).rejects.toMatchObject({ code: 'unavailable' })
    await eraser.stop()
  }
  await pool.end()
})

test('contract §9 an erasure leaves the stored responses of a user who came back', async () => {
  const tenant = await newTenant(server)
  const { v1, identify, send, projectId } = tenant
  const keyed = (key: string) => ({ 'idempotency-key': key })
  await identify('ada', ['@ada'])
  await send({ userId: '@ada' }, keyed('before'))
  await server.sql`select begin_erasure(${projectId}, 'ada', null)`
  const requests = [
    ['/v1/identify', { user_id: 'ada', aliases: ['@ada'], properties: { city: 'London' } }],
    ['/v1/events', { channelName: 'c', title: 't', userId: '@ada' }],
  ] as const
  const responses: string[] = []
  for (const [path, body] of requests) responses.push((await v1.post(path, body, keyed(path))).text)
  await server.sql`update erasures set touched_at = now() - interval '1 hour'`
  await until(async () => (await server.sql`select from erasures`).count === 0)
  const replays: string[] = []
  for (const [path, body] of requests) replays.push((await v1.post(path, body, keyed(path))).text)
  expect(replays).toEqual(responses)
  const [row] = await server.sql`
    select user_id from idempotency_keys where project_id = ${projectId} and key = 'before'
  `
  expect(row).toEqual({ user_id: null })
})

test('contract §9 a step of an erasure changes a bounded number of stored responses', async () => {
  const { projectId, identify } = await newTenant(server)
  await identify('zqr', ['zqr@'])
  const { sql } = server
  await sql`
    insert into idempotency_keys (project_id, key, fingerprint, status, user_id, other_names, seq, body, expires_at)
    select
      ${projectId}, kind || n, '\\x01', case kind when 'own' then 201 else 200 end,
      case kind when 'own' then 'zqr' else 'other' end, case kind when 'own' then null else '{zqr@}'::text[] end,
      case kind when 'own' then 0 end,
      '{"data":{"id":"i","userId":"other","properties":{},"aliases":{"created":["zqr@"]},"updatedAt":"t"},"requestId":"r"}',
      now() + interval '1 hour'
    from unnest('{own,their}'::text[]) as kind
      cross join generate_series(1, 45) as n
  `
  const names = ['zqr', 'zqr@']
  for (const expected of [20, 20, 5, null]) {
    const [row] = await sql`
      select erase_responses_of_user(${projectId}, ${toArray(names)}::text[], 0, 20) as erased
    `
    expect(row!['erased']).toBe(expected)
  }

  await sql`select begin_erasure(${projectId}, 'zqr', null)`
  const [erasure] = await sql<{ id: string }[]>`
    select distinct erasure_id as id from erasure_names where project_id = ${projectId}
  `
  await sql`delete from erasure_names where project_id = ${projectId}`
  await sql`
    insert into erasure_names (project_id, user_id, erasure_id, name) select ${projectId}, 'zqr', ${erasure!.id}, unnest(${toArray(names)}::text[])
  `
  const left: unknown[] = []
  let doneTo: string | null = ''
  while (doneTo !== null) {
    const rows: { done_to: string | null }[] = await sql`
      select done_to from erase_responses_of_others(${projectId}, ${erasure!.id}, 'zqr', 20, ${doneTo})
    `
    doneTo = rows[0]?.done_to ?? null
    const [rest] = await sql<[{ n: number }]>`
      select count(*)::int as n from idempotency_keys where project_id = ${projectId} and other_names is not null
    `
    left.push(rest.n)
  }
  expect(left).toEqual([25, 5, 0, 0])
})

test("contract §9 an erasure leaves a name that has meanwhile become another user's alias", async () => {
  const { v1, projectId, identify } = await newTenant(server)
  await identify('zqs-ada', ['zqs@'])
  const sent = [
    '/v1/identify',
    { user_id: 'bob', aliases: ['zqs@'] },
    { 'idempotency-key': 'k' },
  ] as const
  const first = await v1.post(...sent)
  expect(first.body.data.aliases.failed).toHaveLength(1)
  await server.sql`select begin_erasure(${projectId}, 'zqs-ada', null)`
  await identify('bob', ['zqs@'])
  await server.sql`update erasure_names set is_listed = true where project_id = ${projectId}`
  await until(async () => {
    const rows = await server.sql`select from continue_erasure(${projectId}, 'zqs-ada', 60000)`
    return rows.count === 0
  })
  expect((await v1.post(...sent)).text).toBe(first.text)
})

test('contract §9 an erasure waits for a locked response before it goes on', async () => {
  const { v1, projectId, identify } = await newTenant(server)
  await identify('zqt-ada', ['zqt@'])
  const body = { user_id: 'other', aliases: ['zqt@'] }
  await v1.post('/v1/identify', body, { 'idempotency-key': 'k' })
  await using other = await hold(
    server.sql,
    tx => tx`select from idempotency_keys where project_id = ${projectId} for update`,
  )
  await server.sql`select begin_erasure(${projectId}, 'zqt-ada', null)`
  await server.sql`update erasure_names set is_listed = true where project_id = ${projectId}`
  for (let n = 0; n < 3; n++) {
    await server.sql`select from continue_erasure(${projectId}, 'zqt-ada', 60000)`
    const rows = await server.sql`select stage from erasures where project_id = ${projectId}`
    expect(rows.map(({ stage }) => stage)).toEqual(['other responses'])
  }
  await other.release()
})

test('the erasures of an organization wait for no others when they go on after a start', async () => {
  await using own = await boot()
  const [many, one] = [await newTenant(own), await newTenant(own)]
  await own.sql`
    insert into erasures (id, project_id, user_id, touched_at)
    select gen_random_uuid(), ${many.projectId}, 'user ' || n, now() - interval '1 hour' + n * interval '1 s'
    from generate_series(1, 150) as n
  `
  await own.sql`
    insert into erasures (id, project_id, user_id, touched_at)
    values (gen_random_uuid(), ${one.projectId}, 'ada', now() - interval '1 minute')
  `
  await using _ = await hold(
    own.sql,
    tx => tx`select from erasures where project_id = ${many.projectId} for update`,
  )
  await until(async () => {
    const left = await own.sql`select from erasures where project_id = ${one.projectId}`
    return left.count === 0
  })
})
