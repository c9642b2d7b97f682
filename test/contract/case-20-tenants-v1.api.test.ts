import { beforeAll, expect, test } from 'bun:test'
import { listOperations } from '../support/operations.ts'
import { withServer } from '../support/servers/server.ts'
import { createRequests, newProject, type TestProject } from '../support/worlds/project.ts'
import { newWatchedTenant, type WatchedTenant } from '../support/worlds/watched-tenant.ts'

const server = withServer({}, { kinds: [] })
// The test matrix is made from the document.
let document: any
/** The tenant whose data must stay unknown and unchanged, and everything that names it. */
let other: WatchedTenant
let names: Record<string, string>

beforeAll(async () => {
  document = await (await fetch(`${server.url}/openapi.json`)).json()
  other = await newWatchedTenant(server)
  const { get } = createRequests(server.url, other.key)
  names = {
    ...other.params,
    ...other.names,
    idempotencyKey: other.idempotencyKey,
    eventsCursor: (await get('/v1/events?limit=1')).body.data.nextCursor,
  }
})

test('case 20: no path parameter of any route opens data of another tenant', async () => {
  const asking = await newTenant()
  const tried: string[] = []
  for (const { path, method, operationId, requestBody } of listOperations(document)) {
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
      other.expectNoLeak(answer, name)
    }
  }
  expect(new Set(tried)).toEqual(
    new Set(['sendText', 'getEvent', 'getAnswer', 'getUser', 'eraseUser', 'endSilence']),
  )
  await other.expectUnchanged()
})

test('case 20: no topic, thread or Idempotency-Key of ntfy opens data of another tenant', async () => {
  const asking = await newTenant()
  for (const name of Object.values(names).map(encodeURIComponent)) {
    for (const path of [`/ntfy/${name}`, `/ntfy/c/${name}`, `/ntfy/c?sid=${name}&tags=${name}`]) {
      const headers = { 'idempotency-key': names['idempotencyKey'] ?? '' }
      const sent = [{ method: 'PUT' }, { method: 'POST', headers, body: decodeURIComponent(name) }]
      for (const options of sent) {
        const answer = await asking.request(path, options)
        expect([200, 400, 422]).toContain(answer.status)
        expect(answer.headers.get('x-idempotent-replay')).toBeNull()
        other.expectNoLeak(answer, decodeURIComponent(name))
      }
    }
  }
  await other.expectUnchanged()
})

test('case 20: no argument of a tool for agents opens data of another tenant', async () => {
  const asking = await newTenant()
  const headers = { accept: 'application/json, text/event-stream' }
  for (const name of Object.values(names)) {
    for (const [tool, args] of [
      ['wait_for_answer', { id: name, wait: 0 }],
      ['send', { channelName: name, title: 'own', thread: name, userId: name }],
    ] as const) {
      const params = { name: tool, arguments: args }
      const json = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
      const answer = await asking.request('/mcp', { method: 'POST', json, headers })
      expect(answer.text).toContain(tool === 'send' ? 'own' : 'No event with this id')
      other.expectNoLeak(answer, name)
    }
  }
  await other.expectUnchanged()
})

test('case 20: no filter of any list finds data of another tenant', async () => {
  const asking = await newTenant()
  const tried: string[] = []
  for (const { path, method, operationId, parameters } of listOperations(document)) {
    for (const { name: parameter, in: place, schema } of parameters) {
      if (place !== 'query') continue
      for (const [what, name] of Object.entries(names)) {
        const query = `${parameter}=${encodeURIComponent(name)}`
        const answer = await asking.request(`${path}?${query}`, { method })
        tried.push(`${operationId} ${parameter}`)
        other.expectNoLeak(answer, name)
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
  expect(new Set(tried).size).toBe(28)
  await other.expectUnchanged()
})

test('case 20: no field of any body reaches data of another tenant', async () => {
  const asking = await newTenant()
  const samples: Record<string, object> = {
    '/v1/events': { channelName: 'own channel', title: 'own' },
    '/v1/log': { channel: 'own channel', event: 'own' },
    '/v1/identify': { user_id: 'own user' },
  }
  for (const { path, requestBody, operationId } of listOperations(document)) {
    const ref: string | undefined = requestBody?.content['application/json']?.schema.$ref
    if (ref === undefined) continue
    const { properties } = document.components.schemas[ref.split('/').at(-1) ?? '']
    for (const field of Object.keys(properties)) {
      await Promise.all(
        [...new Set(Object.values(names))].map(async name => {
          const value = properties[field].type === 'array' ? [name] : name
          const answer = await asking.post(path, { ...samples[path], [field]: value })
          const status = String(answer.status)
          expect(`${operationId} ${field} ${status}`).toMatch(/ (200|201|400)$/)
          other.expectNoLeak(answer, name)
          expect(answer.body.data?.aliases?.failed).toBeUndefined()
          await asking.request(`/v1/users/${encodeURIComponent(name)}`, { method: 'DELETE' })
        }),
      )
    }
  }
  await other.expectUnchanged()
})

test('case 20: an Idempotency-Key of another tenant replays nothing', async () => {
  const asking = await newTenant()
  for (const { path, method } of listOperations(document)) {
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
    other.expectNoLeak(answer)
  }
  await other.expectUnchanged()
})

test('case 20: lists and me show the own project alone', async () => {
  const asking = await newTenant()
  for (const path of ['/v1/events', '/v1/events?after=0', '/v1/channels', '/v1/me']) {
    const answer = await asking.get(path)
    expect(answer.status).toBe(200)
    other.expectNoLeak(answer)
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
  await other.expectUnchanged()
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
