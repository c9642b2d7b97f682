import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { ProviderSettings } from '../../src/config/openid.ts'
import { createBrowser, type TestBrowser } from '../support/browser.ts'
import {
  CLIENT_ID,
  CLIENT_SECRET,
  signInAt,
  startOpenidProvider,
  type Claims,
  type OpenidProvider,
} from '../support/openid-provider.ts'
import { newMember, newOrganization } from '../support/signed-in-account.ts'
import { boot, type Booted } from '../support/server.ts'
import { findFreePort } from '../support/loopback.ts'

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

describe('signing-in §openid a sign-in', () => {
  test('of a person with a rule creates an account with a role, and returns to the page', async () => {
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
})

type Rule = ['group' | 'domain', string, string, string?]

async function newRules(rules: readonly Rule[]) {
  const organization = await newOrganization(server)
  const owner = await newMember({ ...server, url }, organization, 'owner')
  const answered = await owner.put(`/api/organizations/${organization.id}/sign-in-rules`, {
    rules: rules.map(([kind, value, role, name = 'company']) => ({
      provider: name,
      kind,
      value,
      role,
    })),
  })
  expect(answered.status).toBe(200)
  return { organization, owner }
}

let people = 0
function newPerson(claims: Claims = {}, at = provider) {
  const login = `person-${people++}-${crypto.randomUUID().slice(0, 8)}`
  const email = `${login}@people.example`
  const set = (changed: Claims) =>
    at.people.set(login, { name: 'Ada', email, email_verified: true, ...changed })
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
