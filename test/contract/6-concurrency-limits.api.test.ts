import { afterAll, beforeAll, expect, test } from 'bun:test'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { lockEvents } from '../support/database-lock.ts'
import { newOrganization, newMember } from '../support/worlds/signed-in-account.ts'
import { newProject, type Answered } from '../support/worlds/project.ts'
import { boot, type Booted } from '../support/servers/server.ts'

let server: Booted
beforeAll(async () => {
  server = await boot()
})
afterAll(() => server[Symbol.asyncDispose]())

/** Four run, a hundred wait, and six are refused. */
const MANY = 110

/**
 * Returns true for a refusal by the concurrency limit, and not by a lock timeout, which is a 503,
 * too.
 */
const isRefused = ({ status, headers, body }: Answered) =>
  status === 503 &&
  headers.get('retry-after') === '1' &&
  body.code === 'unavailable' &&
  body.error === 'Too many requests at once. Try again shortly.'

test('contract §6 hanging requests of one member delay nobody else; too many at once are 503', async () => {
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
  await Promise.any(hanging.map(async one => (isRefused(await one) ? true : Promise.reject())))
  for (let times = 0; times < 10; times++) expect((await other.get('/api/me')).status).toBe(200)
  await hold.release()
  const answers = await Promise.all(hanging)
  expect(answers.filter(isRefused)).toHaveLength(MANY - 104)
  expect(answers.filter(({ status }) => status === 429)).toEqual([])
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
  expect(answers.filter(isRefused)).toHaveLength(MANY - 104)
  expect(answers.filter(({ status }) => status === 429)).toEqual([])
})
