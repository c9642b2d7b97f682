import { beforeAll, describe, expect, test } from 'bun:test'
import { hashSecret, newSecret } from '../../../src/access/guard/secret.ts'
import { listBlocked, lockEvents } from '../../support/database-lock.ts'
import { createBrowser } from '../../support/worlds/browser.ts'
import { newFullTenant, type FullTenant } from '../../support/worlds/full-tenant.ts'
import {
  createApi,
  newMember,
  newOrganization,
  newSignedInAccount,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { withServer } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'

// Attacks with what grants something later, after its maker has lost the right to grant it.
//
// Covered elsewhere: reset links (hostile/links, api/member-reset-links), pushes to former members
// and ended sessions (api/push-delivery), sockets (api/feed-access), refused keys (api/keys).

const server = withServer()
let tenant: FullTenant
beforeAll(async () => {
  tenant = await newFullTenant(server)
})

describe('an invite admits nobody once its maker could not make it:', () => {
  // Changes the database directly, so that no code withdraws the invite.
  test.each<[string, string, (maker: SignedInAccount) => Promise<unknown>]>([
    [
      'demoted below the granted role',
      'owner',
      ({ uuid }) => server.sql`update memberships set role = 'admin' where account_id = ${uuid}`,
    ],
    [
      'demoted below the right to invite',
      'viewer',
      ({ uuid }) => server.sql`update memberships set role = 'member' where account_id = ${uuid}`,
    ],
    [
      'removed',
      'viewer',
      ({ uuid }) => server.sql`delete from memberships where account_id = ${uuid}`,
    ],
    ['deleted', 'viewer', ({ uuid }) => server.sql`delete from accounts where id = ${uuid}`],
  ])('%s', async (_, role, change) => {
    const organization = await newOrganization(server)
    const maker = await newMember(server, organization, 'owner')
    const path = `/api/organizations/${organization.id}/invites`
    const { url } = (await maker.post(path, { role })).body.data
    const json = { token: String(url).split('#')[1] }
    const account = await newSignedInAccount(server)
    expect((await account.post('/api/invites/look', json)).status).toBe(200)
    await change(maker)
    expect((await account.post('/api/invites/look', json)).status).toBe(404)
    expect((await account.post('/api/invites/accept', json)).status).toBe(404)
    const newcomer = { ...json, name: 'Eve', email: 'eve@example.com', password: newSecret(128) }
    expect((await createApi(server.url).post('/api/invites/accept', newcomer)).status).toBe(404)
  })

  test('and the audit log has each one that a lost role withdraws', async () => {
    const organization = await newOrganization(server)
    const owner = await newMember(server, organization, 'owner')
    const path = `/api/organizations/${organization.id}`
    const withdrawn: string[] = []
    for (const end of ['member', 'removed', 'left', 'deleted']) {
      const maker = await newMember(server, organization, 'admin')
      const { id } = (await maker.post(`${path}/invites`, { role: 'viewer' })).body.data
      const at = `${path}/members/${maker.id}`
      if (end === 'member') await owner.patch(at, { role: 'member' })
      else if (end === 'removed') await owner.delete(at)
      else if (end === 'left') await maker.delete(`${path}/membership`)
      else expect((await maker.delete('/api/me')).status).toBe(200)
      withdrawn.push(id)
    }
    const entries = await server.sql<{ target: string }[]>`
      select target from audit_log
      where organization_id = ${organization.uuid} and action = 'invite.withdrawn'
      order by id
    `
    expect(entries.map(({ target }) => target)).toEqual(withdrawn)
  })
})

test('a setup link claims nothing once an account exists, even if the link is still stored', async () => {
  const token = newSecret(128)
  await server.sql`
    insert into setup_links (hash, expires_at)
    values (decode(${hashSecret(token)}, 'hex'), now() + interval '30 minutes')
  `
  const claim = {
    token,
    name: 'Eve',
    email: 'eve@example.com',
    password: 'gravel monsoon nineteen',
  }
  expect((await createBrowser(server.url).post('/api/setup', claim)).status).toBe(404)
  expect(await server.sql`select from accounts where email = 'eve@example.com'`).toHaveLength(0)
})

test('a session has the present role of its account at each request, and none without the account', async () => {
  const organization = await newOrganization(server)
  const member = await newMember(server, organization, 'admin')
  const path = `/api/organizations/${organization.id}/invites`
  expect((await member.get(path)).status).toBe(200)
  const setRole = (role: string) =>
    server.sql`update memberships set role = ${role} where account_id = ${member.uuid}`
  await setRole('member')
  expect((await member.get(path)).status).toBe(403)
  await setRole('admin')
  expect((await member.get(path)).status).toBe(200)
  await server.sql`delete from accounts where id = ${member.uuid}`
  expect((await member.get(path)).status).toBe(401)
})

test('the address of a page, with all its filters, grants nothing', async () => {
  const stranger = await newSignedInAccount(server)
  const { projectId, organizationId, eventId, channelId } = tenant.params
  const query = new URLSearchParams({ q: tenant.names['title']!, channel: channelId! })
  for (const [path, api] of [
    [`/projects/${projectId}/feed?${query}`, `/api/projects/${projectId}/events?${query}`],
    [`/events/${eventId}`, `/api/projects/${projectId}/events/${eventId}`],
    [`/organizations/${organizationId}`, `/api/organizations/${organizationId}`],
  ] as const) {
    for (const headers of [{ cookie: '' }, { cookie: stranger.cookie }]) {
      const page = await fetch(server.url + path, {
        headers: { ...headers, accept: 'text/html' },
        redirect: 'manual',
      })
      const text = await page.text()
      // The page is the same for everybody: its data comes from /api.
      for (const name of Object.values(tenant.names)) expect(text).not.toContain(name)
    }
    expect((await stranger.get(api)).status).toBe(404)
    expect((await createApi(server.url).get(api)).status).toBe(401)
  }
})

test.each([
  ['a key', 'keys', { name: 'Late' }],
  ['a webhook', 'webhooks', { url: 'https://93.184.216.34/late' }],
  ['an invite', 'invites', { role: 'viewer' }],
])('a request for %s that waits while its maker is removed is refused', async (_, kind, json) => {
  const organization = await newOrganization(server)
  const admin = await newMember(server, organization, 'admin')
  const path =
    kind === 'invites'
      ? `/api/organizations/${organization.id}/invites`
      : `/api/projects/${organization.project.id}/${kind}`
  const waiting = await server.sql.begin(async tx => {
    await tx`select from organizations where id = ${organization.uuid} for no key update`
    await tx`delete from memberships where account_id = ${admin.uuid}`
    const answer = { promise: admin.post(path, json) }
    await until(async () => (await listBlocked(server.sql)).length > 0)
    return answer
  })
  const { status, body } = await waiting.promise
  expect([status, body.code]).toEqual([404, 'not_found'])
})

test('requests that wait for a slot of their account read nothing once its membership has ended', async () => {
  const organization = await newOrganization(server)
  const member = await newMember(server, organization, 'member')
  const path = `/api/projects/${organization.project.id}/events`
  await using hold = await lockEvents(server.sql)
  const answers = Array.from({ length: 12 }, () => member.get(path))
  // Four requests of an account run at once.
  await hold.untilBlocked(4)
  await server.sql`delete from memberships where account_id = ${member.uuid}`
  await hold.release()
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  const refused = statuses.filter(status => status === 404)
  // Background work may be one of the four that were blocked.
  expect(refused.length).toBeGreaterThanOrEqual(6)
  expect(statuses.filter(status => status === 200)).toHaveLength(12 - refused.length)
})
