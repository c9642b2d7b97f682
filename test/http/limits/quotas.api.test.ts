import { expect, test } from 'bun:test'
import type { QuotaLimits } from '../../../src/base/config.ts'
import { createProject } from '../../../src/access/organizations/projects.ts'
import { createQuotas } from '../../../src/http/limits/quotas.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { toId } from '../../../src/base/ids.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { createRequests, newProject, type TestProject } from '../../support/worlds/project.ts'
import {
  newMember,
  newOrganization,
  newSignedInAccount,
  newTeam,
} from '../../support/worlds/signed-in-account.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { openSql } from '../../support/sql.ts'
import { until } from '../../support/until.ts'
import { forFile } from '../../support/for-file.ts'

const LIMITS: QuotaLimits = {
  eventsPerMinute: 1_000_000,
  bytesPerDay: 1_000_000,
  channels: 1_000,
  webhooks: 1_000,
}
const EVENT = { channelName: 'payments', title: 'New payment' }

let databaseUrl: string
const first = forFile(async () => {
  databaseUrl = await stopClock(await cloneDatabase())
  return boot({ databaseUrl, quotas: LIMITS })
})

/**
 * Stops the clock of statements at the beginning of a minute, because usage is counted by minutes.
 * It is ahead: sessions that were verified over a minute after its time would count as unverified.
 * Returns the URL of the database with this clock.
 */
async function stopClock(url: string): Promise<string> {
  const sql = openSql(url)
  const minute = new Date(Math.floor(Date.now() / 60_000 + 5) * 60_000).toISOString()
  await sql.unsafe(`
    create schema test_clock;
    create function test_clock.now() returns timestamptz language sql stable
      as $$ select '${minute}'::timestamptz $$;
  `)
  await sql.end()
  return `${url}&options=-c%20search_path=public,test_clock,pg_catalog`
}

/** Starts another server on the same database, with other quotas. */
const bootWith = (quotas: Partial<QuotaLimits>) =>
  boot({ databaseUrl, quotas: { ...LIMITS, ...quotas } })

/** A server whose organizations may do little. */
const server = forFile(() => bootWith({ eventsPerMinute: 3, webhooks: 1 }))

function expectExceeded({ status, body }: { status: number; body: any }, what: string): void {
  expect(status).toBe(403)
  expect(body).toMatchObject({ success: false, code: 'quota_exceeded' })
  expect(body.error).toStartWith(`The organization has used its quota of ${what}.`)
}

async function readOrganization({ sql }: Booted, { id }: Pick<TestProject, 'id'>) {
  const [row] = await sql<[{ uuid: string }]>`
    select organization_id as uuid from projects where id = ${id}
  `
  return row
}

/** Adds a project to an organization. Returns its uuid, and its key. */
async function addProject({ sql }: Booted, organizationId: string) {
  const id = await sql.begin(tx => createProject(tx, { organizationId, name: 'Sibling' }))
  return { id, key: (await createKey(sql, { projectId: id, name: 'sibling' })).token }
}

/** Resolves when this process has stored all usage of the organization. */
async function untilStored(
  server: Booted,
  { id }: Pick<TestProject, 'id'>,
  events: number,
): Promise<void> {
  await until(async () => {
    const [row] = await server.sql<{ events: number }[]>`
      select u.events::int as events
      from organization_usage u
        join projects p using (organization_id)
      where p.id = ${id}
    `
    return row?.events === events
  })
}

test('performance §3 events above the quota of the minute are 403, in all projects of the organization', async () => {
  const project = await newProject(server)
  const { uuid } = await readOrganization(server, project)
  const sibling = createRequests(server.url, (await addProject(server, uuid)).key)
  const other = await newProject(server)
  for (const { post } of [project, project, sibling]) {
    expect((await post('/v1/events', EVENT)).status).toBe(201)
  }
  const beforeMs = Date.now()
  const refused = await project.post('/v1/events', EVENT)
  expectExceeded(refused, 'events a minute (3)')
  const end = /begins anew at (\S+)\.$/.exec(refused.body.error)?.[1]
  expect(Date.parse(end ?? '')).toBeWithin(beforeMs, Date.now() + 60_001)
  expectExceeded(await sibling.post('/v1/log', { channel: 'a', event: 'b' }), 'events a minute (3)')
  expect((await other.post('/v1/events', EVENT)).status).toBe(201)
  expect((await project.get('/v1/events')).body.data.items).toHaveLength(2)
})

