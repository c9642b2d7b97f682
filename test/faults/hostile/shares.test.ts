import { expect, test } from 'bun:test'
import { buildHistogram } from '../../../src/log/events/histogram.ts'
import { noFilters } from '../../../src/log/events/search-filters.ts'
import { openPools } from '../../../src/server/pools.ts'
import { appendEvents } from '../../support/worlds/deliveries.ts'
import { listBlocked, lockEvents, lockLog, lockTable } from '../../support/database-lock.ts'
import { newProject, type Answered, type TestProject } from '../../support/worlds/project.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { boot, withServer } from '../../support/servers/server.ts'
import { openSql } from '../../support/sql.ts'
import { until } from '../../support/until.ts'

// Connections that one organization, or a stranger, cannot take from others. Identifies and
// erasures of one organization that would delay others.

const server = withServer({}, { erasureWaitMs: 2_000 })

/** Returns paths whose responses need the events, in the lanes of reads and of searches. */
function toPaths(projectId: string): string[] {
  const path = `/api/projects/${projectId}`
  return [`${path}/events`, `${path}/events?q=word`, `${path}/histogram?q=word`]
}

async function newViewers(organizations: number) {
  const viewers = []
  for (let made = 0; made < organizations; made++) {
    const organization = await newOrganization(server)
    await appendEvents(server.sql, organization.project.uuid, 1)
    viewers.push({ organization, viewer: await newMember(server, organization, 'viewer') })
    viewers.push({ organization, viewer: await newMember(server, organization, 'viewer') })
  }
  return viewers
}

test.each(['reads', 'searches', 'feed', 'sessions'] as const)(
  'one organization leaves %s to another, however much work it has',
  async name => {
    const cleanup = { push() {}, runAll: async () => [] }
    const { pools, ...lanes } = await openPools(server.databaseUrl, { onReconnect() {} }, cleanup)
    const pool = lanes[name]
    const held = Promise.withResolvers<void>()
    const hanging = Array.from({ length: 6 }, () => pool.of('mine').run(() => held.promise))
    expect(await pool.of('other').run(async () => 'done')).toBe('done')
    held.resolve()
    await Promise.all(hanging)
    await pools.end()
  },
)

test('sign-in, sessions and /readyz wait for no request for data', async () => {
  const viewers = await newViewers(4)
  const [{ viewer }] = viewers as [(typeof viewers)[number]]
  const hold = await lockEvents(server.sql)
  const hanging = viewers.flatMap(({ organization, viewer }) =>
    toPaths(organization.project.id).map(path => viewer.get(path)),
  )
  // All connections for reads. Those for searches wait, too, but each only for half a second.
  await hold.untilBlocked(7)
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  const other = await newMember(server, await newOrganization(server), 'viewer')
  expect((await other.get('/api/me')).status).toBe(200)
  const wrong = await viewer.request('/api/session', {
    method: 'POST',
    json: { email: 'nobody@example.com', password: 'a wrong password' },
  })
  expect(wrong.status).toBe(401)
  await hold.release()
  await Promise.all(hanging)
})

test('a histogram whose counts take too long has the newest counts', async () => {
  const { id, post } = await newProject(server)
  await post('/v1/events', { channelName: 'ops', title: 'word' })
  const sql = openSql(server.databaseUrl, { settings: { statement_timeout: 300 } })
  const range = { nowMs: Date.now() }
  const exact = await buildHistogram(sql, id, noFilters(), range)
  const hold = await lockTable(server.sql, 'event_counts')
  const histogram = await buildHistogram(sql, id, noFilters(), range)
  await hold.release()
  await sql.end()
  expect(histogram.total).toBe(1)
  expect(histogram).toEqual(exact)
})

const EVENT = { channelName: 'payments', title: 'New payment' }

