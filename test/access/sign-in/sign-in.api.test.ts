import { expect, spyOn, test } from 'bun:test'
import {
  PASSWORD,
  WRONG_PASSWORD,
  createBrowser,
  listAccountAudit,
  newAccount,
  newAddress,
  newSignedIn,
} from '../../support/worlds/browser.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { boot, withServer } from '../../support/servers/server.ts'

const server = withServer({ trustedProxies: ['127.0.0.1/32'] })

const SECRET = /^[\w-]{43}$/

test('design §6 POST /api/session signs in and answers like GET /api/me', async () => {
  const account = await newAccount(server)
  const browser = createBrowser(server.url)
  const { status, body } = await browser.signIn(` ${account.email.toUpperCase()} `)
  expect(status).toBe(200)
  expect(body.data.person).toMatchObject({ id: account.id, email: account.email })
  expect((await browser.get('/api/me')).body.data).toEqual(body.data)
  expect(await listAccountAudit(server, account)).toEqual(['account: session.created'])
})

test('reliability §6 cookies over http are HttpOnly, SameSite=Lax and of 256 bits, without Secure', async () => {
  const account = await newAccount(server)
  const answered = await createBrowser(server.url).signIn(account.email)
  const [session = '', device = '', ...others] = answered.headers.getSetCookie()
  expect(others).toEqual([])
  expect(session).toMatch(
    /^tidings=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=(2592000|2591999)$/,
  )
  expect(device).toMatch(
    /^tidings-device=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=34560000$/,
  )
  expect(answered.headers.get('cache-control')).toBe('no-store')
})

test('reliability §6 cookies over https are __Host- and Secure, and plain ones are ignored', async () => {
  await using secure = await boot({ baseUrl: 'https://tidings.example.com' })
  const account = await newAccount(secure)
  const headers = { host: 'tidings.example.com', origin: 'https://tidings.example.com' }
  const browser = createBrowser(secure.url)
  const json = { email: account.email, password: PASSWORD }
  const answered = await browser.request('/api/session', { method: 'POST', json, headers })
  expect(answered.status).toBe(200)
  for (const cookie of answered.headers.getSetCookie()) {
    expect(cookie).toMatch(/^__Host-tidings(-device)?=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax;/)
    expect(cookie).toEndWith('; Secure')
    expect(cookie).not.toContain('Domain')
  }
  expect((await browser.request('/api/me', { headers })).status).toBe(200)
  const token = browser.cookies.get('__Host-tidings')
  const plain = { ...headers, cookie: `tidings=${token}` }
  expect((await browser.request('/api/me', { headers: plain })).status).toBe(401)
})

test('reliability §6 a cookie of any other form, and two with one name, are ignored', async () => {
  const { browser } = await newSignedIn(server)
  const token = browser.cookies.get('tidings')!
  const others = [
    ...[`Tidings=${token}`, `tidings="${token}"`, `tidings=${token}.`, `tidings=${token}%20`],
    ...[`tidings=${token}=`, `tidings==${token}`, `=tidings=${token}`, `__Host-tidings=${token}`],
    ...[`tidings=${token.toUpperCase()}`, `tidings=${token.slice(0, -1)}`, "tidings=' or true --"],
    ...[`tidings-device=${token}`, `tidings=${'A'.repeat(43)}`],
    ...[`tidings=${token}; a=b; tidings=x`, `tidings=${token}; tidings=${token}`],
  ]
  for (const cookie of others) {
    const { status } = await browser.request('/api/me', { headers: { cookie } })
    expect([cookie, status]).toEqual([cookie, 401])
  }
})

