import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Sql } from '../../src/database/sql.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { startProgram } from '../support/servers/process.ts'
import { startTcpProxy } from '../support/servers/tcp-proxy.ts'
import { createRequests, newProject, type TestProject } from '../support/worlds/project.ts'
import { openSql } from '../support/sql.ts'

let sql: Sql
let databaseUrl: string
beforeAll(async () => {
  databaseUrl = await cloneDatabase()
  sql = openSql(databaseUrl, { max: 2 })
})
afterAll(() => sql.end({ timeout: 1 }))

const EVENT = { channelName: 'payments', title: 'New payment' }
/** Postgres sends this after it has committed. */
const COMMITTED = { from: 'server', type: 'Z', application: 'tidings append' } as const

test('§13 after a server is killed between COMMIT and answer, the retry at another one is a replay', async () => {
  const proxy = await startTcpProxy(databaseUrl)
  await using first = await startProgram({ env: { DATABASE_URL: proxy.url } })
  await using second = await startProgram({ env: { DATABASE_URL: databaseUrl } })
  const there = await newProject({ sql, url: first.url })
  const here = createRequests(second.url, there.key)
  await there.post('/v1/events', EVENT)

  const held = proxy.trap(COMMITTED)
  const lost = there.post('/v1/events', EVENT, { 'idempotency-key': 'k1' }).catch(() => 'no answer')
  await held
  expect(await countEvents(there)).toBe(2)
  await first.kill('SIGKILL')
  expect(await lost).toBe('no answer')

  const retry = await here.post('/v1/events', EVENT, { 'idempotency-key': 'k1' })
  expect(retry.status).toBe(201)
  expect(retry.headers.get('x-idempotent-replay')).toBe('true')
  expect(retry.body.data.seq).toBe(2)
  expect(await countEvents(there)).toBe(2)
  await proxy.close()
})

async function countEvents({ id }: TestProject): Promise<number> {
  const [row] = await sql<[{ events: number }]>`
    select count(*)::int as events from events where project_id = ${id}
  `
  return row.events
}