test('a project whose log is locked answers 503, and other projects are served', async () => {
  const [held, neighbour] = [await newProject(server), await newProject(server)]
  const hold = await lockLog(server.sql, held.id)
  const stuck = held.post('/v1/events', EVENT)
  await hold.untilBlocked()
  // All of these share the next batch with another event of the locked project.
  const [alsoStuck, ...served] = await Promise.all([
    held.post('/v1/events', EVENT),
    neighbour.post('/v1/events', EVENT),
    neighbour.post('/v1/identify', { user_id: 'ada' }),
  ])
  expect(served.map(({ status }) => status)).toEqual([201, 200])
  expect([(await stuck).status, alsoStuck.status]).toEqual([503, 503])

  // The locked project is skipped for a moment: no batch waits for it again.
  const refused = held.post('/v1/events', EVENT)
  expect((await neighbour.post('/v1/events', EVENT)).status).toBe(201)
  expect((await refused).headers.get('retry-after')).toBe('1')

  await hold.release()
  await until(async () => (await held.post('/v1/events', EVENT)).status === 201)
  expect((await held.get('/v1/events')).body.data.items[0].seq).toBe(1)
})

test('the questions of a project whose log is locked delay no event of others', async () => {
  const [held, neighbour] = [await newProject(server), await newProject(server)]
  const answer = { expiresInSeconds: 60 }
  const question = { ...EVENT, actions: [{ id: 'yes', label: 'Yes' }], answer }
  expect((await neighbour.post('/v1/events', question)).status).toBe(201)
  const hold = await lockLog(server.sql, held.id)
  let answered = 0
  const asks = Array.from({ length: 5 }, () =>
    held.post('/v1/events', question).finally(() => answered++),
  )
  await hold.untilBlocked()
  expect((await neighbour.post('/v1/events', EVENT)).status).toBe(201)
  expect(answered).toBeLessThan(asks.length)
  await hold.release()
  await Promise.all(asks)
})