test('performance §3 a refused request counts in the window of its key, and 429 comes first', async () => {
  const project = await newProject(server, { limit: 6 })
  for (let n = 0; n < 3; n++) expect((await project.post('/v1/events', EVENT)).status).toBe(201)
  // An invalid body is refused before the quota.
  expect((await project.post('/v1/events', { title: 'x' })).status).toBe(400)
  for (const left of ['1', '0']) {
    const refused = await project.post('/v1/events', EVENT)
    expectExceeded(refused, 'events a minute (3)')
    expect(refused.headers.get('x-ratelimit-remaining')).toBe(left)
  }
  expect((await project.post('/v1/events', EVENT)).status).toBe(429)
})

test('performance §3 the other processes learn of used quotas within seconds', async () => {
  await using one = await bootWith({ eventsPerMinute: 2 })
  await using two = await bootWith({ eventsPerMinute: 2 })
  const project = await newProject(one)
  const elsewhere = createRequests(two.url, project.key)
  expect((await project.post('/v1/events', EVENT)).status).toBe(201)
  await untilStored(one, project, 1)
  expect((await elsewhere.post('/v1/events', EVENT)).status).toBe(201)
  await untilStored(one, project, 2)
  await until(async () => (await elsewhere.post('/v1/events', EVENT)).status === 403)
})

test.each([
  ['its minute lasts', 0],
  ['its minute has ended', -60_000],
])(
  'performance §3 counts are stored once, and at a stop; a total counts while %s',
  async (_, shiftMs) => {
    const { uuid: organizationId } = await newOrganization(first)
    const pool = createPool(databaseUrl, { name: 'quotas', max: 1 })
    const run = async (work: Parameters<typeof pool.run>[0]) => {
      const totals = (await pool.run(work)) as { minuteEndsMs: number }[]
      return totals.map(total => ({ ...total, minuteEndsMs: total.minuteEndsMs + shiftMs }))
    }
    const limits = { ...LIMITS, eventsPerMinute: 3 }
    const quotas = createQuotas({ limits, pool: { run } as unknown as Pool })
    const event = { organizationId, events: 1, bytes: 0 }
    const readStored = async () => {
      const [row] = await pool.sql<{ events: number }[]>`
      select events::int as events from organization_usage where organization_id = ${organizationId}
    `
      return row?.events ?? 0
    }
    for (const events of [1, 2]) {
      quotas.count(event)
      await until(async () => (await readStored()) >= events)
    }
    quotas.count(event)
    if (shiftMs === 0) expect(() => quotas.check(event)).toThrow('events a minute (3)')
    else quotas.check(event)
    await quotas.stop()
    expect(await readStored()).toBe(3)
    await pool.end()
  },
)

test('performance §3 events and users take of a quota of bytes a day, and replays take nothing', async () => {
  await using server = await bootWith({ bytesPerDay: 2_200 })
  const project = await newProject(server)
  const key = { 'idempotency-key': 'one' }
  const event = { ...EVENT, description: 'ä'.repeat(230) }
  const user = { user_id: 'ada', properties: { text: 'ä'.repeat(400) } }
  for (let times = 0; times < 3; times++) {
    expect((await project.post('/v1/events', event, key)).status).toBe(201)
    const identified = await project.post('/v1/identify', user, { 'idempotency-key': 'two' })
    expect(identified.status).toBe(200)
  }
  const large = { ...event, title: 'x'.repeat(240) }
  const aliases = ['a', 'b', 'c', 'd', 'e'].map(letter => letter.repeat(250))
  for (const [path, body] of [
    ['/v1/events', { ...large, userId: 'x'.repeat(255) }],
    ['/v1/events', { ...large, channelName: 'x'.repeat(255) }],
    ['/v1/events', { ...large, description: 'ä'.repeat(450) }],
    ['/v1/identify', { user_id: 'bob', properties: { text: 'ä'.repeat(600) } }],
    ['/v1/identify', { user_id: 'bob', aliases }],
  ] as const) {
    const refused = await project.post(path, body)
    expectExceeded(refused, 'bytes a day (2,200)')
    const end = /begins anew at (\S+)\.$/.exec(refused.body.error)?.[1]
    expect(Date.parse(end ?? '')).toBeWithin(Date.now(), Date.now() + 86_400_001)
  }
  expect((await project.post('/v1/identify', { user_id: 'bob' })).status).toBe(200)
  expect((await project.post('/v1/events', EVENT)).status).toBe(201)
})

