import { expect, test } from 'bun:test'
import { ageSessions } from '../../support/worlds/ageing.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import {
  createBrowser,
  listAccountAudit,
  newAccount,
  newAddress,
  PASSWORD,
} from '../../support/worlds/browser.ts'
import { insertSubscription, newSubscription } from '../../support/worlds/push.ts'
import { newInvite, newSignedInAccount, newTeam } from '../../support/worlds/signed-in-account.ts'
import { withServer } from '../../support/servers/server.ts'

const server = withServer({ trustedProxies: ['127.0.0.1/32'] })

/** Signs an account in, by default not from an installed app. */
async function signIn(email: string, isInstalled = false) {
  const browser = createBrowser(server.url)
  const answered = await browser.request('/api/session', {
    method: 'POST',
    json: { email, password: PASSWORD, isInstalled },
    headers: { 'user-agent': 'Test browser', 'x-forwarded-for': newAddress() },
  })
  expect(answered.status).toBe(200)
  return { ...browser, answered }
}

test('design §6 GET /api/me returns the account, its organizations and projects', async () => {
  const [organization, account] = await newTeam(server, 'member')
  const { body } = await account.get('/api/me')
  expect(body.data.person).toMatchObject({ id: account.id, email: account.email })
  expect(body.data.organizations).toMatchObject([
    { id: organization.id, role: 'member', projects: [{ id: organization.project.id }] },
  ])
})

test('case 19: an ended session is refused on the next request, in the full envelope', async () => {
  const account = await newSignedInAccount(server)
  expect((await account.get('/api/me')).status).toBe(200)
  await server.sql`delete from sessions where account_id = ${account.uuid}`
  expectFailure(await account.get('/api/me'), 401, 'signed_out')
})

test('a page that means another account than that of its session is refused', async () => {
  const account = await newSignedInAccount(server)
  const mean = (id: string, path = '/api/me') =>
    account.request(path, { headers: { 'X-Account': id } })
  expect((await mean(account.id)).status).toBe(200)
  expectFailure(await mean('per_other'), 401, 'other_account')
  expectFailure(await mean('per_other', '/api/sign-in'), 401, 'other_account')
})

/** Signs in from an installed app whose subscription is proven or not; null has none. */
async function signInInstalled(isProven: boolean | null) {
  const account = await newAccount(server)
  const browser = await signIn(account.email, true)
  if (isProven === null) return { account, ...browser }
  const [{ id: sessionId }] = await server.sql<[{ id: string }]>`
    select id from sessions where account_id = ${account.uuid}
  `
  await insertSubscription(server, { uuid: account.uuid, sessionId })
  await server.sql`update push_subscriptions set is_proven = ${isProven}`
  return { account, ...browser }
}

const NEARLY_A_WEEK = '6 days 23 hours'
test.each<[string, boolean | null | undefined, string[], string]>([
  // A request is a use: another week begins.
  ['7 days without use', undefined, Array(2).fill(NEARLY_A_WEEK), '7 days'],
  ['30 days, regardless of use', undefined, Array(4).fill(NEARLY_A_WEEK), '3 days'],
  ['7 days in an app without a device', null, [NEARLY_A_WEEK], '7 days 1 minute'],
  ['7 days in an app whose push nobody accepted', false, [NEARLY_A_WEEK], '7 days 1 minute'],
  ['a year in an app that accepted a push', true, ['364 days'], '3 days'],
])('reliability §6 a session ends after %s', async (_, isProven, uses, more) => {
  const isInstalled = isProven !== undefined
  const own = isInstalled ? await signInInstalled(isProven) : undefined
  const account = own?.account ?? (await newAccount(server))
  const browser = own ?? (await signIn(account.email))
  for (const interval of uses) {
    await ageSessions(server.sql, account.uuid, interval)
    expect((await browser.get('/api/me')).status).toBe(200)
  }
  await ageSessions(server.sql, account.uuid, more)
  expectFailure(await browser.get('/api/me'), 401, 'signed_out')
})

test('reliability §6 the session of an app has the cookie of a year, and falls back to 30 days without its device', async () => {
  const { account, answered, get } = await signInInstalled(true)
  // A year has 365 or 366 days.
  expect(answered.headers.getSetCookie()[0]).toMatch(/; Max-Age=(31536000|31622400)$/)
  await ageSessions(server.sql, account.uuid, '31 days')
  expect((await get('/api/me')).status).toBe(200)
  await server.sql`delete from push_subscriptions where account_id = ${account.uuid}`
  expectFailure(await get('/api/me'), 401, 'signed_out')
})

test('reliability §6 a script that says it is an installed app, with a made-up device, gets no longer session', async () => {
  const account = await newAccount(server)
  const script = await signIn(account.email, true)
  const proof = { isProven: true, lastPushAt: new Date().toISOString() }
  const device = await script.post('/api/push/subscriptions', { ...newSubscription(), ...proof })
  expect(device.status).toBe(200)
  const path = `/api/push/subscriptions/${device.body.data.id}`
  expect((await script.patch(path, { isOn: true, ...proof })).status).toBe(200)
  await ageSessions(server.sql, account.uuid, '7 days 1 minute')
  expect((await script.get('/api/me')).status).toBe(401)
})

