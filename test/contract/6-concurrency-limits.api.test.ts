import { expect, test } from 'bun:test'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { lockEvents } from '../support/database-lock.ts'
import { newOrganization, newMember } from '../support/worlds/signed-in-account.ts'
import { newProject, type TestProject } from '../support/worlds/project.ts'
import { withSharedServer } from '../support/servers/server.ts'

const server = withSharedServer()

/** More than wait at a time for any one thing. */
const MANY = 210

test('contract §6 hanging requests of one member delay nobody else, and are served after it', async () => {
  const organization = await newOrganization(server)
  const [hog, other] = [
    await newMember(server, organization, 'viewer'),
    await newMember(server, organization, 'viewer'),
  ]
  await appendEvents(server.sql, organization.project.uuid, 1)
  const hold = await lockEvents(server.sql)
  const path = `/api/projects/${organization.project.id}/events`
  const hanging = Array.from({ length: MANY }, () => hog.get(path))
  await hold.untilBlocked(4)
  for (let times = 0; times < 10; times++) expect((await other.get('/api/me')).status).toBe(200)
  await hold.release()
  const answers = await Promise.all(hanging)
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  expect((await hog.get(path)).status).toBe(200)
})

test('contract §6 hanging reads of one project delay no other project, nor its own writes', async () => {
  const [hog, other] = [await newProject(server, { limit: 1e6 }), await newProject(server)]
  await hog.post('/v1/events', { channelName: 'ops', title: 'Hello' })
  const hold = await lockEvents(server.sql)
  const hanging = Array.from({ length: MANY }, () => hog.get('/v1/events'))
  await hold.untilBlocked(4)
  for (let times = 0; times < 10; times++)
    expect((await other.get('/v1/channels')).status).toBe(200)
  expect((await hog.post('/v1/identify', { user_id: 'ada' })).status).toBe(200)
  await hold.release()
  const answers = await Promise.all(hanging)
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
})

test('requests that are aborted, or whose statements fail, release their slots', async () => {
  const { get, key } = await newProject(server)
  const hold = await lockEvents(server.sql)
  const page = new AbortController()
  const gone = Array.from({ length: 12 }, () => {
    const headers = { authorization: `Bearer ${key}` }
    return fetch(`${server.url}/v1/events`, { headers, signal: page.signal })
  })
  await hold.untilBlocked(4)
  page.abort()
  await Promise.allSettled(gone)
  await hold.release()
  const answers = await Promise.all(Array.from({ length: 8 }, () => get('/v1/events')))
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  await server.sql`alter table channels rename to gone_channels`
  try {
    for (let turn = 0; turn < 6; turn++) expect((await get('/v1/channels')).status).toBe(500)
  } finally {
    await server.sql`alter table gone_channels rename to channels`
  }
  expect((await get('/v1/channels')).status).toBe(200)
})

test('exports and refusals of /api release their slots, also when nobody reads to the end', async () => {
  const organization = await newOrganization(server)
  const { cookie, get } = await newMember(server, organization, 'owner')
  const path = `/api/organizations/${organization.id}`
  for (const one of ['/api/me/export', `${path}/audit/export`, `${path}/nothing`, '/api/server']) {
    for (let turn = 0; turn < 6; turn++) {
      const response = await fetch(server.url + one, { headers: { cookie } })
      await response.body?.cancel()
    }
  }
  expect((await get('/api/me')).status).toBe(200)
})

test('requests that wait for a slot of their account read nothing once its membership has ended', async () => {
  const organization = await newOrganization(server)
  const member = await newMember(server, organization, 'member')
  const path = `/api/projects/${organization.project.id}/events`
  await using hold = await lockEvents(server.sql)
  const answers = Array.from({ length: 12 }, () => member.get(path))
  // Four requests of an account run at once.
  await hold.untilBlocked(4)
  await server.sql`delete from memberships where account_id = ${member.uuid}`
  await hold.release()
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  const refused = statuses.filter(status => status === 404)
  // Background work may be one of the four that were blocked.
  expect(refused.length).toBeGreaterThanOrEqual(6)
  expect(statuses.filter(status => status === 200)).toHaveLength(12 - refused.length)
})

type Send = (project: TestProject) => Promise<{ status: number }>

/** Returns a write whose body has exactly `bytes` bytes. */
function write(path: string, fields: object, bytes: number): Send {
  const empty = JSON.stringify(fields)
  const body = empty.replace('""', `"${'x'.repeat(Math.max(0, bytes - empty.length))}"`)
  const headers = { 'content-type': 'application/json' }
  return ({ request }) => request(path, { method: 'POST', body, headers })
}

/** Returns requests of several kinds in turn. */
function takeTurns(...kinds: [Send, ...Send[]]): Send {
  let nth = 0
  return project => (kinds[nth++ % kinds.length] ?? kinds[0])(project)
}

const KIB = 1024
const FILLER = { filler: '' }
const event = { channelName: 'ops', title: 'x', metadata: FILLER }
const user = { user_id: 'ada', properties: FILLER }

test.each<[string, Send]>([
  ...[1, 256].flatMap((size): [string, Send][] => [
    [`events of ${size} KiB`, write('/v1/events', event, size * KIB)],
    [`identifies of ${size} KiB`, write('/v1/identify', user, size * KIB)],
  ]),
  [
    'events and identifies of 256 KiB, and lists',
    takeTurns(
      write('/v1/events', event, 256 * KIB),
      write('/v1/identify', user, 256 * KIB),
      ({ get }) => get('/v1/events'),
    ),
  ],
  ['lists', ({ get }) => get('/v1/events')],
  ['searches', ({ get }) => get('/v1/events?text=x')],
  ['reads of the key itself', ({ get }) => get('/v1/me')],
])('contract §6 all requests of two default keys are served at once: %s', async (_, send) => {
  const projects = await Promise.all([1, 2].map(() => newProject(server, { limit: 100 })))
  const answers = await Promise.all(
    projects.flatMap(project => Array.from({ length: 100 }, () => send(project))),
  )
  expect(answers.map(({ status }) => status).filter(status => status >= 300)).toEqual([])
})
