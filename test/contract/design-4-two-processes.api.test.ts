import { expect, test } from 'bun:test'
import { lockLog } from '../support/database-lock.ts'
import { boot } from '../support/servers/server.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'

test('contract §1 a key that runs in another process is 409 after 300 ms, and replays once it is done', async () => {
  const options = { lockWaitMs: 60_000 }
  await using one = await boot({}, options)
  await using other = await boot({ databaseUrl: one.databaseUrl }, options)
  const here = await newProject(one)
  const there = createRequests(other.url, here.key)
  const hold = await lockLog(one.sql, here.id)
  const event = { channelName: 'ops', title: 'Hello' }
  const headers = { 'idempotency-key': 'one' }

  const winner = here.post('/v1/events', event, headers)
  await hold.untilBlocked()
  const refused = await there.post('/v1/events', event, headers)
  // The server polled for 300 ms and waited for no lock, which would have taken a minute.
  expect([refused.status, refused.body.code]).toEqual([409, 'idempotency_key_in_use'])
  expect(refused.headers.get('retry-after')).toBe('1')

  await hold.release()
  expect((await winner).status).toBe(201)
  const replay = await there.post('/v1/events', event, headers)
  expect(replay.text).toBe((await winner).text)
})
