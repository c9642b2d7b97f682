import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createResetLink } from '../../../src/access/sign-in/reset-links.ts'
import { createSession } from '../../../src/access/guard/sessions.ts'
import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import { createBrowser, newAccount, newAddress, PASSWORD } from '../../support/worlds/browser.ts'
import {
  newMember,
  newOrganization,
  newSignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { newProject } from '../../support/worlds/project.ts'
import { boot, type Booted } from '../../support/servers/server.ts'

// Attacks with sign-in links: used twice, for another purpose, or by another account.
//
// Covered elsewhere: races and ends of setup links (api/setup), invites (api/invites, api/joining)
// and reset links (api/password-reset, api/member-reset-links).

const FRESH = 'gravel monsoon nineteen'

let server: Booted
beforeAll(async () => {
  server = await boot({ trustedProxies: ['127.0.0.0/8'] })
})
afterAll(() => server[Symbol.asyncDispose]())

/** Returns a live token of every kind. */
async function makeTokens(): Promise<Record<string, string>> {
  const organization = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const account = await newAccount(server)
  const invite = await owner.post(`/api/organizations/${organization.id}/invites`, {
    role: 'owner',
  })
  const link = await server.sql.begin(tx => createResetLink(tx, COMMAND_LINE, account.uuid))
  const session = await createSession(server.sql, {
    accountId: owner.uuid,
    method: 'password',
    isInstalled: false,
    isMultiFactor: false,
    address: '127.0.0.1',
    userAgent: 'test',
  })
  const browser = createBrowser(server.url)
  await browser.signIn(account.email, PASSWORD, newAddress())
  return {
    setup: server.server.setupToken!,
    invite: String(invite.body.data.url).split('#')[1]!,
    reset: link.token,
    session: session.token,
    device: browser.cookies.get('tidings-device')!,
    key: (await newProject(server)).key,
  }
}

test('a token is valid for its own purpose alone', async () => {
  const tokens = await makeTokens()
  for (const [kind, token] of Object.entries(tokens)) {
    const headers = { 'x-forwarded-for': newAddress() }
    const post = (path: string, json: object) =>
      createBrowser(server.url).request(path, { method: 'POST', json, headers })
    const newcomer = { name: 'Eve', email: `eve-${kind}@example.com`, password: FRESH }
    const tries: Record<string, number> = {
      invite: (await post('/api/invites/look', { token })).status,
      reset: (await post('/api/reset', { token, password: '1' })).status,
      session: (
        await fetch(`${server.url}/api/me`, { headers: { ...headers, cookie: `tidings=${token}` } })
      ).status,
      key: (
        await fetch(`${server.url}/v1/me`, {
          headers: { ...headers, authorization: `Bearer ${token}` },
        })
      ).status,
      // An owner exists, so the setup token is dead, too.
      setup: (await post('/api/setup', { token, ...newcomer })).status,
    }
    for (const [use, status] of Object.entries(tries)) {
      const opens = use === kind && use !== 'setup'
      // A refused password gets a 400 only with a valid token.
      const expected = opens ? (use === 'reset' ? [400] : [200]) : [401, 404]
      expect([kind, use, expected.includes(status)]).toEqual([kind, use, true])
    }
  }
})

test('a reset link that is used again, at once or later, changes nothing', async () => {
  const account = await newAccount(server)
  const { token } = await server.sql.begin(tx => createResetLink(tx, COMMAND_LINE, account.uuid))
  const use = (password: string) =>
    createBrowser(server.url).request('/api/reset', {
      method: 'POST',
      json: { token, password },
      headers: { 'x-forwarded-for': newAddress() },
    })
  expect((await use(FRESH)).status).toBe(200)
  expect((await use('copper walnut eighty')).status).toBe(404)
  const signedIn = await createBrowser(server.url).signIn(account.email, FRESH, newAddress())
  expect(signedIn.status).toBe(200)
})

test('a reset link is dead once its account has chosen a password', async () => {
  const account = await newAccount(server)
  const browser = createBrowser(server.url)
  await browser.signIn(account.email, PASSWORD, newAddress())
  const { token } = await server.sql.begin(tx => createResetLink(tx, COMMAND_LINE, account.uuid))
  const change = { currentPassword: PASSWORD, newPassword: FRESH }
  expect((await browser.put('/api/me/password', change)).status).toBe(200)
  const json = { token, password: 'copper walnut eighty' }
  expect((await createBrowser(server.url).post('/api/reset', json)).status).toBe(404)
})

test('a used invite admits no other account, and no removed member again', async () => {
  const organization = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const invites = `/api/organizations/${organization.id}/invites`
  const { url } = (await owner.post(invites, { role: 'member' })).body.data
  const token = String(url).split('#')[1]
  const first = await newSignedInAccount(server)
  expect((await first.post('/api/invites/accept', { token })).status).toBe(200)
  await owner.delete(`/api/organizations/${organization.id}/members/${first.id}`)
  for (const account of [first, await newSignedInAccount(server)]) {
    expect((await account.post('/api/invites/accept', { token })).status).toBe(404)
  }
  expect((await first.get(`/api/organizations/${organization.id}`)).status).toBe(404)
})

test('an open reset link is neither shown to nor withdrawn by anybody but its owners', async () => {
  const organization = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const member = await newMember(server, organization, 'member')
  const elsewhere = await newOrganization(server)
  const stranger = await newMember(server, elsewhere, 'owner')
  const path = `/api/organizations/${organization.id}`
  const made = await owner.post(`${path}/members/${member.id}/reset-link`)
  const { id, url } = made.body.data
  const links = `${path}/reset-links`
  for (const role of ['viewer', 'member', 'admin']) {
    const other = await newMember(server, organization, role as 'admin')
    expect((await other.get(links)).status).toBe(403)
    expect((await other.delete(`${links}/${id}`)).status).toBe(403)
  }
  expect((await stranger.get(links)).status).toBe(404)
  const there = `/api/organizations/${elsewhere.id}/reset-links`
  for (const tried of [id, member.id, id.replace('rst_', 'inv_'), "x' or true --", '%00']) {
    expect((await stranger.delete(`${there}/${encodeURIComponent(tried)}`)).status).toBe(404)
  }
  expect((await stranger.get(there)).body.data.items).toEqual([])
  const list = await owner.get(links)
  expect(list.body.data.items).toHaveLength(1)
  expect(JSON.stringify(list.body)).not.toContain(String(url).split('#')[1]!)
  // A token is no id.
  expect((await owner.delete(`${links}/${String(url).split('#')[1]}`)).status).toBe(404)
  expect((await owner.delete(`${links}/${id}`)).status).toBe(200)
  const json = { token: String(url).split('#')[1], password: FRESH }
  expect((await createBrowser(server.url).post('/api/reset', json)).status).toBe(404)
})
