import { expect, test } from 'bun:test'
import { createResetLink } from '../../../src/access/sign-in/reset-links.ts'
import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { listAuditActions } from '../../support/audit.ts'
import {
  PASSWORD,
  WRONG_PASSWORD,
  createBrowser,
  listAccountAudit,
  newAccount,
  newAddress,
  newSignedIn,
  type TestAccount,
} from '../../support/worlds/browser.ts'
import { newManagementToken } from '../../support/worlds/management-token.ts'
import { insertPasskey } from '../../support/worlds/passkeys.ts'
import {
  newInvite,
  newMember,
  newOrganization,
  newTeam,
} from '../../support/worlds/signed-in-account.ts'
import { insertTotpSecret } from '../../support/worlds/totp.ts'
import { newProject } from '../../support/worlds/project.ts'
import { withServer } from '../../support/servers/server.ts'

const server = withServer({ trustedProxies: ['127.0.0.1/32'] })

const password = 'gravel monsoon nineteen'

const newLink = async ({ uuid }: Pick<TestAccount, 'uuid'>) =>
  (await server.sql.begin(tx => createResetLink(tx, COMMAND_LINE, uuid))).token

test('dashboard §2 a reset link sets a new password once, and ends every session', async () => {
  const account = await newAccount(server)
  const [browser, other] = [createBrowser(server.url), createBrowser(server.url)]
  for (const one of [browser, other]) await one.signIn(account.email, PASSWORD, newAddress())
  const token = await newLink(account)
  // An unacceptable password does not use up the link.
  const refused = await browser.post('/api/reset', { token, password: account.email })
  expectIssues(refused, 'password invalid_value')
  const answered = await browser.post('/api/reset', { token, password })
  expect([answered.status, answered.body.data]).toEqual([200, { email: account.email }])
  // The link does not sign in.
  expect(browser.cookies.has('tidings')).toBe(false)
  for (const one of [browser, other]) expect((await one.get('/api/me')).status).toBe(401)
  expectFailure(await browser.post('/api/reset', { token, password }), 404, 'not_found')
  expect((await browser.signIn(account.email)).status).toBe(401)
  expect((await browser.signIn(account.email, password)).status).toBe(200)
  expect((await listAccountAudit(server, account)).slice(2, 4)).toEqual([
    'command line: reset.created',
    'account: password.reset',
  ])
})

test('a reset link ends all else that gives access: factors, tokens, invites and reset links', async () => {
  const organization = await newOrganization(server)
  const [owner, member] = [
    await newMember(server, organization, 'owner'),
    await newMember(server, organization, 'viewer'),
  ]
  const invite = await newInvite(owner, organization, { role: 'owner' })
  const path = `/api/organizations/${organization.id}/members/${member.id}/reset-link`
  const made = await owner.post(path)
  const browser = createBrowser(server.url)
  const link = { token: made.body.data.url.split('#')[1] }
  const look = () => browser.post('/api/invites/look', { token: invite.token })
  expect((await look()).status).toBe(200)
  await insertPasskey(server, owner)
  await insertTotpSecret(server, owner)
  const accountId = owner.uuid
  const tokens = [
    await newManagementToken(server, { accountId }),
    await newManagementToken(server, { accountId, organizationId: organization.uuid }),
  ]
  const askAll = () =>
    Promise.all(tokens.map(async token => (await token.get('/api/token')).status))
  expect(await askAll()).toEqual([200, 200])
  const reset = { token: await newLink(owner), password }
  expect((await browser.post('/api/reset', reset)).status).toBe(200)
  expect(await askAll()).toEqual([401, 401])
  expect((await browser.signIn(owner.email, password)).body.data.credentials).toEqual({
    hasPassword: true,
    passkeys: 0,
    hasSecondFactor: false,
    recoveryCodes: 0,
  })
  expect((await look()).status).toBe(404)
  expectFailure(await browser.post('/api/reset', { ...link, password }), 404, 'not_found')
  expect(await listAuditActions(server.sql, organization.uuid)).toEqual(
    expect.arrayContaining(['invite.withdrawn', 'member.resetLinkWithdrawn']),
  )
})

test('dashboard §2 a link is dead after an hour, and when a newer one is made; forged ones never work', async () => {
  const account = await newAccount(server)
  const browser = createBrowser(server.url)
  const post = (token: string) => browser.post('/api/reset', { token, password })
  const older = await newLink(account)
  const newer = await newLink(account)
  const others = await newLink(await newAccount(server))
  for (const dead of [older, `${newer}x`, newer.toUpperCase(), 'x'.repeat(43), '\n']) {
    expectFailure(await post(dead), 404, 'not_found')
  }
  await server.sql`update reset_links set expires_at = expires_at - interval '1 hour'`
  for (const dead of [newer, others]) expectFailure(await post(dead), 404, 'not_found')
  expect((await browser.signIn(account.email)).status).toBe(200)
})

