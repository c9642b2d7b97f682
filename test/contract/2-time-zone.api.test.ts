import { expect, test } from 'bun:test'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { boot } from '../support/servers/server.ts'
import { newProject } from '../support/worlds/project.ts'
import { openSql } from '../support/sql.ts'

test('contract §2 a timestamp is the same moment for every time zone of the database', async () => {
  const databaseUrl = await cloneDatabase()
  const admin = openSql(databaseUrl)
  const name = new URL(databaseUrl).pathname.slice(1)
  await admin.unsafe(`alter database ${name} set timezone to 'Europe/Zurich'`)
  await admin.end()
  await using server = await boot({ databaseUrl })
  const { post, get } = await newProject(server)
  // Before 1894 the offset of Zurich had seconds, which JavaScript cannot parse.
  for (const timestamp of ['2026-07-01T00:00:00.000Z', '1800-01-01T00:00:00.000Z']) {
    const { body } = await post('/v1/events', { channelName: 'a', title: 't', timestamp })
    expect(body.data.timestamp).toBe(timestamp)
    const read = await get(`/v1/events/${body.data.id}`)
    expect([read.status, read.body.data?.timestamp]).toEqual([200, timestamp])
  }
})
