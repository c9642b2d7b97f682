import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Sql } from '../../src/database/sql.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { startProgram } from '../support/servers/process.ts'
import { openFeed } from '../support/clients/feed.ts'
import { createKey } from '../support/worlds/keys.ts'
import { newMember, newOrganization } from '../support/worlds/signed-in-account.ts'
import { createRequests, newProject } from '../support/worlds/project.ts'
import { startReceiver } from '../support/servers/receiver.ts'
import { openRaw, toRequest, type RawConnection } from '../support/clients/raw-http.ts'
import { scaled, until } from '../support/until.ts'
import { boot } from '../support/servers/server.ts'
import { openSql } from '../support/sql.ts'

let databaseUrl: string
let sql: Sql
beforeAll(async () => {
  databaseUrl = await cloneDatabase()
  sql = openSql(databaseUrl)
})
afterAll(() => sql.end({ timeout: 1 }))

const EVENT = { channelName: 'payments', title: 'New payment' }

const BODY = JSON.stringify(EVENT)

/** Opens a connection, and sends the head of a post with the beginning of its body. */
function openHalf({ url }: { url: string }, key: string): RawConnection {
  const inside = openRaw(url)
  const headers = [
    `Host: ${new URL(url).host}`,
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${BODY.length}`,
  ]
  inside.write(toRequest('POST /v1/events HTTP/1.1', headers, BODY.slice(0, 5)))
  return inside
}

/** Resolves once requests of so many keys of a project are counted: then they are admitted. */
function untilInside(projectId: string, keys = 1): Promise<void> {
  return until(async () => {
    const rows = await sql`
      select from rate_windows w
        join api_keys k on k.id = w.key_id
      where k.project_id = ${projectId}
    `
    return rows.count === keys
  })
}

test(
  '§16 case 25: 200 sockets, 50 requests and 100 deliveries in flight: all answered or closed with 1001, none lost',
  async () => {
    await using receiver = await startReceiver({ reply: 'hang' })
    await using program = await startProgram({
      env: { DATABASE_URL: databaseUrl, EGRESS_ALLOW_CIDRS: '127.0.0.0/8' },
    })
    const server = { sql, url: program.url }
    const organization = await newOrganization(server)
    const { project } = organization
    const admin = await newMember(server, organization, 'admin')
    for (let n = 0; n < 10; n++) {
      const made = await admin.post(`/api/projects/${project.id}/webhooks`, {
        url: `${receiver.url}/${n}`,
      })
      expect(made.status).toBe(201)
    }
    const closes: Promise<{ code: number }>[] = []
    for (let n = 0; n < 10; n++) {
      const account = await newMember(server, organization, 'viewer')
      const opened = await Promise.all(
        Array.from({ length: 20 }, () => openFeed(program.url, account)),
      )
      closes.push(...opened.map(({ closed }) => closed))
    }
    // A key that was not admitted before is counted before the body is read.
    const keys: string[] = []
    while (keys.length < 51)
      keys.push((await createKey(sql, { projectId: project.uuid, name: 'in flight' })).token)
    const { post } = createRequests(program.url, keys.pop()!)
    for (let n = 0; n < 10; n++) expect((await post('/v1/events', EVENT)).status).toBe(201)
    const countJobs = async () => {
      const [row] = await sql<[{ jobs: number }]>`
        select
          (select count(*) from outbox where project_id = ${project.uuid})::int
            + (select count(*) from deliveries where project_id = ${project.uuid} and kind = 'webhook')::int as jobs
      `
      return row.jobs
    }
    await until(async () => (await countJobs()) === 100)
    const inside = keys.map(key => openHalf(program, key))
    await untilInside(project.uuid, 51)

    program.signal('SIGTERM')
    await until(async () => (await fetch(`${program.url}/readyz`)).status === 503)
    const ready = await fetch(`${program.url}/readyz`)
    expect(await ready.json()).toMatchObject({ reasons: ['The server is stopping'] })
    expect((await fetch(`${program.url}/healthz`)).status).toBe(200)
    const refused = await post('/v1/events', EVENT)
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.headers.get('connection')).toBe('close')
    expect(refused.body).toMatchObject({ success: false, code: 'unavailable' })

    for (const one of inside) one.write(BODY.slice(5))
    const answers = await Promise.all(inside.map(one => one.answer()))
    expect(answers.map(answer => answer?.status)).toEqual(new Array(50).fill(201))
    expect(await program.exited).toEqual({ code: 0, signal: null })
    const codes = (await Promise.all(closes)).map(({ code }) => code)
    expect(codes).toEqual(new Array(200).fill(1001))
    const [row] = await sql<[{ events: number; head: number }]>`
      select
        (select count(*) from events where project_id = ${project.uuid})::int as events,
        (select last_seq from event_logs where project_id = ${project.uuid})::int as head
    `
    expect(row).toEqual({ events: 60, head: 60 })
    expect(await countJobs()).toBeGreaterThanOrEqual(100)
  },
  scaled(120_000),
)

test('§5 during DRAIN_SECONDS, readiness says 503 and all else works, while sockets close in turn', async () => {
  const server = await boot({ databaseUrl, drainSeconds: 4 })
  const organization = await newOrganization(server)
  const { post } = await newProject(server)
  const member = await newMember(server, organization, 'viewer')
  const closes: number[] = []
  for (let nth = 0; nth < 20; nth++) {
    const { closed } = await openFeed(server.url, member)
    void closed.then(({ code }) => closes.push(code))
  }
  const stopped = server[Symbol.asyncDispose]()
  const ready = await fetch(`${server.url}/readyz`)
  expect([ready.status, ready.headers.get('connection')]).toEqual([503, 'close'])
  expect(await ready.json()).toMatchObject({ reasons: ['The server is stopping'] })
  const { status, headers } = await post('/v1/events', EVENT)
  expect([status, headers.get('connection')]).toEqual([201, 'close'])
  await until(() => closes.length > 0)
  const late = await openFeed(server.url, await newMember(server, organization, 'viewer'))
  expect(closes.length).toBeLessThan(20)
  await stopped
  expect((await late.closed).code).toBe(1012)
  expect(closes).toEqual(new Array(20).fill(1012))
})

test('§5 a second SIGTERM stops at once', async () => {
  await using program = await startProgram({ env: { DATABASE_URL: databaseUrl } })
  const project = await newProject({ sql, url: program.url })
  using _ = openHalf(program, project.key)
  await untilInside(project.id)
  // Only a signal at least half a second after the first one counts as the second.
  await until(() => {
    program.signal('SIGTERM')
    return !program.isRunning()
  })
  expect(await program.exited).toEqual({ code: 1, signal: null })
})

test('§5 a signal that arrives twice, as npx and terminals pass it on, counts once', async () => {
  await using program = await startProgram({ env: { DATABASE_URL: databaseUrl } })
  program.signal('SIGTERM')
  program.signal('SIGINT')
  expect(await program.kill('SIGTERM')).toEqual({ code: 0, signal: null })
})

test('§5 a download that has begun is complete before the server stops', async () => {
  const server = await boot({ databaseUrl })
  const organization = await newOrganization(server)
  const admin = await newMember(server, organization, 'admin')
  const padding = JSON.stringify({ padding: 'x'.repeat(2_000) })
  await sql`
    insert into audit_log (id, organization_id, actor, action, details)
    select gen_random_uuid(), ${organization.uuid}, 'server', 'key.created', ${padding}::text::json
    from generate_series(1, 6000)
  `
  const path = `/api/organizations/${organization.id}/audit/export?action=key.created`
  const response = await fetch(server.url + path, { headers: { cookie: admin.cookie } })
  const reader = response.body!.getReader()
  const chunks = [(await reader.read()).value!]
  const stopped = server.server.stop()
  const isRefused = () => fetch(`${server.url}/v1/me`).then(({ status }) => status === 503)
  await until(() => isRefused().catch(() => true))
  for (let next = await reader.read(); !next.done; next = await reader.read())
    chunks.push(next.value)
  expect(Buffer.concat(chunks).toString().trim().split('\n')).toHaveLength(6_000)
  expect(await stopped).toBe(true)
  await server[Symbol.asyncDispose]()
})

test('§5 a body that never arrives delays a stop only until its timeout', async () => {
  const server = await boot({ databaseUrl }, { bodyTimeoutMs: 500 })
  const project = await newProject(server)
  const inside = openHalf(server, project.key)
  await untilInside(project.id)
  await server[Symbol.asyncDispose]()
  expect((await inside.answer())?.status).toBe(408)
})
