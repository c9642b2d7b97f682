import { afterAll, beforeAll, expect, test } from 'bun:test'
import { reap } from '../../../src/access/organizations/deletion.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { ensureFirstKey } from '../../../src/server/bootstrap.ts'
import type { Tx } from '../../../src/database/sql.ts'
import { parseId } from '../../../src/base/ids.ts'
import { createKey } from '../../support/worlds/keys.ts'
import {
  newOrganization,
  newSignedInAccount,
  newTeam,
  type TestOrganization,
} from '../../support/worlds/signed-in-account.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { boot, withServer } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'

const server = withServer({}, { kinds: [] })
let pool: Pool
beforeAll(() => void (pool = createPool(server.databaseUrl, { name: 'test reaper', max: 2 })))
afterAll(() => pool.end())

/** Returns the tables whose rows belong to projects. */
async function listTables(): Promise<string[]> {
  const rows = await server.sql<{ name: string }[]>`
    select c.table_name as name
    from information_schema.columns c
      join information_schema.tables t using (table_schema, table_name)
    where c.table_schema = current_schema() and c.column_name = 'project_id'
      and t.table_type = 'BASE TABLE' and c.table_name <> 'audit_log'
    order by 1
  `
  return rows.map(({ name }) => name)
}

/** Returns row counts and checksums of a project, per table. */
async function inspect({ project }: TestOrganization) {
  const rows: Record<string, number> = {}
  let checksum = ''
  for (const table of await listTables()) {
    const [found] = await server.sql<[{ n: number; sum: string | null }]>`
      select count(*)::int as n, md5(string_agg(t::text, ',' order by t::text)) as sum
      from ${server.sql(table)} t
      where project_id = ${project.uuid}
    `
    rows[table] = found.n
    checksum += found.sum
  }
  return { rows, checksum }
}

/** Returns a project with events, users, keys and stored answers. */
async function newTenant() {
  const [organization, owner] = await newTeam(server, 'owner')
  const { token, id } = await createKey(server.sql, {
    projectId: organization.project.uuid,
    name: 'k',
    limit: 1_000_000,
  })
  const { post } = createRequests(server.url, token)
  for (let n = 0; n < 20; n++) {
    const event = { channelName: `c${n % 3}`, title: 't', userId: 'ada', tags: ['x'] }
    await post('/v1/events', event, n % 2 ? { 'idempotency-key': `k${n}` } : {})
  }
  await post('/v1/identify', { user_id: 'ada', aliases: ['a', 'b'] })
  const keyId = parseId('key', id) ?? ''
  await server.sql`
    insert into key_usage (key_id, hour, requests) values (${keyId}, date_trunc('hour', now()), 1)
    -- The server may have stored the usage of the requests above already.
    on conflict do nothing
  `
  // The server indexes the users meanwhile, which changes the number of rows.
  await until(async () => (await inspect(organization)).rows['unindexed_users'] === 0)
  return { organization, owner, keyId }
}

test('contract §11 rows of a deleted project are removed, and those of other projects stay', async () => {
  const gone = await newTenant()
  const neighbour = await newTenant()
  const sibling = (
    await gone.owner.post(`/api/organizations/${gone.organization.id}/projects`, {
      name: 'Sibling',
    })
  ).body.data
  const before = await inspect(neighbour.organization)
  for (const table of ['events', 'channels', 'aliases', 'identities', 'idempotency_keys']) {
    expect([table, (await inspect(gone.organization)).rows[table] ?? 0]).not.toEqual([table, 0])
  }
  await gone.owner.delete(`/api/projects/${gone.organization.project.id}`)
  await reap(pool)
  const { rows } = await inspect(gone.organization)
  expect(Object.values(rows).filter(n => n > 0)).toEqual([])
  const left = await server.sql`
    select from rate_windows where key_id = ${gone.keyId}
    union all
    select from key_usage where key_id = ${gone.keyId}
    union all
    select from projects where id = ${gone.organization.project.uuid}
  `
  expect(left).toHaveLength(0)
  expect(await inspect(neighbour.organization)).toEqual(before)
  expect((await gone.owner.get(`/api/projects/${sibling.id}`)).status).toBe(200)
})

test('contract §11 a deleted organization is removed after all its projects, and its audit log stays', async () => {
  const { organization, owner } = await newTenant()
  await owner.post(`/api/organizations/${organization.id}/projects`, { name: 'Second' })
  await owner.delete(`/api/organizations/${organization.id}`)
  await reap(pool)
  expect(await server.sql`select from organizations where id = ${organization.uuid}`).toHaveLength(
    0,
  )
  expect(
    await server.sql`select from audit_log where organization_id = ${organization.uuid}`,
  ).toHaveLength(3)
})

test('contract §11 every table that belongs to projects is cleared', async () => {
  const [row] = await server.sql`select to_json(list_project_tables()) as tables`
  expect(row?.['tables']).toEqual(expect.arrayContaining(await listTables()))
})