test('performance §3 an organization with all of its channels creates no further one', async () => {
  await using server = await bootWith({ channels: 2 })
  const project = await newProject(server)
  const send = (channelName: string) => project.post('/v1/events', { channelName, title: 't' })
  for (const name of ['a', 'b', 'A ']) expect((await send(name)).status).toBe(201)
  expectExceeded(await send('c'), 'channels (2)')
  expectExceeded(
    await project.request('/v1/channels/d', { method: 'POST', body: 'text' }),
    'channels (2)',
  )
  expect((await send('b')).status).toBe(201)
  const creator = await newMember(server, await readOrganization(server, project), 'member')
  const path = `/api/projects/${toId('prj', project.id)}/channels`
  expectExceeded(await creator.post(path, { name: 'e' }), 'channels (2)')

  // A new process knows no channel, and refuses only those that do not exist.
  await using next = await bootWith({ channels: 2 })
  const again = createRequests(next.url, project.key)
  for (const channelName of ['a', 'b']) {
    expect((await again.post('/v1/events', { channelName, title: 't' })).status).toBe(201)
  }
  await until(async () => {
    const { status } = await again.post('/v1/events', {
      channelName: crypto.randomUUID(),
      title: 't',
    })
    return status === 403
  })
  expect((await again.post('/v1/events', { channelName: 'a', title: 't' })).status).toBe(201)
})

test('performance §3 requests at once make no channel too many, in no process and project', async () => {
  const quotas = { ...LIMITS, channels: 20 }
  await using one = await boot({ quotas })
  await using two = await boot({ databaseUrl: one.databaseUrl, quotas })
  const project = await newProject(one, { limit: 1_000 })
  const { uuid: organizationId } = await readOrganization(one, project)
  const sibling = await addProject(one, organizationId)
  const senders = [one, two].flatMap(({ url }) => [
    createRequests(url, project.key),
    createRequests(url, sibling.key),
  ])
  const send = async (channelName: string, nth: number) =>
    (await senders[nth % 4]!.post('/v1/events', { channelName, title: 't' })).status
  const statuses = await Promise.all(
    Array.from({ length: 100 }, (_, nth) => send(`channel ${nth}`, nth)),
  )
  const count = async () => {
    const [row] = await one.sql<{ n: number }[]>`
      select count(*)::int as n
      from channels c join projects p on p.id = c.project_id
      where p.organization_id = ${organizationId} and p.deleted_at is null
    `
    return row!.n
  }
  expect(await count()).toBe(20)
  expect(statuses.filter(status => status === 201)).toHaveLength(20)
  expect(statuses.filter(status => status === 403)).toHaveLength(80)
  const known = statuses.indexOf(201)
  expect(await send(`channel ${known}`, known)).toBe(201)

  // Channels of a deleted project make room.
  await one.sql`update projects set deleted_at = now() where id = ${sibling.id}`
  await until(async () => (await send('new', 0)) === 201)
})

test('performance §3 an organization with all of its webhooks creates no further one', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const path = `/api/projects/${organization.project.id}/webhooks`
  const hook = { url: 'https://1.1.1.1/hook' }
  const { status, body } = await admin.post(path, hook)
  expect(status).toBe(201)
  expectExceeded(await admin.post(path, hook), 'webhooks (1)')
  expect((await admin.delete(`${path}/${body.data.id}`)).status).toBe(200)
  expect((await admin.post(path, hook)).status).toBe(201)
})

test('dashboard §11 the operator sees what organizations use of their quotas', async () => {
  const organization = await newOrganization(first)
  const id = organization.project.uuid
  const { token } = await createKey(first.sql, { projectId: id, name: 'test' })
  await createRequests(first.url, token).post('/v1/events', EVENT)
  await untilStored(first, { id }, 1)
  const operator = await newSignedInAccount(first, { isOperator: true })
  const { status, body } = await operator.get('/api/server/organizations')
  expect(status).toBe(200)
  expect(body.data.items).toContainEqual({
    id: organization.id,
    name: 'Test organization',
    events: { used: 1, limit: LIMITS.eventsPerMinute },
    bytes: { used: 'paymentsNew payment{}api'.length, limit: LIMITS.bytesPerDay },
    channels: { used: 1, limit: LIMITS.channels },
    webhooks: { used: 0, limit: LIMITS.webhooks },
  })
  const account = await newSignedInAccount(first)
  expect((await account.get('/api/server/organizations')).status).toBe(403)
})
