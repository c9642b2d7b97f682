import { expect, test } from 'bun:test'
import type { ApiKey, Scope } from '../../../src/access/keys/schema.ts'
import { toId } from '../../../src/base/ids.ts'
import { expectFailure } from '../../support/answers.ts'
import { withServer } from '../../support/servers/server.ts'
import { ageVerification } from '../../support/worlds/ageing.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { createRequests, newProject, type TestProject } from '../../support/worlds/project.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

// Keys that read or destroy more than their scopes say, and admins that give them more.
//
// Covered elsewhere: every route with and without its scope (api/authentication).

const server = withServer()

/** Returns requests with another key of the project. */
async function withScopes({ id }: TestProject, ...scopes: Scope[]) {
  const { token } = await createKey(server.sql, { projectId: id, name: 'narrow', scopes })
  return createRequests(server.url, token)
}

test('identify returns no stored property to a key that may not read users, not even in a replay', async () => {
  const project = await newProject(server)
  const writer = await withScopes(project, 'identities:write')
  const secret = { email: 'ada@secret.example', n: 1 }
  await project.post('/v1/identify', { user_id: 'ada', properties: secret })
  const { status, body } = await writer.post('/v1/identify', { user_id: 'ada' })
  expect([status, body.data.userId, body.data.properties]).toEqual([200, 'ada', {}])
  const text = '{"user_id":"bob","properties":{"price":1.10}}'
  const sent = await writer.request('/v1/identify', {
    method: 'POST',
    body: text,
    headers: { 'content-type': 'application/json' },
  })
  expect(sent.text).toContain('"properties":{"price":1.10}')

  const keyed = { 'idempotency-key': 'k' }
  const full = await project.post('/v1/identify', { user_id: 'ada' }, keyed)
  expect(full.body.data.properties).toEqual(secret)
  const replay = await writer.post('/v1/identify', { user_id: 'ada' }, keyed)
  expect(replay.headers.get('x-idempotent-replay')).toBe('true')
  expect(replay.body.data).toEqual({ ...full.body.data, properties: {} })
  expect((await project.post('/v1/identify', { user_id: 'ada' }, keyed)).text).toBe(full.text)
})

test('identify does not tell a key that may not read users whose alias it is', async () => {
  const project = await newProject(server)
  const writer = await withScopes(project, 'identities:write')
  await project.post('/v1/identify', { user_id: 'ada', aliases: ['@ada'] })
  await project.post('/v1/identify', { user_id: 'bob', aliases: ['@bob'] })
  const probe = { user_id: 'ada', aliases: ['@ada', '@bob', 'bob', 'ada', 'free'] }
  const { aliases } = (await writer.post('/v1/identify', probe)).body.data
  expect(aliases).toEqual({
    created: ['free'],
    failed: [
      { alias: '@ada', reason: 'Already in use' },
      { alias: '@bob', reason: 'Already in use' },
      { alias: 'bob', reason: 'Already in use' },
      { alias: 'ada', reason: "Equals this user's own user_id" },
    ],
  })
})

test('an event does not tell a key that may not read users whose alias it names', async () => {
  const project = await newProject(server)
  const sender = await withScopes(project, 'events:write')
  await project.post('/v1/identify', { user_id: 'user "1"', aliases: ['ada@example.com'] })
  const event = { channelName: '"userId":"x"', title: 't', userId: 'ada@example.com' }
  const keyed = { 'idempotency-key': 'k' }
  const answers = [
    await sender.post('/v1/events', event),
    await sender.post('/v1/events', event, keyed),
    await sender.post('/v1/events', event, keyed),
  ]
  for (const { status, body } of answers) {
    expect([status, body.data.userId]).toEqual([201, 'ada@example.com'])
    expect(body.data.channelName).toBe('"userId":"x"')
  }
  // An event without a user keeps a field of that name in its metadata.
  const plain = { channelName: 'c', title: 't', metadata: { userId: 'mine' } }
  expect((await sender.post('/v1/events', plain)).body.data).toMatchObject({
    userId: null,
    metadata: { userId: 'mine' },
  })
  const full = await project.post('/v1/events', event, keyed)
  expect([full.headers.get('x-idempotent-replay'), full.body.data.userId]).toEqual([
    'true',
    'user "1"',
  ])
})

test('a deleted event is not shown to whoever repeats its request', async () => {
  const tenant = await newTenant(server)
  const event = { channelName: 'ops', title: 'secret title', metadata: { token: 'secret' } }
  const keyed = { 'idempotency-key': 'k' }
  const { id } = await tenant.send(event, keyed)
  await tenant.account.delete(`${tenant.path}/events/${id}`)
  const replay = await tenant.v1.post('/v1/events', event, keyed)
  expect([replay.status, replay.body.data.id]).toEqual([201, id])
  expect(replay.text).not.toContain('secret')
})

test('the key in the log of the first start is marked until it is rotated', async () => {
  const [first] = await server.sql<[{ project_id: string; organization_id: string }]>`
    select project_id, organization_id from api_keys where name = 'First key'
  `
  const admin = await newMember(server, { uuid: first.organization_id }, 'admin')
  const path = `/api/projects/${toId('prj', first.project_id)}/keys`
  const list = async () => (await admin.get(path)).body.data.items as ApiKey[]
  const [printed] = await list()
  expect(printed).toMatchObject({ name: 'First key', isPrinted: true })
  await admin.post(`${path}/${printed?.id}/rotate`, {})
  expect((await list()).map(({ isPrinted }) => isPrinted)).toEqual([false, false])
})

test('an admin raises the limit of a key only with the password', async () => {
  const { account, path } = await newTenant(server)
  const made = await account.post(`${path}/keys`, { name: 'k', limit: 50 })
  await ageVerification(server.sql, account.sessionId)
  const at = `${path}/keys/${made.body.data.id}`
  for (const change of [{ limit: 51 }, { name: 'other', limit: 1_000_000 }]) {
    expectFailure(await account.patch(at, change), 403, 'verification_needed')
  }
  for (const change of [
    { name: 'calm', limit: 50 },
    { name: 'calm', limit: 40 },
  ]) {
    expect((await account.patch(at, change)).body.data).toMatchObject(change)
  }
})
