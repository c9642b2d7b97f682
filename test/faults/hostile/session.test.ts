import { expect, test } from 'bun:test'
import { ageSessions } from '../../support/worlds/ageing.ts'
import { createBrowser, newAccount, PASSWORD } from '../../support/worlds/browser.ts'
import { newSubscription } from '../../support/worlds/push.ts'
import {
  newMember,
  newOrganization,
  newSignedInAccount,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { withServer } from '../../support/servers/server.ts'

// Attacks that act as another account, or with a higher role.
//
// Covered elsewhere: every unsafe route from every foreign page (api/cross-site), sockets from
// there (api/feed-guards), cookies of the wrong host, twice, or brought along (api/sign-in),
// guesses (api/sign-in-throttle), roles (api/roles), the time in which the password was typed
// (api/roles, api/password).

const server = withServer()

test.each([
  ['a method in a header', { 'x-http-method-override': 'DELETE' }, 405],
  ['a method in another header', { 'x-method-override': 'DELETE', 'x-http-method': 'DELETE' }, 405],
])('%s does not replace the method', async (_, headers, status) => {
  const account = await newSignedInAccount(server)
  const posted = await account.request('/api/sessions?_method=DELETE', { method: 'POST', headers })
  expect(posted.status).toBe(status)
  expect((await account.request('/api/sessions', { headers })).status).toBe(200)
  expect((await account.get('/api/me')).status).toBe(200)
})

test('a cookie of any other form is ignored', async () => {
  const { cookie } = await newSignedInAccount(server)
  const token = cookie.slice('tidings='.length)
  for (const other of [
    `Tidings=${token}`,
    `tidings="${token}"`,
    `tidings=${token}.`,
    `tidings=${token}%20`,
    `tidings=${encodeURIComponent(token)}=`,
    `tidings==${token}`,
    `=tidings=${token}`,
    `__Host-tidings=${token}`,
    `tidings=${token.toUpperCase()}`,
    `tidings=${token.slice(0, -1)}`,
    `tidings=' or true --`,
    `tidings=${'A'.repeat(43)}`,
    `tidings-device=${token}`,
  ]) {
    const { status } = await fetch(`${server.url}/api/me`, { headers: { cookie: other } })
    expect(`${other} ${status}`).toBe(`${other} 401`)
  }
})

test('fields that callers may not set do not raise their role', async () => {
  const organization = await newOrganization(server)
  const admin = await newMember(server, organization, 'admin')
  const more = {
    isOperator: true,
    is_operator: true,
    role: 'owner',
    id: admin.id,
    isVerified: true,
    organizationId: organization.id,
    ['__proto__']: { isOperator: true },
    constructor: { prototype: { isOperator: true } },
  }
  const edited = await admin.patch('/api/me', { name: 'Ada', ...more })
  expect(edited.body.data).toMatchObject({
    person: { name: 'Ada', isOperator: false },
    organizations: [{ role: 'admin' }],
  })
  expect((await admin.get('/api/server')).status).toBe(403)
  const invite = await admin.post(`/api/organizations/${organization.id}/invites`, {
    role: 'viewer',
  })
  const token = String(invite.body.data.url).split('#')[1]
  const stranger = await newSignedInAccount(server)
  const joined = await stranger.post('/api/invites/accept', { token, ...more })
  expect(joined.body.data.role).toBe('viewer')
  expect((await stranger.get('/api/server')).status).toBe(403)
})

const NAMES = ['\u202eadA', 'Ada\nadmin', '\u001b[31mAda', '\u200b\u2060', '\u3164', '\u2066Ada']

test('a name cannot contain text that reverses, breaks or hides the text around it', async () => {
  const organization = await newOrganization(server)
  const owner = await newMember(server, organization, 'owner')
  const { url } = (
    await owner.post(`/api/organizations/${organization.id}/invites`, { role: 'member' })
  ).body.data
  const newcomer = {
    token: String(url).split('#')[1],
    email: 'eve@example.com',
    password: PASSWORD,
  }
  for (const name of NAMES) {
    expect((await owner.patch('/api/me', { name })).status).toBe(400)
    const joined = await createBrowser(server.url).post('/api/invites/accept', {
      ...newcomer,
      name,
    })
    expect(joined.status).toBe(400)
    const renamed = await owner.patch(`/api/organizations/${organization.id}`, { name })
    expect(renamed.status).toBe(400)
  }
  for (const name of ['Ada 👩‍💻', 'عدا', 'Zoë', '伊']) {
    expect((await owner.patch('/api/me', { name })).status).toBe(200)
  }
})

test('the second question for the password cannot be bypassed', async () => {
  const organization = await newOrganization(server)
  const owner: SignedInAccount = await newMember(server, organization, 'owner')
  await server.sql`update sessions set verified_at = now() - interval '11 minutes'`
  const keys = `/api/projects/${organization.project.id}/keys`
  for (const [path, headers] of [
    [keys, { 'x-verified': '1' }],
    [`${keys}?isVerified=true`, {}],
    [keys.replace('/api/', '/api/./'), {}],
    [keys.replace('/projects', '/%70rojects'), {}],
    [`${keys}/`, {}],
    [keys.replace('/api', '/API'), {}],
  ] as const) {
    const answer = await owner.request(path, {
      method: 'POST',
      json: { name: 'x', isVerified: true, verified: true },
      headers,
    })
    expect(answer.status).toBeOneOf([403, 404])
  }
  const moved = await owner.patch('/api/me', { email: 'eve@elsewhere.example' })
  expect(moved.body.code).toBe('verification_needed')
})

test('a script that says it is an installed app, with a made-up device, gets no longer session', async () => {
  const account = await newAccount(server)
  const script = createBrowser(server.url)
  const credentials = { email: account.email, password: PASSWORD, isInstalled: true }
  expect((await script.post('/api/session', credentials)).status).toBe(200)
  const device = await script.post('/api/push/subscriptions', {
    ...newSubscription(),
    isProven: true,
    lastPushAt: new Date().toISOString(),
  })
  expect(device.status).toBe(200)
  const edited = await script.patch(`/api/push/subscriptions/${device.body.data.id}`, {
    isOn: true,
    isProven: true,
  })
  expect(edited.status).toBe(200)
  await ageSessions(server.sql, account.uuid, '7 days 1 minute')
  expect((await script.get('/api/me')).status).toBe(401)
})
