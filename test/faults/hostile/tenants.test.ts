import { beforeAll, expect, test } from 'bun:test'
import { ageVerification } from '../../support/worlds/ageing.ts'
import {
  createApi,
  newInvite,
  newMember,
  newOrganization,
  newSignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { newProject, type TestProject } from '../../support/worlds/project.ts'
import { newFullTenant, type FullTenant } from '../../support/worlds/full-tenant.ts'
import { withServer } from '../../support/servers/server.ts'

// Attacks on another tenant's data: by cursors, by text in filters, and by fields that callers may
// not set. Attacks that find out who has an account.
//
// Covered elsewhere: ids of another tenant in every place of every route, in queries and in bodies
// (api/tenants-management, api/tenants-v1), sockets (api/feed-guards), tags that imitate tokens of
// the index (api/search).

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
  const account = await newSignedInAccount(server)
  expect((await account.post('/api/invites/accept', { token })).status).toBe(200)
})
