import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Sql } from '../../src/database/sql.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { boot } from '../support/servers/server.ts'
import { startTcpProxy } from '../support/servers/tcp-proxy.ts'
import { scaled, until } from '../support/until.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'
import { openSql } from '../support/sql.ts'

const DEADLINE_MS = scaled(1_500)
const EVENT = { channelName: 'payments', title: 'New payment' }

let databaseUrl: string
let sql: Sql
beforeAll(async () => {
  databaseUrl = await cloneDatabase()
  sql = openSql(databaseUrl, { max: 2 })
})
afterAll(() => sql.end({ timeout: 1 }))

async function bootBehindProxy(databaseDeadlineMs = DEADLINE_MS) {
  const proxy = await startTcpProxy(databaseUrl)
  const server = await boot({ databaseUrl: proxy.url }, { databaseDeadlineMs })
  const project = await newProject({ sql, url: server.url })
  const post = (key?: string) =>
    project.post('/v1/events', EVENT, key === undefined ? {} : { 'idempotency-key': key })
  return {
    proxy,
    post,
    projectId: project.id,
    key: project.key,
    isReady: async () => (await fetch(`${server.url}/readyz`)).status === 200,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await proxy.close()
    },
  }
}

// Most of their time is spent waiting for deadlines, so they wait together.

test.concurrent('§15 a database behind a black hole gives a 503 in bounded time, and works again afterwards', async () => {
  await using server = await bootBehindProxy()
  await until(async () => (await server.post()).status === 201)
  server.proxy.blackHole()
  // The requests wait for admission: the connection of the append is idle, and is closed, too.
  const answers = await Promise.all([server.post('hole'), server.post()])
  expect(answers.map(({ status }) => status)).toEqual([503, 503])
  expect((await server.post('hole')).status).toBe(503)
  expect(await server.isReady()).toBe(false)
  server.proxy.heal()
  expect((await server.post('hole')).status).toBe(201)
  await until(server.isReady)
  expect((await server.post('hole')).headers.get('x-idempotent-replay')).toBe('true')
})

test.concurrent('§15 readiness recovers after a black hole without any other request', async () => {
  await using server = await bootBehindProxy()
  // All connections are open and used while nothing passes.
  const askAll = () => Promise.all(Array.from({ length: 40 }, server.isReady))
  await until(async () => !(await askAll()).includes(false))
  server.proxy.blackHole()
  // Until the database has been silent for too long, the answer is that of the last check.
  await until(async () => !(await askAll()).includes(true))
  server.proxy.heal()
  await until(server.isReady)
})

test.concurrent('§15 a black hole between the append and its commit blocks no other request for good', async () => {
  await using server = await bootBehindProxy()
  await using other = await boot({ databaseUrl })
  const elsewhere = createRequests(other.url, server.key)
  await until(async () => (await server.post()).status === 201)
  const held = server.proxy.trap({ from: 'client', type: 'S', application: 'tidings append' })
  const lost = server.post('ghost')
  await held
  expect((await lost).status).toBe(503)
  // The connection was closed, and with it the lock on the project's log.
  await until(async () => {
    const { status } = await elsewhere.post('/v1/events', EVENT, { 'idempotency-key': 'ghost' })
    return status === 201
  })
  expect((await server.post('ghost')).headers.get('x-idempotent-replay')).toBe('true')
})

test('§15 Postgres notices a vanished client within half a minute', async () => {
  // A vanished client may leave a lock behind, for its FIN never arrives. The default is two hours.
  const options = connect(databaseUrl, { name: 'settings', max: 1 })
  // Over a Unix socket, the settings themselves read as 0.
  const [row] = await options<[{ seconds: number; user_timeout: number }]>`
    select
      sum(case name when 'tcp_keepalives_idle' then reset_val::int end)::int
        + sum(case name when 'tcp_keepalives_interval' then reset_val::int end)::int
        * sum(case name when 'tcp_keepalives_count' then reset_val::int end)::int as seconds,
      sum(case name when 'tcp_user_timeout' then reset_val::int end)::int as user_timeout
    from pg_settings
  `
  await options.end()
  expect(row.seconds).toBeGreaterThan(0)
  expect(row.seconds).toBeLessThanOrEqual(30)
  expect(row.user_timeout).toBeGreaterThan(0)
})

test.concurrent('§15 connections that are cut, reset or hung up cost at most a retry, in bounded time, and no storm of connections', async () => {
  await using server = await bootBehindProxy()
  for (const fault of ['cut', 'reset'] as const) {
    await until(async () => (await server.post()).status === 201)
    server.proxy[fault]()
    await until(async () => (await server.post(fault)).status === 201)
  }
  server.proxy.hangUp()
  const opened = server.proxy.opened
  expect((await server.post('hung up')).status).toBe(503)
  expect(server.proxy.opened - opened).toBeLessThan(100)
  server.proxy.heal()
  await until(async () => (await server.post('hung up')).status === 201)
})

test.concurrent('§15 a slow network is no fault', async () => {
  await using server = await bootBehindProxy(30_000)
  server.proxy.delay(40)
  const answers = await Promise.all(Array.from({ length: 20 }, () => server.post()))
  expect(answers.map(({ status }) => status)).toEqual(new Array(20).fill(201))
})
