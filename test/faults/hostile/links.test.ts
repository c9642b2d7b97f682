import { expect, test } from 'bun:test'
import { createResetLink } from '../../../src/access/sign-in/reset-links.ts'
import { createSession } from '../../../src/access/guard/sessions.ts'
import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import { createBrowser, newAccount, newAddress, PASSWORD } from '../../support/worlds/browser.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { newProject } from '../../support/worlds/project.ts'
import { withServer } from '../../support/servers/server.ts'

// Attacks with sign-in links: used twice, for another purpose, or by another account.
//
// Covered elsewhere: races and ends of setup links (api/setup), invites (api/invites, api/joining)
// and reset links (api/password-reset, api/member-reset-links).

const FRESH = 'gravel monsoon nineteen'

const server = withServer({ trustedProxies: ['127.0.0.0/8'] })

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