test('no request waits for the words of properties', async () => {
  await using own = await boot()
  const project = await newProject(own)
  await own.sql.unsafe(`
    create or replace function tokens_of_user(project uuid, content text) returns tsvector
    language plpgsql immutable as $$
    begin
      perform pg_advisory_xact_lock_shared(77);
      return '';
    end
    $$
  `)
  const held = Promise.withResolvers<void>()
  const holding = own.sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(77)`
    await held.promise
  })
  const answers = [
    await project.post('/v1/identify', { user_id: 'ada', properties: { plan: 'pro' } }),
    await project.post('/v1/events', EVENT),
    await project.post('/v1/identify', { user_id: 'ada', properties: { plan: 'free' } }),
  ]
  // Something wants the words, and has not got them.
  await until(async () => (await listBlocked(own.sql)).length === 1)
  held.resolve()
  await holding
  expect(answers.map(({ status }) => status)).toEqual([200, 201, 200])
})

test('writes of other organizations are done before identifies that wait', async () => {
  const [hostile, other] = [await newProject(server), await newProject(server)]
  // On a busy machine, some of the hostile requests have been given up before.
  const done: string[] = []
  const note = async (name: string, answer: Promise<Answered>) => {
    const { status } = await answer
    if (status < 300) done.push(name)
  }
  await using hold = await lockLog(server.sql, hostile.id)
  const properties = { text: '~/'.repeat(20_000) }
  const waiting = Array.from({ length: 95 }, (_, n) =>
    note('hostile', hostile.post('/v1/identify', { user_id: `user ${n}`, properties })),
  )
  await hold.untilBlocked()
  for (let n = 0; n < 3; n++) {
    await note('other', other.post('/v1/events', EVENT))
    await note('other', other.post('/v1/identify', { user_id: 'ada' }))
  }
  await hold.release()
  await Promise.all(waiting)
  expect(done.slice(0, 6)).toEqual(Array(6).fill('other'))
})

test('64 erasures occupy one connection, and reads of other organizations are answered', async () => {
  const [hostile, other] = [await newProject(server), await newProject(server)]
  for (let n = 0; n < 64; n++) await hostile.post('/v1/identify', { user_id: `user ${n}` })
  const hold = await lockLog(server.sql, hostile.id)
  const erasures = Array.from({ length: 64 }, (_, n) => erase(hostile, `user ${n}`))
  await hold.untilBlocked()
  const waiting: number[] = []
  for (let n = 0; n < 10; n++) {
    expect((await other.get('/v1/events')).status).toBe(200)
    waiting.push((await listBlocked(server.sql)).length)
  }
  await hold.release()
  expect(Math.max(...waiting)).toBe(1)
  // Some have waited too long for the log.
  const statuses = (await Promise.all(erasures)).map(({ status }) => status)
  expect(statuses.filter(status => ![200, 202, 503].includes(status))).toEqual([])
  expect(statuses.filter(status => status !== 503).length).toBeGreaterThan(0)
})

test('a user with 5,000 aliases is read, and erased in steps', async () => {
  const project = await newProject(server)
  await project.post('/v1/identify', { user_id: 'ada', properties: { city: 'London' } })
  await addAliases(project, 5_000)
  await project.post('/v1/events', { ...EVENT, userId: 'alias 4999' })
  expect((await project.get('/v1/users/alias%204999')).body.data.aliases).toHaveLength(5_000)

  const count = async () => {
    const [row] = await server.sql<[{ n: number }]>`
      select count(*)::int as n from aliases where project_id = ${project.id}
    `
    return row.n
  }
  await server.sql`select begin_erasure(${project.id}, 'ada', null)`
  const first = await count()
  await server.sql`select continue_erasure(${project.id}, 'ada', 0)`
  expect([5_000 - first, first - (await count())]).toEqual([1_001, 1_001])

  let status = 202
  while (status === 202) ({ status } = await erase(project, 'ada'))
  expect(status).toBe(200)
  expect(await count()).toBe(0)
  expect((await project.get('/v1/events')).body.data.items[0].userId).toBeNull()
  expect(await countErasures(project)).toBe(0)
})

test('a user with many events disappears at once, and the events follow', async () => {
  const project = await newProject(server)
  await project.post('/v1/identify', { user_id: 'ada', aliases: ['@ada'], properties: { a: 'b' } })
  await project.post('/v1/events', { ...EVENT, userId: '@ada' })
  await addEvents(project, 2_000)
  await server.sql.begin(async tx => {
    // An erasure leaves a locked event for later.
    await tx`select from events where project_id = ${project.id} and seq = 1000 for update`
    const first = await erase(project, 'ada')
    expect(first.status).toBe(202)
    expect(first.body.data.userId).toBe('ada')
    expect(first.body.data.events).toBeLessThan(2_000)
    for (const name of ['ada', '@ada']) {
      expect((await project.get(`/v1/users/${name}`)).status).toBe(404)
    }
  })
  // Nobody asks again.
  await until(async () => (await countErasures(project)) === 0, 80_000)
  const [row] = await server.sql<[{ n: number }]>`
    select count(*)::int as n from events where project_id = ${project.id} and user_ref is not null
  `
  expect(row.n).toBe(0)
})

function erase({ request }: Pick<TestProject, 'request'>, userId: string) {
  return request(`/v1/users/${encodeURIComponent(userId)}`, { method: 'DELETE' })
}

/** Adds aliases to the user ada, as a user from before the limit has them. */
async function addAliases({ id }: TestProject, count: number): Promise<void> {
  await server.sql.begin(async tx => {
    await tx`set local statement_timeout = 0`
    await tx`
      insert into aliases (project_id, alias, user_id, created_at)
      select ${id}, 'alias ' || n, 'ada', now() from generate_series(0, ${count - 1}::int) as n
    `
  })
}

/** Copies the first event of the project. */
async function addEvents({ id }: TestProject, count: number): Promise<void> {
  await server.sql.begin(async tx => {
    await tx`set local statement_timeout = 0`
    await tx`
      insert into events (
        project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, user_ref, source, notify
      )
      select
        e.project_id, gen_random_uuid(), e.channel_id, n, e.occurred_at, e.created_at, e.title, e.tags, e.metadata,
        e.user_ref, e.source, e.notify
      from events e
        cross join generate_series(2, ${count}::int) as n
      where e.project_id = ${id}
    `
    await tx`update event_logs set last_seq = ${count} where project_id = ${id}`
  })
}

async function countErasures({ id }: TestProject): Promise<number> {
  const [row] = await server.sql<[{ n: number }]>`
    select count(*)::int as n from erasures where project_id = ${id}
  `
  return row.n
}
