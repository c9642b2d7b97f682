import { expect, test } from 'bun:test'
import { buildHistogram } from '../../../src/log/events/histogram.ts'
import { noFilters } from '../../../src/log/events/search-filters.ts'
import { openPools } from '../../../src/server/pools.ts'
import { appendEvents } from '../../support/worlds/deliveries.ts'
import { lockEvents, lockTable } from '../../support/database-lock.ts'
import { newProject } from '../../support/worlds/project.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { withServer } from '../../support/servers/server.ts'
import { openSql } from '../../support/sql.ts'

// Connections that one organization, or a stranger, cannot take from others.

const server = withServer()

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