test('contract §11 rows are removed in batches by one process at a time, and another one can continue', async () => {
  const { organization, owner } = await newTenant()
  await owner.delete(`/api/projects/${organization.project.id}`)
  const { rows } = await inspect(organization)
  const total = Object.values(rows).reduce((sum, n) => sum + n)
  const [step] = await server.sql`select reap(7) as found`
  expect(step?.['found']).toBe(true)
  const after = Object.values((await inspect(organization)).rows).reduce((sum, n) => sum + n)
  expect(total - after).toBe(7)
  await server.sql.begin(async tx => {
    expect((await tx`select reap(7) as found`)[0]?.['found']).toBe(true)
    const [other] = await pool.run(sql => sql`select reap(7) as found`)
    expect(other?.['found']).toBe(false)
  })
  const stopped = new AbortController()
  stopped.abort()
  await reap(pool, stopped.signal)
  expect((await inspect(organization)).rows['events']).toBe(rows['events']! - 14)
  await Promise.all([reap(pool), reap(pool)])
  await reap(pool)
  expect(await server.sql`select from projects where id = ${organization.project.uuid}`).toEqual(
    expect.objectContaining({ length: 0 }),
  )
})

test('contract §11 rows that another transaction changes are removed once it has ended', async () => {
  const { organization, owner } = await newTenant()
  const { id, uuid } = organization.project
  await owner.delete(`/api/projects/${id}`)
  // No foreign key keeps the project for the sake of this row.
  await server.sql`
    insert into webhook_attempts (
      project_id, id, webhook_id, kind, number, outcome, error, reason, latency_ms, started_at, host, preset, body_hash
    )
    values (
      ${uuid}, gen_random_uuid(), gen_random_uuid(), 'webhook.test', 1, 'failed', 'dns', '', 1, now(), '', '',
      sha256('')
    )
  `
  for (const table of ['webhook_attempts', 'events', 'idempotency_keys']) {
    await server.sql.begin(async tx => {
      await tx`update ${tx(table)} set project_id = project_id where project_id = ${uuid}`
      // It waits for no row, and leaves the project.
      await reap(pool)
      expect(await tx`select from projects where id = ${uuid}`).toHaveLength(1)
      expect((await inspect(organization)).rows[table]).toBeGreaterThan(0)
    })
  }
  await reap(pool)
  expect(Object.values((await inspect(organization)).rows).filter(n => n > 0)).toEqual([])
  expect(await server.sql`select from projects where id = ${uuid}`).toHaveLength(0)
})

test('contract §11 a project that another transaction changes holds up no other one', async () => {
  const held = await newTenant()
  const free = await newTenant()
  for (const { owner, organization } of [held, free]) {
    await owner.delete(`/api/organizations/${organization.id}`)
  }
  const listLeft = async () => {
    const rows = await server.sql<{ id: string }[]>`
      select id from organizations where id in ${server.sql([held.organization.uuid, free.organization.uuid])}
    `
    return rows.map(({ id }) => id)
  }
  const { uuid } = held.organization.project
  for (const lock of [
    (tx: Tx) => tx`select from events where project_id = ${uuid} limit 1 for update`,
    // The last step waits for no project, either.
    (tx: Tx) => tx`select from projects where id = ${uuid} for key share`,
    (tx: Tx) => tx`select from organizations where id = ${held.organization.uuid} for key share`,
  ]) {
    await server.sql.begin(async tx => {
      await lock(tx)
      await reap(pool)
      expect(await listLeft()).toEqual([held.organization.uuid])
    })
  }
  await reap(pool)
  expect(await listLeft()).toEqual([])
})

test('contract §11 a project is removed beside more held projects than a step tries', async () => {
  const projects = await Promise.all(Array.from({ length: 13 }, () => newOrganization(server)))
  const ids = projects.map(({ project }) => project.uuid)
  const [free = '', ...held] = ids
  // The free one is the newest.
  await server.sql`
    update projects set deleted_at = now() - case when id = ${free} then interval '0 s' else interval '1 hour' end
    where id in ${server.sql(ids)}
  `
  const isLeft = async () =>
    (await server.sql`select from projects where id = ${free}`).length === 1
  await server.sql.begin(async tx => {
    await tx`select from projects where id in ${tx(held)} for key share`
    await until(async () => {
      await reap(pool)
      return !(await isLeft())
    })
    expect(await tx`select from projects where id in ${tx(held)}`).toHaveLength(held.length)
  })
  // The reaper of the server may be at work, and then a call does nothing.
  await until(async () => {
    await reap(pool)
    return (await server.sql`select from projects where id in ${server.sql(ids)}`).count === 0
  })
})

test('contract §11 a starting server continues an unfinished removal', async () => {
  const { organization, owner } = await newTenant()
  await owner.delete(`/api/organizations/${organization.id}`)
  await server.sql`select reap(3)`
  await using _ = await boot({ databaseUrl: server.databaseUrl })
  await until(async () => {
    const left = await server.sql`select from organizations where id = ${organization.uuid}`
    return left.length === 0
  })
})

test('design §5 after everything was deleted, a start creates a first project, owned by the operator', async () => {
  await using own = await boot()
  const operator = await newSignedInAccount(own, { isOperator: true })
  await own.sql`update projects set deleted_at = now()`
  await own.sql`update organizations set deleted_at = now()`
  expect(await ensureFirstKey(own.sql)).toStartWith('tdg_')
  expect(await ensureFirstKey(own.sql)).toBeUndefined()
  const { organizations } = (await operator.get('/api/me')).body.data
  expect(organizations).toMatchObject([{ role: 'owner', projects: [{ name: 'My project' }] }])
})