test('reliability §6 fields that callers may not set do not raise their role', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const more = {
    ...{ isOperator: true, is_operator: true, role: 'owner', id: admin.id, isVerified: true },
    organizationId: organization.id,
    ['__proto__']: { isOperator: true },
    constructor: { prototype: { isOperator: true } },
  }
  const edited = await admin.patch('/api/me', { name: 'Ada', ...more })
  expect(edited.body.data).toMatchObject({
    person: { name: 'Ada', isOperator: false },
    organizations: [{ role: 'admin' }],
  })
  const { token } = await newInvite(admin, organization, { role: 'viewer' })
  const stranger = await newSignedInAccount(server)
  const joined = await stranger.post('/api/invites/accept', { token, ...more })
  expect(joined.body.data.role).toBe('viewer')
  for (const account of [admin, stranger]) {
    expect((await account.get('/api/server')).status).toBe(403)
  }
})

test("dashboard §2 GET /api/sessions lists the account's live sessions, newest first, page by page", async () => {
  const account = await newAccount(server)
  await signIn((await newAccount(server)).email)
  const gone = await signIn(account.email)
  await ageSessions(server.sql, account.uuid, '8 days')
  expect((await gone.get('/api/me')).status).toBe(401)
  const [first, second] = [await signIn(account.email, true), await signIn(account.email)]
  const { body } = await first.get('/api/sessions')
  expect(body.data).toEqual({
    items: [false, true].map(isFirst => ({
      id: expect.stringMatching(/^ses_/),
      createdAt: expect.any(String),
      lastSeenAt: expect.any(String),
      address: expect.stringMatching(/^10\./),
      userAgent: 'Test browser',
      browser: 'A browser',
      method: 'password',
      isMultiFactor: false,
      isInstalled: isFirst,
      isCurrent: isFirst,
    })),
    nextCursor: null,
  })
  const page = (await second.get('/api/sessions?limit=1')).body.data
  expect(page.items).toEqual([{ ...body.data.items[0], isCurrent: true }])
  const next = (await second.get(`/api/sessions?limit=1&cursor=${page.nextCursor}`)).body.data
  expect(next).toEqual({ items: [{ ...body.data.items[1], isCurrent: false }], nextCursor: null })
  expectIssues(await second.get('/api/sessions?cursor=x'), 'cursor invalid_format')
  expectIssues(await second.get('/api/sessions?limit=101'), 'limit out_of_range')
})

test('dashboard §2 an account ends one of its own sessions, and no other', async () => {
  const [account, other] = [await newAccount(server), await newAccount(server)]
  const [here, there] = [await signIn(account.email), await signIn(account.email)]
  const stranger = await signIn(other.email)
  const [, { id }] = (await there.get('/api/sessions')).body.data.items
  for (const wrong of [id.slice(0, -1), 'ses_x', account.id]) {
    expectFailure(await here.delete(`/api/sessions/${wrong}`), 404, 'not_found')
  }
  expectFailure(await stranger.delete(`/api/sessions/${id}`), 404, 'not_found')
  expect((await here.get('/api/me')).status).toBe(200)

  const ended = await there.delete(`/api/sessions/${id}`)
  expect([ended.status, ended.headers.getSetCookie()]).toEqual([200, []])
  expect((await here.get('/api/me')).status).toBe(401)
  expect((await there.get('/api/me')).status).toBe(200)
  const own = (await there.get('/api/sessions')).body.data.items[0].id
  const left = await there.delete(`/api/sessions/${own}`)
  expect(left.headers.getSetCookie()[0]).toStartWith('tidings=;')
  expect((await listAccountAudit(server, account)).slice(-2)).toEqual([
    'account: session.ended',
    'account: session.ended',
  ])
})

test('dashboard §2 signing out everywhere ends every session, including this one', async () => {
  const [account, other] = [await newAccount(server), await newAccount(server)]
  const browsers = [await signIn(account.email), await signIn(account.email, true)]
  const stranger = await signIn(other.email)
  const answered = await browsers[0]!.delete('/api/sessions')
  expect(answered.body.data).toEqual({ sessionsEnded: 2 })
  expect(answered.headers.get('clear-site-data')).toBe('"cache", "storage"')
  expect(browsers[0]!.cookies.has('tidings')).toBe(false)
  for (const browser of browsers) expect((await browser.get('/api/me')).status).toBe(401)
  expect((await stranger.get('/api/me')).status).toBe(200)
  expect((await listAccountAudit(server, account)).at(-1)).toBe('account: sessions.ended')
})

test('an account has at most 100 sessions: the least recently used one without a device ends', async () => {
  const account = await newAccount(server)
  const phone = await signIn(account.email)
  const [{ id: sessionId }] = await server.sql<[{ id: string }]>`
    select id from sessions where account_id = ${account.uuid}
  `
  await insertSubscription(server, { uuid: account.uuid, sessionId })
  const [old, older] = [await signIn(account.email), await signIn(account.email)]
  await ageSessions(server.sql, account.uuid, '1 hour')
  await old.get('/api/me')
  await server.sql`
    insert into sessions (id, hash, account_id, is_installed, method, address, user_agent)
    select gen_random_uuid(), sha256(gen_random_uuid()::text::bytea), ${account.uuid}, false, 'password', '', ''
    from generate_series(1, 97)
  `
  const fresh = await signIn(account.email)
  expect((await older.get('/api/me')).status).toBe(401)
  expect((await old.get('/api/me')).status).toBe(200)
  expect((await fresh.get('/api/sessions?limit=100')).body.data.items).toHaveLength(100)
  // With devices alone, the least recently used one ends, and never the new session.
  const rows = await server.sql<{ id: string }[]>`
    select id from sessions where account_id = ${account.uuid} and id <> ${sessionId}
  `
  for (const { id } of rows) await insertSubscription(server, { uuid: account.uuid, sessionId: id })
  const last = await signIn(account.email)
  expect((await phone.get('/api/me')).status).toBe(401)
  expect((await last.get('/api/sessions?limit=100')).body.data.items).toHaveLength(100)
})
