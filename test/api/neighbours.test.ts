import { afterAll, beforeAll, expect, test } from 'bun:test'
import { holdLog } from '../support/hold.ts'
import { newProject } from '../support/project.ts'
import { boot, type Booted } from '../support/server.ts'

let server: Booted
beforeAll(async () => {
  server = await boot()
})
afterAll(() => server[Symbol.asyncDispose]())

const event = { channelName: 'ops', title: 'Hello' }

test('a project whose log somebody holds answers 503, and its neighbours are served', async () => {
  const [held, neighbour] = [await newProject(server), await newProject(server)]
  await using hold = await holdLog(server.sql, held.id)
  const stuck = held.post('/v1/events', event)
  await hold.untilBlocked()
  // All of these share the next batch with another event of the held project.
  const [alsoStuck, ...served] = await Promise.all([
    held.post('/v1/events', event),
    neighbour.post('/v1/events', event),
    neighbour.post('/v1/identify', { user_id: 'ada' }),
  ])
  expect(served.map(({ status }) => status)).toEqual([201, 200])
  expect([(await stuck).status, alsoStuck.status]).toEqual([503, 503])
  await hold.release()
  expect((await held.post('/v1/events', event)).body.data.seq).toBe(1)
}, 20_000)
