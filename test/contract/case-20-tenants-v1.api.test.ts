import { beforeAll, expect, test } from 'bun:test'
import { toArray } from '../../src/database/arrays.ts'
import { BACKGROUND_TABLES } from '../support/background-tables.ts'
import { withServer } from '../support/servers/server.ts'
import { newProject, type Answered, type TestProject } from '../support/worlds/project.ts'

const server = withServer()
// The test matrix is made from the document.
let document: any
/** The tenant whose data must stay unknown and unchanged, and everything that names it. */
let other: TestProject
let names: Record<string, string>
let checksum: string

beforeAll(async () => {
  document = await (await fetch(`${server.url}/openapi.json`)).json()
  other = await newProject(server)
  names = await fill(other)
  checksum = await toChecksum(other.id)
})

test('case 20: no path parameter of any route opens data of another tenant', async () => {
  const asking = await newTenant()
  const tried: string[] = []
  for (const { path, method, operationId, requestBody } of listOperations()) {
    const [parameter] = /\{\w+\}/.exec(path) ?? []
    if (parameter === undefined) continue
    for (const [what, name] of Object.entries(names)) {
      const answer = await asking.request(path.replace(parameter, encodeURIComponent(name)), {
        method,
        ...(requestBody && { body: 'text', headers: { 'content-type': 'text/plain' } }),
      })
      tried.push(operationId)
      // Sending to an unknown channel creates one in the own project.
      const allowed = requestBody ? [201, 400] : [404, 400]
      expect([operationId, what, allowed.includes(answer.status)]).toEqual([
        operationId,
        what,
        true,
      ])
      expectNoLeak(answer, name)
    }
  }
  expect(new Set(tried)).toEqual(new Set(['sendText', 'getEvent', 'getUser', 'eraseUser']))
  expect(await toChecksum(other.id)).toBe(checksum)
})

test('case 20: no filter of any list finds data of another tenant', async () => {
  const asking = await newTenant()
  const tried: string[] = []
  for (const { path, method, operationId, parameters } of listOperations()) {
    for (const { name: parameter, in: place, schema } of parameters) {
      if (place !== 'query') continue
      for (const [what, name] of Object.entries(names)) {
        const query = `${parameter}=${encodeURIComponent(name)}`
        const answer = await asking.request(`${path}?${query}`, { method })
        tried.push(`${operationId} ${parameter}`)
        expectNoLeak(answer, name)
        if (answer.status === 400) continue
        if (path === '/v1/users') {
          expect([operationId, what, answer.status]).toEqual([operationId, what, 404])
          continue
        }
        expect([operationId, parameter, what, answer.status]).toEqual([
          operationId,
          parameter,
          what,
          200,
        ])
        // A cursor or a seq is only a position in the own log.
        const isPlace = parameter === 'cursor' || schema.type === 'integer'
        if (!isPlace && schema.format === undefined) expect(answer.body.data.items).toEqual([])
      }
    }
  }
  expect(new Set(tried).size).toBe(14)
  expect(await toChecksum(other.id)).toBe(checksum)
})

test('case 20: no field of any body reaches data of another tenant', async () => {
  const asking = await newTenant()
  const samples: Record<string, object> = {
    '/v1/events': { channelName: 'own channel', title: 'own' },
    '/v1/log': { channel: 'own channel', event: 'own' },
    '/v1/identify': { user_id: 'own user' },
  }
  for (const { path, requestBody, operationId } of listOperations()) {
    const ref: string | undefined = requestBody?.content['application/json']?.schema.$ref
    if (ref === undefined) continue
    const { properties } = document.components.schemas[ref.split('/').at(-1) ?? '']
    for (const field of Object.keys(properties)) {
      await Promise.all(
        Object.values(names).map(async name => {
          const value = properties[field].type === 'array' ? [name] : name
          const answer = await asking.post(path, { ...samples[path], [field]: value })
          const status = String(answer.status)
          expect(`${operationId} ${field} ${status}`).toMatch(/ (200|201|400)$/)
          expectNoLeak(answer, name)
          expect(answer.body.data?.aliases?.failed).toBeUndefined()
          await asking.request(`/v1/users/${encodeURIComponent(name)}`, { method: 'DELETE' })
        }),
      )
    }
  }
  expect(await toChecksum(other.id)).toBe(checksum)
})

