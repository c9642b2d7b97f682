import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createResetLink } from '../../../src/access/sign-in/reset-links.ts'
import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import { parseConfig, type Config } from '../../../src/base/config.ts'
import type { ProviderSettings } from '../../../src/base/config/openid.ts'
import { newId } from '../../../src/base/ids.ts'
import { expectFailure } from '../../support/answers.ts'
import {
  createBrowser,
  newAccount,
  PASSWORD,
  type TestBrowser,
} from '../../support/worlds/browser.ts'
import type { Tx } from '../../../src/database/sql.ts'
import { hold, sendWhile } from '../../support/database-lock.ts'
import { openFeed } from '../../support/clients/feed.ts'
import {
  CLIENT_ID,
  CLIENT_SECRET,
  signInAt,
  startOpenidProvider,
  type Claims,
  type OpenidProvider,
} from '../../support/servers/openid-provider.ts'
import {
  addMember,
  newInvite,
  newMember,
  newOrganization,
  newSession,
  newSignedInAccount,
  newTeam,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { newManagementToken } from '../../support/worlds/management-token.ts'
import { insertPasskey } from '../../support/worlds/passkeys.ts'
import { insertTotpSecret } from '../../support/worlds/totp.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { findFreePort } from '../../support/loopback.ts'
import { captureLog } from '../../support/log.ts'
import { makeFolder } from '../../support/scratch.ts'
import { testSecrets } from '../../support/secret.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'

let provider: OpenidProvider
let other: OpenidProvider
let server: Booted
let url: string
beforeAll(async () => {
  ;[provider, other] = await Promise.all([startOpenidProvider(), startOpenidProvider()])
  const port = await findFreePort()
  url = `http://localhost:${port}`
  server = await boot(
    {
      port,
      egressAllowCidrs: ['127.0.0.0/8', '::1/128'],
      trustedProxies: ['127.0.0.1/32'],
      authProxyHeader: 'remote-email',
      providers: [
        toSettings('company', provider.issuer),
        toSettings('other', other.issuer),
        { ...toSettings('trusted', provider.issuer), isTrusted: true },
      ],
    },
    { keyCooldownMs: 0, kinds: [] },
  )
  provider.serve(url, ['company', 'trusted'])
  other.serve(url, ['other'])
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await Promise.all([provider[Symbol.asyncDispose](), other[Symbol.asyncDispose]()])
})
beforeEach(() => {
  provider.forge = undefined
  provider.failure = undefined
})

describe('contract §12 a sign-in at a provider', () => {
  test('creates an account with the role of a rule, and returns to the page', async () => {
    const { organization } = await newRules([['group', 'staff', 'member']])
    const person = newPerson({ groups: ['staff'] })
    const browser = createBrowser(url)
    const { location } = await visit(browser, person.login, { next: '/notifications?x=1' })
    expect(location).toBe('/notifications?x=1')
    const me = (await browser.get('/api/me')).body.data
    expect(me.person).toMatchObject({ name: 'Ada', email: person.email, isOperator: false })
    expect(me.organizations).toMatchObject([{ id: organization.id, role: 'member' }])
    expect((await browser.get('/api/sessions')).body.data.items[0].method).toBe('openid')
    // From then on, issuer and subject identify the account, whatever the address is.
    person.set({ email: `other-${person.email}`, email_verified: false, groups: ['staff'] })
    const again = createBrowser(url)
    expect((await visit(again, person.login)).location).toBe('/')
    expect((await again.get('/api/me')).body.data.person.id).toBe(me.person.id)
  })

  test('ends at the next page, if that is one of ours', async () => {
    const person = await newKnownPerson()
    for (const [next, expected] of [
      ['//evil.example', '/'],
      ['https://evil.example', '/'],
      ['/\\evil.example', '/'],
      ['/api/me', '/'],
      ['/p/a?channel=b', '/p/a?channel=b'],
    ] as const) {
      expect((await visit(createBrowser(url), person.login, { next })).location).toBe(expected)
    }
  })

  test('of an unknown person, or with an unverified address, is refused', async () => {
    const stranger = newPerson()
    expect((await visit(createBrowser(url), stranger.login)).problem).toBe('unknown')
    await newRules([['group', 'staff', 'member']])
    for (const email_verified of [false, 'true', undefined]) {
      const person = newPerson({ email_verified, groups: ['staff'] })
      expect((await visit(createBrowser(url), person.login)).problem).toBe('unverified')
    }
  })

  test('accepts an invite for the verified address, and only for it', async () => {
    const { organization, owner } = await newRules([])
    const person = newPerson()
    const token = async (email?: string) =>
      (await newInvite(owner, organization, { role: 'admin', ...(email && { email }) })).token
    const other = await token('other@people.example')
    const refused = await visit(createBrowser(url), person.login, { invite: other })
    expect(refused.problem).toBe('invite')
    const browser = createBrowser(url)
    const own = await token(person.email)
    expect((await visit(browser, person.login, { invite: own })).problem).toBeNull()
    const { organizations } = (await browser.get('/api/me')).body.data
    expect(organizations).toMatchObject([{ id: organization.id, role: 'admin' }])
    // A member is signed in. The invite stays open for somebody else.
    const again = createBrowser(url)
    const second = await token()
    expect((await visit(again, person.login, { invite: second })).problem).toBeNull()
    expect((await again.get('/api/me')).body.data.organizations).toMatchObject([{ role: 'admin' }])
    const preview = await createBrowser(url).post('/api/invites/look', { token: second })
    expect(preview.status).toBe(200)
  })
})

describe('contract §12 an existing account', () => {
  test('is connected only once it is signed in with its own credential', async () => {
    const account = await newAccount(server)
    const person = newPerson({ email: account.email })
    const browser = createBrowser(url)
    const first = await visit(browser, person.login)
    expect(first.location).toBe('/sign-in?next=%2F')
    expect((await browser.get('/api/me')).status).toBe(401)
    const { confirmation } = (await browser.get('/api/sign-in')).body.data
    expect(confirmation).toEqual({ label: 'company', email: account.email })
    // Another account in this browser gets nothing.
    const stranger = await newAccount(server)
    await browser.signIn(stranger.email)
    expect((await browser.post('/api/openid/confirmation')).status).toBe(409)
    await browser.signIn(account.email)
    expect((await browser.post('/api/openid/confirmation')).status).toBe(200)
    const again = createBrowser(url)
    expect((await visit(again, person.login)).location).toBe('/')
    expect((await again.get('/api/me')).body.data.person.id).toBe(account.id)
  })

  test('with another identity at a trusted provider is refused', async () => {
    const account = await newAccount(server)
    const options = { name: 'trusted' }
    const [person, successor] = [newPerson({}, account.email), newPerson({}, account.email)]
    expect((await visit(createBrowser(url), person.login, options)).location).toBe('/')
    const refused = await visit(createBrowser(url), successor.login, options)
    expect(refused.problem).toBe('otherIdentity')
  })

  test('connects no identity with an address that it has just left', async () => {
    const account = await newAccount(server)
    const person = newPerson({ email: account.email })
    const browser = createBrowser(url)
    await visit(browser, person.login)
    await browser.signIn(account.email)
    const confirm = () => browser.post('/api/openid/confirmation')
    const moved = `moved-${account.email}`
    expect((await whileMoving(account.uuid, moved, confirm)).status).toBe(409)
    const other = newPerson({ email: moved })
    const callback = await begin(browser, other.login, { purpose: 'connect' })
    const connect = () => finish(browser, callback)
    const done = await whileMoving(account.uuid, `again-${moved}`, connect)
    expect(done.problem).toBe('address')
    expect((await browser.get('/api/me/connections')).body.data.items).toEqual([])
  })

  test('is not connected once its provider has another issuer', async () => {
    const account = await newAccount(server)
    const person = newPerson({ email: account.email })
    const browser = createBrowser(url)
    await visit(browser, person.login)
    await browser.signIn(account.email)
    await using moved = await boot(
      { databaseUrl: server.databaseUrl, providers: [toSettings('company', other.issuer)] },
      { kinds: [] },
    )
    const there = createBrowser(moved.url)
    for (const [name, value] of browser.cookies) there.cookies.set(name, value)
    expectFailure(await there.post('/api/openid/confirmation'), 409, 'conflict')
    expect((await there.get('/api/me/connections')).body.data.items).toEqual([])
  })

  test('proves no address that it has just left', async () => {
    const account = await newAccount(server)
    const person = newPerson({ email: account.email })
    const moved = `moved-${account.email}`
    const atProvider = createBrowser(url)
    const visited = await begin(atProvider, person.login, { name: 'trusted' })
    const first = await whileMoving(account.uuid, moved, () => finish(atProvider, visited))
    expect(first.problem).toBe('unknown')
    const atProxy = () =>
      createBrowser(url).request('/api/session/proxy', {
        method: 'POST',
        json: {},
        headers: { 'remote-email': moved },
      })
    const second = await whileMoving(account.uuid, `again-${moved}`, atProxy)
    expect([second.status, second.body.code]).toEqual([403, 'forbidden'])
    const [row] = await server.sql`
      select is_email_proven, password_hash is null as is_emptied
      from accounts where id = ${account.uuid}
    `
    expect(row).toEqual({ is_email_proven: false, is_emptied: false })
  })

  test('connects itself, verifies at the provider, and disconnects while another way in is left', async () => {
    const { account, browser, person } = await newOwnPerson()
    const stranger = newPerson()
    const wrong = await visit(browser, stranger.login, { purpose: 'connect', next: '/account' })
    expect([wrong.problem, wrong.location.split('?')[0]]).toEqual(['address', '/account'])
    const done = await visit(browser, person.login, { purpose: 'connect', next: '/account' })
    expect(done.location).toBe('/account')
    await server.sql`
      update sessions set verified_at = now() - interval '1 hour' where account_id = ${account.uuid}
    `
    expect((await browser.get('/api/me')).body.data.isVerified).toBe(false)
    const verified = await visit(browser, person.login, { purpose: 'verify', next: '/account' })
    expect(verified.location).toBe('/account')
    expect((await browser.get('/api/me')).body.data.isVerified).toBe(true)
    const { items } = (await browser.get('/api/me/connections')).body.data
    expect(items).toMatchObject([{ provider: 'company', label: 'company' }])
    await server.sql`update accounts set password_hash = null where id = ${account.uuid}`
    const path = `/api/me/connections/${items[0].id}`
    expect((await browser.delete(path)).status).toBe(409)
    await server.sql`update accounts set password_hash = 'x' where id = ${account.uuid}`
    expect((await browser.delete(path)).status).toBe(200)
  })

  test('keeps its password while its only connection is to a provider that is gone', async () => {
    const { browser, person } = await newOwnPerson()
    await visit(browser, person.login, { purpose: 'connect', next: '/account' })
    await using without = await boot(
      { databaseUrl: server.databaseUrl, providers: [toSettings('other', other.issuer)] },
      { kinds: [] },
    )
    const there = createBrowser(without.url)
    for (const [name, value] of browser.cookies) there.cookies.set(name, value)
    expectFailure(await there.delete('/api/me/password'), 409, 'conflict')
    expect((await browser.delete('/api/me/password')).status).toBe(200)
  })
})

describe('contract §12 rules of an organization', () => {
  test('change and end only memberships that they gave', async () => {
    const { organization } = await newRules([
      ['group', 'staff', 'viewer'],
      ['group', 'leads', 'admin'],
      ['domain', 'people.example', 'viewer'],
    ])
    const person = newPerson({ groups: ['staff', 'leads'] })
    expect((await visit(createBrowser(url), person.login)).problem).toBeNull()
    expect(await readRole(organization.uuid, person.email)).toBe('admin')
    person.set({ groups: [] })
    await visit(createBrowser(url), person.login)
    expect(await readRole(organization.uuid, person.email)).toBe('viewer')
    person.set({ groups: [], email_verified: false })
    const browser = createBrowser(url)
    expect((await visit(browser, person.login)).problem).toBeNull()
    expect(await readRole(organization.uuid, person.email)).toBeUndefined()
    expect((await browser.get(`/api/organizations/${organization.id}`)).status).toBe(404)
    const [entry] = await server.sql<{ details: object; actor: string }[]>`
      select details, actor from audit_log
      where organization_id = ${organization.uuid} and action = 'member.removed'
    `
    expect(entry).toEqual({ actor: 'server', details: { role: 'viewer', provider: 'company' } })
  })

  test('keep the last owner of an organization', async () => {
    const { organization, owner } = await newRules([['group', 'owners', 'owner']])
    const person = newPerson({ groups: ['owners'] })
    await visit(createBrowser(url), person.login)
    await server.sql`
      delete from memberships
      where organization_id = ${organization.uuid} and account_id = ${owner.uuid}
    `
    person.set({ groups: [] })
    await visit(createBrowser(url), person.login)
    expect(await readRole(organization.uuid, person.email)).toBe('owner')
  })

  test('never draw in a member of another organization', async () => {
    const person = await newKnownPerson()
    const [account] = await server.sql<[{ uuid: string }]>`
      select id as uuid from accounts where email = ${person.email}
    `
    const { organization } = await newRules([['group', 'everyone', 'viewer']])
    const foreign = await newOrganization(server)
    await addMember(server, foreign, account, 'viewer')
    person.set({ groups: ['everyone'] })
    await visit(createBrowser(url), person.login)
    expect(await readRole(organization.uuid, person.email)).toBeUndefined()
    expect(await readRole(foreign.uuid, person.email)).toBe('viewer')
  })

  test('are refused with an unknown provider, an invalid domain, or disruptive text', async () => {
    const { organization, owner } = await newRules([])
    const put = async (...rules: object[]) => {
      const path = `/api/organizations/${organization.id}/sign-in-rules`
      const answered = await owner.put(path, {
        rules: rules.map(rule => ({ provider: 'company', value: 'a', role: 'viewer', ...rule })),
      })
      expect(answered.status).toBe(400)
      return answered.body.details.map((issue: { path: string[] }) => issue.path.join('.'))
    }
    expect(
      await put(
        { provider: 'nowhere', kind: 'group' },
        { kind: 'domain', value: 'no domain' },
        { provider: 'proxy', kind: 'group' },
      ),
    ).toEqual(['rules.0.provider', 'rules.1.value', 'rules.2.kind'])
    expect(
      await put({ kind: 'group', value: 'a\u202e' }, { kind: 'domain', value: 'a\u0007.example' }),
    ).toEqual(['rules.0.value', 'rules.1.value'])
  })
})

describe('contract §12 the claims of a provider', () => {
  test('have an address and its verification from one source', async () => {
    const victim = await newKnownPerson()
    const thief = newPerson({ groups: ['staff'] })
    for (const claims of [
      { email: victim.email },
      { email: victim.email, email_verified: false },
      { email: thief.email, email_verified: false },
    ]) {
      provider.forge = given => ({ ...given, ...claims })
      const browser = createBrowser(url)
      expect((await visit(browser, thief.login, { name: 'trusted' })).problem).toBe('unverified')
    }
    // The token has the address alone, and the endpoint has it with its verification.
    provider.forge = given => ({ ...given, email: thief.email })
    const { problem } = await visit(createBrowser(url), thief.login, { name: 'trusted' })
    expect(problem).toBe('unknown')
  })

  test('about the sign-in itself are those of the token, which is signed', async () => {
    const person = await newKnownPerson()
    person.set({ groups: ['staff'], amr: ['mfa'], auth_time: 1 })
    const browser = createBrowser(url)
    expect((await visit(browser, person.login)).location).toBe('/')
    const [session] = (await browser.get('/api/sessions')).body.data.items
    expect(session.isMultiFactor).toBe(false)
  })

  test('verify the session if a credential was entered just now, by any clock', async () => {
    const person = await newKnownPerson()
    const browser = createBrowser(url)
    await visit(browser, person.login)
    for (const [aheadS, ageS, problem] of [
      [0, 0, null],
      [0, 120, 'stale'],
      [-240, 0, null],
      [240, 120, 'stale'],
      [240, 0, null],
    ] as const) {
      provider.forge = given => ({
        ...given,
        iat: Number(given.iat) + aheadS,
        exp: Number(given.exp) + aheadS,
        auth_time: Number(given['auth_time']) + aheadS - ageS,
      })
      const verified = await visit(browser, person.login, { purpose: 'verify', next: '/account' })
      expect([aheadS, ageS, verified.problem]).toEqual([aheadS, ageS, problem])
      provider.forge = undefined
    }
  })
})

describe('contract §12 a callback is refused', () => {
  test('with another state, in another browser, of another provider, and a second time', async () => {
    const person = await newKnownPerson()
    const browser = createBrowser(url)
    const callback = await begin(browser, person.login)
    const changed = new URL(callback)
    changed.searchParams.set('state', 'another')
    expect((await finish(createBrowser(url), callback)).problem).toBe('expired')
    const kept = browser.cookies.get('tidings-openid') ?? ''
    expect((await finish(browser, changed)).problem).toBe('expired')
    const mixed = new URL(callback)
    mixed.pathname = '/openid/other/callback'
    browser.cookies.set('tidings-openid', kept)
    expect((await finish(browser, mixed)).problem).toBe('expired')
    browser.cookies.set('tidings-openid', kept)
    expect((await finish(browser, callback)).location).toBe('/')
    browser.cookies.set('tidings-openid', kept)
    expect((await finish(browser, callback)).problem).toBe('expired')
  })

  test('with other claims, and the log says which once', async () => {
    const person = await newKnownPerson()
    const now = Math.floor(Date.now() / 1000)
    using log = captureLog()
    for (const [changed, problem] of [
      [{ sub: 'another' }, 'invalid'],
      [{ nonce: 'another' }, 'invalid'],
      [{ aud: 'another' }, 'invalid'],
      [{ iss: 'https://evil.example' }, 'invalid'],
      // The clock of the provider may be 5 minutes ahead or behind.
      [{ exp: now - 660, iat: now - 4000 }, 'clock'],
      [{ exp: now - 290, iat: now - 4000 }, null],
      [{ iat: now + 290, nbf: now + 290, exp: now + 4000 }, null],
      [{ iat: now + 660, nbf: now + 660, exp: now + 4000 }, 'clock'],
    ] as const) {
      provider.forge = claims => ({ ...claims, ...changed })
      const visited = await visit(createBrowser(url), person.login)
      expect([changed, visited.problem]).toEqual([changed, problem])
    }
    expect(log.lines.join(' ')).toContain('has an unexpected sub')
    provider.forge = undefined
    const browser = createBrowser(url)
    const callback = await begin(browser, person.login)
    callback.searchParams.set('iss', other.issuer)
    expect((await finish(browser, callback)).problem).toBe('invalid')
  })

  test('with an unknown key; a key that the provider has published since is fetched', async () => {
    const person = await newKnownPerson()
    await provider.rotateKey(false)
    expect((await visit(createBrowser(url), person.login)).problem).toBe('invalid')
    await provider.rotateKey(true)
    expect((await visit(createBrowser(url), person.login)).problem).toBeNull()
  })
})

test('contract §12 a provider that is away leaves sessions and passwords alone, and the sign-in page names it', async () => {
  const person = await newKnownPerson()
  const browser = createBrowser(url)
  await visit(browser, person.login)
  const waiting = createBrowser(url)
  const late = await begin(waiting, person.login)
  provider.failure = 503
  expect((await finish(waiting, late)).problem).toBe('unavailable')
  expect((await browser.get('/api/me')).status).toBe(200)
  const { providers } = (await createBrowser(url).get('/api/sign-in')).body.data
  expect(providers).toContainEqual({ name: 'company', label: 'company', isFailing: true })
  expect(providers).toContainEqual({ name: 'other', label: 'other', isFailing: false })
  const operator = await newSignedInAccount({ ...server, url }, { isOperator: true })
  const check = () => operator.post('/api/server/providers/company/check')
  expect((await check()).body.data.problem).toContain('no OpenID Connect metadata')
  const path = '/api/openid/company/visits'
  const refused = await createBrowser(url).post(path, { purpose: 'signIn' })
  expectFailure(refused, 503, 'unavailable')
  provider.failure = undefined
  expect((await check()).body.data.problem).toBeNull()
  expect((await visit(createBrowser(url), person.login)).problem).toBeNull()
})

test('contract §12 back-channel logout ends the sessions of a token of the provider, and forged tokens end none', async () => {
  const person = await newKnownPerson()
  const browser = createBrowser(url)
  const sid = await visitWithSid(browser, person.login)
  const elsewhere = createBrowser(url)
  await visitWithSid(elsewhere, person.login)
  const now = Math.floor(Date.now() / 1000)
  const claims = {
    iss: provider.issuer,
    aud: CLIENT_ID,
    iat: now,
    exp: now + 120,
    jti: crypto.randomUUID(),
    sub: person.login,
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  }
  const { sub: _, ...anonymous } = claims
  const changes = [
    ...[{ aud: 'another' }, { iss: other.issuer }, { nonce: 'x' }, { events: {} }],
    { iat: now - 3600, exp: now + 60 },
  ]
  const forged = [
    await other.sign(claims),
    await provider.sign(anonymous),
    ...(await Promise.all(changes.map(change => provider.sign({ ...claims, ...change })))),
    `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`,
    'nonsense',
  ]
  for (const token of forged) expect(await logOut(token)).toBe(400)
  expect((await browser.get('/api/me')).status).toBe(200)
  const feeds = await Promise.all([browser, elsewhere].map(openFeedOf))
  // The provider's own token names the session.
  await provider.endSession(person.login, sid)
  expect((await feeds[0]!.closed).code).toBe(1008)
  expect((await browser.get('/api/me')).status).toBe(401)
  expect((await elsewhere.get('/api/me')).status).toBe(200)
  const genuine = await provider.sign(claims)
  expect(await logOut(genuine)).toBe(200)
  expect((await feeds[1]!.closed).code).toBe(1008)
  expect((await elsewhere.get('/api/me')).status).toBe(401)
  expect(await logOut(genuine)).toBe(400)
})

describe('contract §12 the proxy header', () => {
  const signIn = (headers: Record<string, string>, at = url) =>
    createBrowser(at).request('/api/session/proxy', { method: 'POST', json: {}, headers })

  test('signs in an existing account by one request of the own page', async () => {
    const account = await newAccount(server)
    const headers = { 'Remote-Email': account.email.toUpperCase() }
    const earlier = createBrowser(server.url)
    expect((await earlier.signIn(account.email)).status).toBe(200)
    const browser = createBrowser(server.url)
    const options = await browser.request('/api/sign-in', { headers })
    expect(options.body.data.proxyEmail).toBe(account.email)
    const post = { method: 'POST', json: {}, headers }
    expect((await browser.request('/api/session/proxy', post)).status).toBe(200)
    const { items } = (await browser.get('/api/sessions')).body.data
    expect(items.map(({ method }: { method: string }) => method)).toEqual(['proxy'])
    expect((await createBrowser(server.url).signIn(account.email)).status).toBe(401)
    // Only the first sign-in does this.
    expect((await signIn(headers, server.url)).status).toBe(200)
    expect((await browser.get('/api/me')).status).toBe(200)
    const cross = { ...headers, 'sec-fetch-site': 'cross-site' }
    expect((await signIn(cross, server.url)).status).toBe(403)
  })

  test('is a way in: the last password can go while it is set', async () => {
    const account = await newAccount(server)
    await signIn({ 'Remote-Email': account.email })
    await server.sql`
      update accounts set password_hash = 'x', is_email_proven = true where id = ${account.uuid}
    `
    await using without = await boot({ databaseUrl: server.databaseUrl }, { kinds: [] })
    const remove = async (at: string) => {
      const browser = createBrowser(at)
      useSession(browser, await newSession(server, account))
      return browser.delete('/api/me/password')
    }
    expectFailure(await remove(without.url), 409, 'conflict')
    expect((await remove(url)).status).toBe(200)
  })

  test('is ignored without a value, with two, and from other peers', async () => {
    const { email } = await newAccount(server)
    for (const value of ['', `evil@x.example, ${email}`, `${email},${email}`, 'nobody']) {
      expect((await signIn({ 'Remote-Email': value }, server.url)).status).toBe(403)
    }
    await using untrusting = await boot(
      { trustedProxies: ['192.0.2.0/24'], authProxyHeader: 'remote-email' },
      { kinds: [] },
    )
    const account = await newAccount(untrusting)
    const answered = await signIn({ 'Remote-Email': account.email }, untrusting.url)
    expect(answered.status).toBe(403)
  })

  test('creates an account only with an invite or a rule for the domain', async () => {
    const email = `${crypto.randomUUID()}@proxied.example`
    expect((await signIn({ 'Remote-Email': email }, server.url)).status).toBe(403)
    const { organization } = await newRules([['domain', 'proxied.example', 'viewer', 'proxy']])
    expect((await signIn({ 'Remote-Email': email }, server.url)).status).toBe(200)
    expect(await readRole(organization.uuid, email)).toBe('viewer')
  })
})

test.each(['provider', 'proxy'] as const)(
  'locks: the %s signs a member in beside a lock of the organization, and then of the account',
  async identity => {
    const group = crypto.randomUUID()
    const { organization } = await newRules([['group', group, 'viewer']])
    const person = newPerson({ groups: [group] })
    expect((await visit(createBrowser(url), person.login)).problem).toBeNull()
    const lock = await hold(
      server.sql,
      tx => tx`select from organizations where id = ${organization.uuid} for no key update`,
      tx => tx`select from accounts where email = ${person.email} for no key update`,
    )
    const browser = createBrowser(url)
    const signingIn =
      identity === 'proxy' ? IDENTITIES.proxy(browser, person) : visit(browser, person.login)
    await lock.untilBlocked()
    await lock.release()
    await signingIn
    expect((await browser.get('/api/me')).status).toBe(200)
  },
)

test('contract §12 with passwords off only owners sign in with a password, if it was set from the machine', async () => {
  await using strict = await boot({ arePasswordsOff: true }, { kinds: [] })
  const account = await newAccount(strict)
  const [organization, owner] = await newTeam(strict, 'owner')
  const browser = createBrowser(strict.url)
  expect((await browser.get('/api/sign-in')).body.data.hasPasswords).toBe(false)
  expect((await browser.signIn(account.email)).status).toBe(401)
  const link = `/api/organizations/${organization.id}/members/${account.id}/reset-link`
  await addMember(strict, organization, account, 'owner')
  expect((await owner.post(link)).status).toBe(403)
  const { token } = await newInvite(owner, organization, { role: 'viewer' })
  const joined = await createBrowser(strict.url).post('/api/invites/accept', {
    token,
    name: 'Eve',
    email: 'eve@people.example',
    password: PASSWORD,
  })
  expect(joined.status).toBe(403)
  const reset = await strict.sql.begin(tx => createResetLink(tx, COMMAND_LINE, account.uuid))
  const password = 'crimson lighthouse forty'
  expect((await browser.post('/api/reset', { token: reset.token, password })).status).toBe(200)
  expect((await browser.signIn(account.email, password)).status).toBe(200)
  const change = { currentPassword: password, newPassword: 'amber windmill thirty' }
  expect((await browser.put('/api/me/password', change)).status).toBe(403)
  await strict.sql`update memberships set role = 'admin' where account_id = ${account.uuid}`
  expect((await createBrowser(strict.url).signIn(account.email, password)).status).toBe(401)
})

/** Accounts that the first sign-in meets, and does not give away without their own factor. */
const PROTECTED = ['passkey', 'app', 'operator', 'strict organization'] as const
type Found = (typeof PROTECTED)[number] | 'nothing'
const IDENTITIES = {
  async provider(browser: TestBrowser, person: Person) {
    await visit(browser, person.login, { name: 'trusted' })
  },
  async 'provider that reports MFA'(browser: TestBrowser, person: Person) {
    provider.forge = claims => ({ ...claims, amr: ['pwd', 'mfa'] })
    await visit(browser, person.login, { name: 'trusted' })
    provider.forge = undefined
  },
  async proxy(browser: TestBrowser, { email }: Person) {
    const headers = { 'remote-email': email }
    await browser.request('/api/session/proxy', { method: 'POST', json: {}, headers })
  },
}
const FIRST_SIGN_INS = (Object.keys(IDENTITIES) as (keyof typeof IDENTITIES)[]).flatMap(
  identity => [
    [identity, 'nothing', false] as const,
    [identity, 'nothing', true] as const,
    // A proven address gives nothing away either.
    ...PROTECTED.map((found, at) => [identity, found, at % 2 === 0] as const),
  ],
)

test.each(FIRST_SIGN_INS)(
  'the first sign-in by %s meets an account with %s, with the address proven: %s',
  async (identity, found, isProven) => {
    const { account, person, strict } = await newFound(found, isProven)
    const strong = await newSession(server, account, { method: 'passkey', isMultiFactor: true })
    const kept = await readWaysIn(account.uuid)
    const enter = async () => {
      const browser = createBrowser(url)
      await IDENTITIES[identity](browser, person)
      return browser
    }
    const browser = await enter()
    if (found === 'nothing') {
      const { credentials } = (await browser.get('/api/me')).body.data
      expect(credentials).toMatchObject({ hasPassword: isProven, passkeys: 0 })
      return
    }
    expect(browser.cookies.has('tidings')).toBe(false)
    const { confirmation } = (await browser.get('/api/sign-in')).body.data
    expect(confirmation.email).toBe(account.email)
    expect(await readWaysIn(account.uuid)).toEqual(kept)
    // A stolen password confirms nothing, and takes in nobody.
    const hasFactor = found === 'passkey' || found === 'app'
    const confirm = () => browser.post('/api/openid/confirmation')
    useSession(browser, await newSession(server, account))
    if (hasFactor) expectFailure(await confirm(), 403, 'second_factor_needed')
    expect((await enter()).cookies.has('tidings')).toBe(false)
    useSession(browser, strong)
    expect((await confirm()).status).toBe(200)
    const later = await enter()
    expect(later.cookies.has('tidings')).toBe(true)
    expect(await readWaysIn(account.uuid)).toEqual(kept)
    const path = `/api/organizations/${strict.id}`
    if (identity === 'provider that reports MFA') {
      expect((await later.get(path)).status).toBe(200)
      return
    }
    expectFailure(await later.get(path), 403, 'second_factor_needed')
    if (!hasFactor) return
    for (const enrol of ['/api/second-factor', '/api/passkeys/options']) {
      expectFailure(await later.post(enrol), 403, 'second_factor_needed')
    }
  },
)

test.each(['provider', 'proxy'] as const)(
  'the first sign-in by %s removes no factor that the account gets while it waits',
  async identity => {
    const { account, person } = await newFound('nothing', false)
    const kept = await readWaysIn(account.uuid)
    const browser = createBrowser(url)
    await sendWhile(
      server.sql,
      account.uuid,
      tx => insertPasskey({ sql: tx as never }, account),
      () => IDENTITIES[identity](browser, person),
    )
    expect(browser.cookies.has('tidings')).toBe(false)
    expect(await readWaysIn(account.uuid)).toEqual({ ...kept, passkeys: 1 })
  },
)

test('a connection is refused if the account gets a factor during the visit', async () => {
  const { account, browser, person } = await newOwnPerson()
  const callback = await begin(browser, person.login, { purpose: 'connect' })
  await insertPasskey(server, account)
  expect((await finish(browser, callback)).problem).toBe('expired')
  expect((await browser.get('/api/me/connections')).body.data.items).toEqual([])
})

test('an account that changes its address is no longer that of its former address at the proxy', async () => {
  const { account, person } = await newFound('passkey', true)
  const browser = createBrowser(url)
  await IDENTITIES.proxy(browser, person)
  const strong = await newSession(server, account, { method: 'passkey', isMultiFactor: true })
  useSession(browser, strong)
  expect((await browser.post('/api/openid/confirmation')).status).toBe(200)
  const moved = `moved-${account.email}`
  expect((await browser.patch('/api/me', { email: moved })).status).toBe(200)
  for (const email of [account.email, moved]) {
    const later = createBrowser(url)
    await IDENTITIES.proxy(later, { ...person, email })
    expect(later.cookies.has('tidings')).toBe(false)
  }
})

test('an upgrade asks for the settings of stored providers, and requires them where only they sign in', async () => {
  await using former = await startOpenidProvider()
  const dataDir = makeFolder()
  const port = await findFreePort()
  const databaseUrl = await cloneDatabase()
  const start = (providers: ProviderSettings[] = [], config: Partial<Config> = {}) =>
    boot(
      {
        ...{ databaseUrl, dataDir, providers, port },
        ...{ baseUrl: `http://localhost:${port}`, egressAllowCidrs: ['127.0.0.0/8', '::1/128'] },
        ...config,
      },
      { kinds: [] },
    )
  const first = await start()
  const account = await newAccount(first)
  const { uuid: id } = newId('con')
  const cell = { table: 'openid_providers', column: 'client_secret', rowId: id }
  await first.sql`
    insert into openid_providers ${first.sql({
      ...{ id, name: 'company-login', label: 'The Company', issuer: former.issuer },
      ...{ client_id: CLIENT_ID, client_secret: testSecrets().seal(CLIENT_SECRET, cell) },
      ...{ scopes: 'openid email groups', groups_claim: 'groups', is_trusted: true },
    })}
  `
  await first.sql`
    insert into openid_connections (id, issuer, subject, account_id, provider)
    values (${id}, ${former.issuer}, 'grace', ${account.uuid}, 'company-login')
  `
  await first[Symbol.asyncDispose]()
  const prefix = 'OIDC_COMPANY_LOGIN'
  const file = join(dataDir, 'oidc-company-login-client-secret')
  const lines = [
    `${prefix}_ISSUER=${former.issuer}`,
    `${prefix}_CLIENT_ID=${CLIENT_ID}`,
    `${prefix}_CLIENT_SECRET_FILE=${file}`,
    `${prefix}_LABEL=The Company`,
    `${prefix}_SCOPES=openid email groups`,
    `${prefix}_GROUPS_CLAIM=groups`,
    `${prefix}_TRUSTED=true`,
  ]
  // The password is no way in while passwords are off.
  const failure = await start([], { arePasswordsOff: true }).catch(error => error)
  expect(failure.message.split('\n  ').slice(1)).toEqual(lines)
  expect(failure.message).toContain(
    'Accounts that can sign in only at a provider of the database: 1.',
  )
  expect(failure.message).not.toContain(CLIENT_SECRET)
  expect([readFileSync(file, 'utf8').trim(), statSync(file).mode & 0o777]).toEqual([
    CLIENT_SECRET,
    0o600,
  ])
  const toEntry = (line: string) => line.split(/=(.*)/, 2) as [string, string]
  const env = Object.fromEntries(lines.map(toEntry))
  const { providers } = parseConfig(env, path => readFileSync(path, 'utf8'))
  const server = await start(providers, { arePasswordsOff: true })
  former.serve(`http://localhost:${port}`, ['company-login'])
  const browser = createBrowser(`http://localhost:${port}`)
  expect((await visit(browser, 'grace', { name: 'company-login' })).location).toBe('/')
  expect((await browser.get('/api/me')).body.data.person.id).toBe(account.id)
  await server.sql`update openid_providers set is_handed_over = false`
  await server[Symbol.asyncDispose]()
  // Nobody depends on it any more: the lines are a warning, once.
  using log = captureLog()
  for (const warnings of [lines.length + 1, 0]) {
    await (await start())[Symbol.asyncDispose]()
    expect(log.lines.splice(0).filter(line => line.includes('openid'))).toHaveLength(warnings)
  }
})

test('contract §12 failed callbacks of a network are limited before they reach the provider', async () => {
  const person = await newKnownPerson()
  const from = { headers: { 'x-forwarded-for': '198.51.100.10' } }
  /** Opens a callback, with its code or another one. Returns its status and its problem. */
  const call = async (code?: string) => {
    const browser = createBrowser(url)
    const callback = await begin(browser, person.login)
    if (code !== undefined) callback.searchParams.set('code', code)
    const { status, headers } = await browser.request(callback.pathname + callback.search, from)
    return [status, new URL(headers.get('location') ?? '', url).searchParams.get('problem')]
  }
  const before = provider.redemptions
  for (let nth = 0; nth < 59; nth++) expect(await call('x')).toEqual([303, 'invalid'])
  // A success is not counted.
  for (let nth = 0; nth < 2; nth++) expect(await call()).toEqual([303, null])
  expect(await call('x')).toEqual([303, 'invalid'])
  for (let nth = 0; nth < 2; nth++) expect(await call('x')).toEqual([429, null])
  expect(provider.redemptions - before).toBe(62)
})

// The last test, because the server writes what it has counted when it stops.
test('contract §12 failed callbacks are limited while the provider fails, and are in the audit log', async () => {
  const from = { headers: { 'x-forwarded-for': '198.51.100.9' } }
  const visits = await Promise.all(
    Array.from({ length: 61 }, async () => {
      const browser = createBrowser(server.url)
      const json = { purpose: 'signIn' }
      const path = '/api/openid/company/visits'
      const started = await browser.request(path, { method: 'POST', json, ...from })
      const state = new URL(started.body.data.url).searchParams.get('state')
      return { browser, state }
    }),
  )
  provider.failure = 503
  const answers: number[] = []
  for (const { browser, state } of visits) {
    const query = new URLSearchParams({ code: 'x', state: state ?? '', iss: provider.issuer })
    answers.push((await browser.request(`/openid/company/callback?${query}`, from)).status)
  }
  expect(answers).toEqual([...Array<number>(60).fill(303), 429])
  await server.server.stop()
  const [row] = await server.sql`
    select string_agg(distinct details ->> 'ways', ' ') as ways, sum((details ->> 'count')::int)::int as count
    from audit_log
    where action = 'session.refused' and organization_id is null and address = '198.51.100.9'
  `
  expect(row).toEqual({ ways: 'company unavailable', count: 60 })
})

/** An account, signed in, and a person with its address at the provider. */
async function newOwnPerson() {
  const account = await newAccount(server)
  const browser = createBrowser(url)
  await browser.signIn(account.email)
  return { account, browser, person: newPerson({ email: account.email }) }
}

/** A person who already has an account, by a rule of an organization. */
async function newKnownPerson() {
  const group = crypto.randomUUID()
  await newRules([['group', group, 'viewer']])
  const person = newPerson({ groups: [group] })
  expect((await visit(createBrowser(url), person.login)).problem).toBeNull()
  return person
}

/**
 * An account whose address a person has at the provider and the proxy. Unless it is met with
 * nothing, it is also an owner of the organization `strict`, which requires a factor.
 */
async function newFound(found: Found, isProven: boolean) {
  const account = await newAccount(server)
  const { uuid } = account
  const strict = await newOrganization(server)
  await server.sql`
    update accounts set is_operator = ${found === 'operator'}, is_email_proven = ${isProven}
    where id = ${uuid}
  `
  await server.sql`update organizations set requires_second_factor = true where id = ${strict.uuid}`
  if (found !== 'nothing') await addMember(server, strict, account, 'owner')
  if (found === 'passkey') await insertPasskey(server, account)
  if (found === 'app') await insertTotpSecret(server, account)
  await newManagementToken(server, { accountId: uuid, isMultiFactor: true })
  return { account, person: newPerson({}, account.email), strict }
}

function useSession(browser: TestBrowser, { cookie }: SignedInAccount): void {
  browser.cookies.set('tidings', cookie.replace('tidings=', ''))
}

/** Returns what signs an account in, without its connections and its weak sessions. */
async function readWaysIn(accountId: string) {
  const [row] = await server.sql`
    select
      a.password_hash,
      (select count(*)::int from passkeys where account_id = a.id) as passkeys,
      (select count(*)::int from totp_secrets where account_id = a.id) as apps,
      (select count(*)::int from management_tokens where account_id = a.id) as tokens,
      (select count(*)::int from sessions where account_id = a.id and method = 'passkey') as sessions
    from accounts a
    where a.id = ${accountId}
  `
  return row
}

async function readRole(organizationId: string, email: string): Promise<string | undefined> {
  const [row] = await server.sql<{ role: string }[]>`
    select m.role
    from memberships m
      join accounts a on a.id = m.account_id
    where m.organization_id = ${organizationId} and a.email = ${email}
  `
  return row?.role
}

async function visitWithSid(browser: TestBrowser, login: string): Promise<string> {
  let sid = ''
  provider.forge = claims => {
    sid = String(claims['sid'])
    return claims
  }
  expect((await visit(browser, login)).problem).toBeNull()
  provider.forge = undefined
  return sid
}

/** Changes the address of an account after `request` was admitted, and before it has the row. */
function whileMoving<Answer>(accountId: string, email: string, request: () => Promise<Answer>) {
  const move = (tx: Tx) => tx`update accounts set email = ${email} where id = ${accountId}`
  return sendWhile(server.sql, accountId, move, request)
}

function openFeedOf(browser: TestBrowser) {
  return openFeed(url, { cookie: `tidings=${browser.cookies.get('tidings')}` })
}

async function logOut(token: string): Promise<number> {
  const { status } = await fetch(`${url}/openid/company/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: token }),
  })
  return status
}

type Rule = ['group' | 'domain', string, string, string?]

async function newRules(rules: readonly Rule[]) {
  const organization = await newOrganization(server)
  const owner = await newMember({ ...server, url }, organization, 'owner')
  await server.sql`update accounts set is_operator = true where id = ${owner.uuid}`
  const answered = await owner.put(`/api/organizations/${organization.id}/sign-in-rules`, {
    rules: rules.map(([kind, value, role, provider = 'company']) => ({
      ...{ provider, kind, value, role },
    })),
  })
  expect(answered.status).toBe(200)
  return { organization, owner }
}

type Person = ReturnType<typeof newPerson>

let people = 0
function newPerson(claims: Claims = {}, own?: string) {
  const login = `person-${people++}-${crypto.randomUUID().slice(0, 8)}`
  const email = own ?? `${login}@people.example`
  const set = (changed: Claims) =>
    provider.people.set(login, { name: 'Ada', email, email_verified: true, ...changed })
  set(claims)
  return { login, email, set }
}

/** Signs in at a provider, and opens the callback with the query that it sent. */
async function visit(
  browser: TestBrowser,
  login: string,
  options: { name?: string; next?: string; purpose?: string; invite?: string } = {},
) {
  const callback = await begin(browser, login, options)
  return finish(browser, callback)
}

async function begin(
  browser: TestBrowser,
  login: string,
  {
    name = 'company',
    purpose = 'signIn',
    ...rest
  }: { name?: string; next?: string; purpose?: string; invite?: string } = {},
): Promise<URL> {
  const started = await browser.post(`/api/openid/${name}/visits`, { purpose, ...rest })
  expect([started.status, started.body.error]).toEqual([201, undefined])
  return new URL(await signInAt(started.body.data.url, login))
}

async function finish(browser: TestBrowser, { pathname, search }: URL) {
  const answered = await browser.request(`${pathname}${search}`)
  const location = answered.headers.get('location') ?? ''
  const problem = new URL(location, url).searchParams.get('problem')
  return { status: answered.status, location, problem }
}

function toSettings(name: string, issuer: string): ProviderSettings {
  return {
    name,
    label: name,
    issuer,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    scopes: 'openid email profile groups',
    groupsClaim: 'groups',
    isTrusted: false,
  }
}
