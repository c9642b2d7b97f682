import { beforeAll, expect, test } from 'bun:test'
import { hashPassword } from '../../../src/access/sign-in/credentials.ts'
import type { ApiKey, Scope } from '../../../src/access/keys/schema.ts'
import { toId } from '../../../src/base/ids.ts'
import { expectFailure } from '../../support/answers.ts'
import { ageVerification } from '../../support/worlds/ageing.ts'
import {
  createApi,
  newInvite,
  newMember,
  newOrganization,
  newSignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { createRequests, newProject, type TestProject } from '../../support/worlds/project.ts'
import { newTenant } from '../../support/worlds/tenant.ts'
import { newFullTenant, type FullTenant } from '../../support/worlds/full-tenant.ts'
import { withServer } from '../../support/servers/server.ts'

// Attacks on another tenant's data: by cursors, by text in filters, and by fields that callers may
// not set. Attacks that find out who has an account. Keys that read or destroy more than their
// scopes say, and admins that give them more.

const server = withServer()
let own: TestProject
let other: FullTenant
beforeAll(async () => {
  own = await newProject(server)
  other = await newFullTenant(server)
  for (let n = 0; n < 3; n++) {
    await own.post('/v1/events', {
      channelName: 'payments',
      title: `mine ${'xyz'[n]}`,
      userId: `u${n}`,
    })
    await own.post('/v1/identify', { user_id: `u${n}` })
  }
})

const INJECTIONS = [
  "' or 1=1 --",
  "'; drop table events; --",
  '%',
  '_',
  '\\',
  '%%%',
  '*',
  ':*',
  '!mine',
  'nothing | mine',
  "'mine':*",
  '(mine)',
  '<->',
  '$1::text',
  '{u0}',
  '","u0',
  '\u{10ffff}',
  '🦊',
]

test('filter values are text and cannot widen the query', async () => {
  const session = (path: string) =>
    other.members.owner.get(`/api/projects/${other.params['projectId']}${path}`)
  for (const text of INJECTIONS) {
    const value = encodeURIComponent(text)
    for (const name of ['channel', 'tag', 'userId', 'source']) {
      const page = await own.get(`/v1/events?${name}=${value}`)
      expect([text, name, page.status, page.body.data?.items]).toEqual([text, name, 200, []])
    }
    // Words are matched by their letters alone.
    const words = await own.get(`/v1/events?text=${value}`)
    expect([text, words.status]).toEqual([text, 200])
    for (const { title } of words.body.data.items) expect(text).toContain(title.split(' ')[0])
    for (const path of [`/users?search=${value}`, `/channels?search=${value}`]) {
      const { status, body } = await session(path)
      expect([path, status, body.data.items]).toEqual([path, 200, []])
    }
    for (const name of ['channel', 'user', 'source', 'tag']) {
      const quoted = encodeURIComponent(`${name}:"${text.replace(/["\\]/g, '\\$&')}"`)
      const { status, body } = await session(`/events?q=${quoted}`)
      expect([text, name, status, body.data?.items]).toEqual([text, name, 200, []])
    }
    const meta = await session(`/events?q=${encodeURIComponent(`meta:"secret=${text}"`)}`)
    expect(meta.body.data?.items ?? []).toEqual([])
  }
  expect((await own.get('/v1/events')).body.data.items).toHaveLength(3)
})

test('changing the own address finds out at most ten addresses a day, and is recorded', async () => {
  const spy = await newSignedInAccount(server)
  const used = other.members.viewer.email
  const tryAddress = (email: string) => spy.patch('/api/me', { email })
  await ageVerification(server.sql, spy.sessionId)
  // Without the password, a used and a free address get the same answer.
  for (const email of [used, 'free-0@example.com']) {
    expect((await tryAddress(email)).body.code).toBe('verification_needed')
  }
  await server.sql`update sessions set verified_at = now() where id = ${spy.sessionId}`
  expect((await tryAddress('free-1@example.com')).status).toBe(200)
  const tries = Array.from({ length: 12 }, () => tryAddress(used.toUpperCase()))
  const answers = await Promise.all(tries)
  const statuses = answers.map(({ status }) => status).toSorted()
  expect(statuses).toEqual([...Array(9).fill(409), ...Array(3).fill(429)])
  const late = await tryAddress('free-2@example.com')
  expect([late.status, Number(late.headers.get('retry-after')) > 86_000]).toEqual([429, true])
  const unchanged = await spy.patch('/api/me', { name: 'Eve', email: 'free-1@example.com' })
  expect(unchanged.status).toBe(200)
  const [row] = await server.sql`
    select count(*)::int as n from audit_log
    where action = 'account.addressRefused' and account_id = ${spy.uuid}
  `
  expect(row?.['n']).toBe(9)
})

test('the holder of an invite finds out at most 20 addresses a day, and none without a new account', async () => {
  const organization = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const { token } = await newInvite(owner, organization, { role: 'viewer' })
  const accept = (email: string, password: string) =>
    createApi(server.url).post('/api/invites/accept', { token, name: 'Eve', email, password })
  const used = other.members.viewer.email
  const free = `${crypto.randomUUID()}@example.com`
  const weak = await Promise.all([used, free].map(email => accept(email, '1')))
  expect(weak.map(({ status, body }) => [status, body.issues])).toEqual(
    Array(2).fill([400, weak[0]!.body.issues]),
  )
  expect((await accept(used, 'gravel monsoon nineteen')).status).toBe(409)
  // The invite is still open: 18 more tries, and the last one.
  await server.sql`
    insert into audit_log (id, organization_id, actor, action, details)
    select gen_random_uuid(), ${organization.uuid}, 'anonymous', 'invite.addressRefused', '{}'
    from generate_series(1, 18)
  `
  expect((await accept(used, 'gravel monsoon nineteen')).status).toBe(409)
  for (const email of [used, free]) {
    expect((await accept(email, 'gravel monsoon nineteen')).status).toBe(429)
  }
  // A refused one does not wait for a hash, which is expensive.
  const hashes = Promise.allSettled(
    Array.from({ length: 40 }, () => hashPassword('x', organization.uuid)),
  )
  expect((await accept(used, 'gravel monsoon nineteen')).status).toBe(429)
  await hashes
  const account = await newSignedInAccount(server)
  expect((await account.post('/api/invites/accept', { token })).status).toBe(200)
})

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