test('reliability §6 an unknown e-mail, an account without password and a wrong password get the same 401', async () => {
  const account = await newAccount(server)
  const without = await newAccount(server)
  await server.sql`update accounts set password_hash = null where id = ${without.uuid}`
  const broken = await newAccount(server)
  await server.sql`update accounts set password_hash = 'garbage' where id = ${broken.uuid}`
  const browser = createBrowser(server.url)
  const answers = []
  for (const [email, password] of [
    [account.email, WRONG_PASSWORD],
    [account.email, PASSWORD.toUpperCase()],
    [without.email, PASSWORD],
    [broken.email, PASSWORD],
    ['nobody@example.com', PASSWORD],
  ] as const) {
    const answered = await browser.signIn(email, password, newAddress())
    expectFailure(answered, 401, 'wrong_credentials')
    expect(answered.headers.getSetCookie()).toEqual([])
    answers.push({ ...answered.body, requestId: '' })
  }
  expect(new Set(answers.map(answer => JSON.stringify(answer))).size).toBe(1)
  expect(await listAccountAudit(server, account)).toEqual([
    'anonymous: session.refused',
    'anonymous: session.refused',
  ])
})

test('reliability §6 a refusal verifies one password of the same cost for every e-mail', async () => {
  const browser = createBrowser(server.url)
  const { email } = await newAccount(server, { isCostly: true })
  const verify = spyOn(Bun.password, 'verify')
  try {
    for (const one of [email, `not-${email}`]) {
      await browser.signIn(one, WRONG_PASSWORD, newAddress())
    }
    // The algorithm and its costs come before the salt.
    const costs = verify.mock.calls.map(([, hash]) => String(hash).split('$').slice(0, 4))
    expect(costs).toEqual([costs[0]!, costs[0]!])
  } finally {
    verify.mockRestore()
  }
})

test('reliability §6 a token from the browser is never adopted', async () => {
  const account = await newAccount(server)
  const browser = createBrowser(server.url)
  const planted = 'A'.repeat(43)
  browser.cookies.set('tidings', planted).set('tidings-device', planted)
  expect((await browser.signIn(account.email)).status).toBe(200)
  for (const name of ['tidings', 'tidings-device']) {
    expect(browser.cookies.get(name)).toMatch(SECRET)
    expect(browser.cookies.get(name)).not.toBe(planted)
  }
})

test('reliability §6 signing in ends the former session of the browser', async () => {
  const [account, other] = [await newAccount(server), await newAccount(server)]
  const browser = createBrowser(server.url)
  await browser.signIn(account.email)
  const before = { cookie: `tidings=${browser.cookies.get('tidings')}` }
  await browser.signIn(other.email)
  expect((await browser.request('/api/me', { headers: before })).status).toBe(401)
  // A failed sign-in ends none.
  expect((await browser.signIn(other.email, WRONG_PASSWORD)).status).toBe(401)
  expect((await browser.get('/api/me')).body.data.person.id).toBe(other.id)
  expect(await listAccountAudit(server, account)).toEqual([
    'account: session.created',
    'account: session.ended',
  ])
})

test('design §6 DELETE /api/session signs out, and succeeds without a session', async () => {
  const { browser } = await newSignedIn(server)
  const before = { cookie: `tidings=${browser.cookies.get('tidings')}` }
  for (let time = 0; time < 2; time++) {
    const answered = await browser.delete('/api/session')
    expect(answered.status).toBe(200)
    expect(answered.headers.get('clear-site-data')).toBe('"cache", "storage"')
    expect(answered.headers.getSetCookie()).toEqual([
      'tidings=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0',
    ])
  }
  expect((await browser.request('/api/me', { headers: before })).status).toBe(401)
  // The browser stays known.
  expect(browser.cookies.has('tidings-device')).toBe(true)
})

test('contract §12 an invalid sign-in request is a 400 that repeats none of its values', async () => {
  const browser = createBrowser(server.url)
  expectIssues(await browser.post('/api/session', {}), 'email required', 'password required')
  const answered = await browser.post('/api/session', {
    email: PASSWORD,
    password: 'x'.repeat(513),
    isInstalled: 'yes',
  })
  expectIssues(answered, 'email invalid_format', 'password too_long', 'isInstalled invalid_type')
  expect(answered.text).not.toContain(PASSWORD)
})
