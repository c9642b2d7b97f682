import { expect, test } from 'bun:test'
import { lockLog } from '../support/database-lock.ts'
import { boot, withServer } from '../support/servers/server.ts'
import { until } from '../support/until.ts'
import { newProject } from '../support/worlds/project.ts'

const server = withServer()

const event = { channelName: 'ops', title: 'Hello' }

test('a project whose log is locked answers 503, and other projects are served', async () => {
  const [held, neighbour] = [await newProject(server), await newProject(server)]
  const hold = await lockLog(server.sql, held.id)
  const stuck = held.post('/v1/events', event)
  await hold.untilBlocked()
  // All of these share the next batch with another event of the locked project.
  const [alsoStuck, ...served] = await Promise.all([
    held.post('/v1/events', event),
    neighbour.post('/v1/events', event),
    neighbour.post('/v1/identify', { user_id: 'ada' }),
  ])
  expect(served.map(({ status }) => status)).toEqual([201, 200])
  expect([(await stuck).status, alsoStuck.status]).toEqual([503, 503])

  // The locked project is skipped for a moment: no batch waits for it again.
  const refused = held.post('/v1/events', event)
  expect((await neighbour.post('/v1/events', event)).status).toBe(201)
  expect((await refused).headers.get('retry-after')).toBe('1')

  await hold.release()
  await until(async () => (await held.post('/v1/events', event)).status === 201)
  expect((await held.get('/v1/events')).body.data.items[0].seq).toBe(1)
})

test('a statement time-out of a batch refuses the project that waits, and serves the others', async () => {
  await using patient = await boot({}, { lockWaitMs: 60_000 })
  const [held, neighbour] = [await newProject(patient), await newProject(patient)]
  await using hold = await lockLog(patient.sql, held.id)
  const stuck = held.post('/v1/events', event)
  await hold.untilBlocked()
  const [alsoStuck, served] = [held.post('/v1/events', event), neighbour.post('/v1/events', event)]
  // The next batch has both.
  await hold.cancelBlocked()
  expect((await stuck).status).toBe(503)
  await hold.untilBlocked()
  await hold.cancelBlocked()
  expect([(await alsoStuck).status, (await served).status]).toEqual([503, 201])
})

test('three locked projects make a fourth wait for one time-out together', async () => {
  const held = [await newProject(server), await newProject(server), await newProject(server)]
  const free = await newProject(server)
  const hold = await lockLog(server.sql, ...held.map(({ id }) => id))
  const answers = await Promise.all([...held, free].map(({ post }) => post('/v1/events', event)))
  expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 201])
  await hold.release()
  for (const { post } of held)
    await until(async () => (await post('/v1/events', event)).status === 201)
})