test('dashboard §2 of six concurrent uses of a link, one sets the password', async () => {
  const account = await newAccount(server)
  const token = await newLink(account)
  const passwords = Array.from({ length: 6 }, (_, at) => `${password} ${at}`)
  const answers = await Promise.all(
    passwords.map(password => createBrowser(server.url).post('/api/reset', { token, password })),
  )
  const winners = answers.flatMap(({ status }, at) => (status === 200 ? [at] : []))
  expect(winners).toHaveLength(1)
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(5).fill(404)])
  const winner = passwords[winners[0]!]!
  expect((await createBrowser(server.url).signIn(account.email, winner)).status).toBe(200)
})

test('reliability §6 a reset link works while others guess the password', async () => {
  const account = await newAccount(server)
  const address = newAddress()
  const guess = () => createBrowser(server.url).signIn(account.email, WRONG_PASSWORD, address)
  await guess()
  await server.sql`update sign_in_failures set failures = 16`
  const browser = createBrowser(server.url)
  expect((await browser.signIn(account.email, PASSWORD, address)).status).toBe(429)
  const token = await newLink(account)
  expect((await browser.post('/api/reset', { token, password })).status).toBe(200)
  // Failures between the link and the sign-in delay other browsers only: this one is known.
  for (let time = 0; time < 6; time++) await guess()
  expect((await browser.signIn(account.email, password, address)).status).toBe(200)
})

test('reliability §6 a reset forgets the known browsers', async () => {
  const { account, browser: thief } = await newSignedIn(server)
  await createBrowser(server.url).post('/api/reset', { token: await newLink(account), password })
  await server.sql`delete from sign_in_failures`
  const address = newAddress()
  for (let time = 0; time < 5; time++) await thief.signIn(account.email, WRONG_PASSWORD, address)
  // They count for the network: its other browsers are delayed, too.
  await server.sql`update sign_in_failures set last_at = clock_timestamp()`
  const other = createBrowser(server.url)
  expect((await other.signIn(account.email, password, address)).status).toBe(429)
})

test('reliability §6 a concurrent sign-in with the old password leaves no session after a reset', async () => {
  const account = await newAccount(server)
  const token = await newLink(account)
  const browsers = Array.from({ length: 4 }, () => createBrowser(server.url))
  const [reset, ...signIns] = await Promise.all([
    createBrowser(server.url).post('/api/reset', { token, password }),
    ...browsers.map(browser => browser.signIn(account.email, PASSWORD, newAddress())),
  ])
  expect(reset.status).toBe(200)
  expect(signIns.every(({ status }) => status === 200 || status === 401)).toBe(true)
  for (const browser of browsers) expect((await browser.get('/api/me')).status).toBe(401)
})

test('reliability §6 a token is valid for its own purpose alone', async () => {
  const [organization, owner] = await newTeam(server, 'owner')
  const invite = await newInvite(owner, organization, { role: 'owner' })
  const { account, browser } = await newSignedIn(server)
  const tokens = {
    // An owner exists, so the setup token is dead, too.
    setup: server.server.setupToken!,
    invite: invite.token,
    reset: await newLink(account),
    session: owner.cookie.split('=')[1]!,
    device: browser.cookies.get('tidings-device')!,
    key: (await newProject(server)).key,
  }
  for (const [kind, token] of Object.entries(tokens)) {
    const ask = async (path: string, json?: object, own = {}) => {
      const headers = { 'x-forwarded-for': newAddress(), ...own }
      const options = { ...(json && { method: 'POST', json }), headers }
      return (await createBrowser(server.url).request(path, options)).status
    }
    const newcomer = { name: 'Eve', email: `eve-${kind}@example.com`, password }
    const uses = {
      invite: await ask('/api/invites/look', { token }),
      // A refused password gets a 400 only with a valid token.
      reset: await ask('/api/reset', { token, password: '1' }),
      session: await ask('/api/me', undefined, { cookie: `tidings=${token}` }),
      key: await ask('/v1/me', undefined, { authorization: `Bearer ${token}` }),
      setup: await ask('/api/setup', { token, ...newcomer }),
    }
    for (const [use, status] of Object.entries(uses)) {
      const expected =
        use !== kind || use === 'setup' ? [401, 404] : use === 'reset' ? [400] : [200]
      expect([kind, use, expected]).toEqual([kind, use, expect.arrayContaining([status])])
    }
  }
})