test('case 20: an Idempotency-Key of another tenant replays nothing', async () => {
  const asking = await newTenant()
  for (const { path, method } of listOperations()) {
    if (method !== 'POST') continue
    const json = { channelName: 'c', title: 't', channel: 'c', event: 'e', user_id: 'own user' }
    const answer = await asking.request(path.replace('{name}', 'c'), {
      method,
      body: path.includes('{') ? 'text' : JSON.stringify(json),
      headers: {
        'content-type': path.includes('{') ? 'text/plain' : 'application/json',
        'idempotency-key': names['idempotencyKey'] ?? '',
      },
    })
    expect(answer.headers.get('x-idempotent-replay')).toBeNull()
    expectNoLeak(answer)
  }
  expect(await toChecksum(other.id)).toBe(checksum)
})

test('case 20: lists and me show the own project alone', async () => {
  const asking = await newTenant()
  for (const path of ['/v1/events', '/v1/events?after=0', '/v1/channels', '/v1/me']) {
    const answer = await asking.get(path)
    expect(answer.status).toBe(200)
    expectNoLeak(answer)
  }
})

test('case 20: erasing a user leaves the same names in other projects', async () => {
  const asking = await newTenant()
  const { userId = '', alias = '' } = names
  await asking.post('/v1/identify', { user_id: userId, aliases: [alias] })
  await asking.post('/v1/events', { channelName: 'c', title: 't', userId: alias })
  const erased = await asking.request(`/v1/users/${encodeURIComponent(userId)}`, {
    method: 'DELETE',
  })
  expect(erased.body.data).toMatchObject({ userId, events: 1 })
  expect(await toChecksum(other.id)).toBe(checksum)
})

/** Returns the tenant that makes the requests, with its own data. */
async function newTenant(): Promise<TestProject> {
  const project = await newProject(server)
  await project.post('/v1/identify', { user_id: 'own user', aliases: ['own alias'] })
  for (const title of ['own one', 'own two', 'own three']) {
    await project.post('/v1/events', { channelName: 'own channel', title, userId: 'own alias' })
  }
  return project
}

/** Creates one of everything in a project; returns every name and id of it. */
async function fill({ id, keyId, post, get }: TestProject): Promise<Record<string, string>> {
  const identity = {
    user_id: 'tenant-b user',
    aliases: ['tenant-b alias'],
    properties: { x: 'tenant-b' },
  }
  const { data: identified } = (await post('/v1/identify', identity)).body
  const event = {
    channelName: 'tenant-b channel',
    title: 'tenant-b title',
    tags: ['tenant-b tag'],
    source: 'tenant-b source',
    userId: 'tenant-b alias',
  }
  const idempotencyKey = 'tenant-b idempotency key'
  const { data } = (await post('/v1/events', event, { 'idempotency-key': idempotencyKey })).body
  await post('/v1/events', { ...event, channelName: 'tenant-b channel 2' })
  const me = (await get('/v1/me')).body.data
  const events = (await get('/v1/events?limit=1')).body.data
  const channels = (await get('/v1/channels?limit=1')).body.data
  return {
    projectUuid: id,
    keyId,
    organizationId: me.organization.id,
    projectId: me.project.id,
    identityId: identified.id,
    userId: identified.userId,
    alias: 'tenant-b alias',
    eventId: data.id,
    channelId: data.channelId,
    channelName: data.channelName,
    title: data.title,
    tag: 'tenant-b tag',
    source: data.source,
    seq: String(data.seq),
    createdAt: data.createdAt,
    idempotencyKey,
    eventsCursor: events.nextCursor,
    channelsCursor: channels.nextCursor,
  }
}

/** Expects nothing of the other tenant in the answer, except for `said`, which the request sent. */
function expectNoLeak({ text }: Answered, said?: string): void {
  for (const name of Object.values(names)) {
    if (name.length < 10 || said?.includes(name)) continue
    if (text.includes(name)) throw new Error(`«${name}» leaks into ${text.slice(0, 500)}`)
  }
}

/** Returns a checksum over all rows of the project, without those written later. */
async function toChecksum(projectId: string): Promise<string> {
  const tables = await server.sql<{ name: string }[]>`
    select table_name as name
    from information_schema.columns
    where table_schema = 'public' and column_name = 'project_id'
      and table_name <> all(${toArray(BACKGROUND_TABLES)}::text[])
    order by table_name
  `
  expect(tables.length).toBeGreaterThan(5)
  const sums: string[] = []
  for (const { name } of tables) {
    const [row] = await server.sql<[{ sum: string }]>`
      select ${name} || ' ' || coalesce(md5(string_agg((to_jsonb(t) - 'last_used_at')::text, ',' order by t::text)), '') as sum
      from ${server.sql(name)} t
      where t.project_id = ${projectId}
    `
    sums.push(row.sum)
  }
  return sums.join('\n')
}

function listOperations(): any[] {
  return Object.entries<object>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      ...operation,
      path,
      method: method.toUpperCase(),
    })),
  )
}
