import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  CREDENTIAL_ACTIONS,
  FACTORS,
  isAllowedTo,
  SESSION_KINDS,
  type CredentialAction,
  type Factors,
  type SessionKind,
} from '../../../src/access/guard/credential-table.ts'
import { ACTIONS, listCredentials } from '../../../src/access/guard/permissions.ts'
import type { NewSession } from '../../../src/access/guard/sessions.ts'
import { newId, parseId, toId } from '../../../src/base/ids.ts'
import type { Tx } from '../../../src/database/sql.ts'
import { expectFailure } from '../../support/answers.ts'
import { createAuthenticator } from '../../support/clients/authenticator.ts'
import { API } from '../../support/contracts.ts'
import { lockAccountRow } from '../../support/database-lock.ts'
import { listRows, readSection } from '../../support/docs.ts'
import { findFreePort } from '../../support/loopback.ts'
import { BODIES } from '../../support/request-bodies.ts'
import {
  CLIENT_ID,
  CLIENT_SECRET,
  signInAt,
  startOpenidProvider,
  type OpenidProvider,
} from '../../support/servers/openid-provider.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import {
  createBrowser,
  newAccount,
  newAddress,
  PASSWORD,
  type TestAccount,
  type TestBrowser,
} from '../../support/worlds/browser.ts'
import { insertConnection } from '../../support/worlds/connections.ts'
import { newManagementToken } from '../../support/worlds/management-token.ts'
import { insertPasskey, toOrigin } from '../../support/worlds/passkeys.ts'
import type { Answered } from '../../support/worlds/project.ts'
import {
  newMember,
  newOrganization,
  newSession,
  type SignedInAccount,
  type TestOrganization,
} from '../../support/worlds/signed-in-account.ts'
import { insertTotpSecret, toTotpCode } from '../../support/worlds/totp.ts'
import { scaled } from '../../support/until.ts'

let server: Booted
let provider: OpenidProvider
let organization: TestOrganization
/** The row of a session that was made in each way. */
let made: Record<SessionKind, Pick<NewSession, 'method' | 'isMultiFactor'>>
beforeAll(async () => {
  provider = await startOpenidProvider()
  const port = await findFreePort()
  const booted = await boot(
    {
      port,
      egressAllowCidrs: ['127.0.0.0/8', '::1/128'],
      trustedProxies: ['127.0.0.1/32'],
      authProxyHeader: 'remote-email',
      providers: [
        {
          name: 'trusted',
          label: 'Trusted',
          issuer: provider.issuer,
          clientId: CLIENT_ID,
          clientSecret: CLIENT_SECRET,
          scopes: 'openid email profile groups',
          groupsClaim: 'groups',
          isTrusted: true,
        },
      ],
    },
    { kinds: [] },
  )
  server = { ...booted, url: `http://localhost:${port}` }
  provider.serve(server.url, ['trusted'])
  organization = await newOrganization(server)
  made = await signInInEveryWay()
}, scaled(120_000))
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
})

const ROWS = Object.keys(CREDENTIAL_ACTIONS) as CredentialAction[]
const KINDS = Object.keys(SESSION_KINDS) as SessionKind[]
/** Actions that depend on the factors of the account. */
const STRICT = ROWS.filter(
  action => action !== 'account.prove' && CREDENTIAL_ACTIONS[action].passkey === 'multi-factor',
)

/** An account in one of the states, and what its requests name. */
interface Cell {
  account: SignedInAccount
  organization: TestOrganization
  memberId: string | undefined
  /** The secret of its authenticator app. */
  secret: string | undefined
  passkeyId: string
  connectionId: string | undefined
  tokenIds: { personal: string; organization: string } | undefined
  spareSessionId: string
}

test('every way to sign in proves what the table says', () => {
  const proven = Object.entries(made).map(([kind, { isMultiFactor }]) => [kind, isMultiFactor])
  expect(Object.fromEntries(proven)).toEqual(SESSION_KINDS)
  expect(new Set(Object.values(made).map(({ method }) => method)).size).toBe(5)
})

test('the table has every action on credentials of the account', () => {
  const OTHERS = new Set([
    ...['account.read', 'account.edit', 'overview.read'],
    ...['push.read', 'push.subscribe', 'push.edit', 'push.remove', 'push.test'],
  ])
  const own = Object.entries(ACTIONS).flatMap(([name, { on }]) => (on === 'account' ? [name] : []))
  expect(own.filter(name => !OTHERS.has(name) && !(name in CREDENTIAL_ACTIONS))).toEqual([])
})

test('an action that requires a verification requires the own factor, too', () => {
  const verifying = Object.entries(ACTIONS).flatMap(([name, rule]) =>
    'requiresVerification' in rule ? [name] : [],
  )
  expect(verifying.filter(name => !(STRICT as string[]).includes(name))).toEqual([])
})

// `account.prove` needs no session, and has a table of its own.
const CELLS = ROWS.filter(action => action !== 'account.prove').flatMap(action =>
  KINDS.map(kind => [action, kind] as [CredentialAction, SessionKind]),
)

test.each(CELLS)('%s in a session by %s', async (action, kind) => {
  const outcomes = await Promise.all(
    FACTORS.map(async factors => {
      const send = await prepare(await newCell(action, kind, factors), action)
      const answered = await send()
      return [factors, answered.map(({ status, body }) => toOutcome(status, body?.code))] as const
    }),
  )
  const session = { isMultiFactor: SESSION_KINDS[kind] }
  const expected = FACTORS.map(factors => [
    factors,
    outcomes[0]![1].map(() =>
      isAllowedTo(action, { ...session, factors }) ? 'allowed' : 'refused',
    ),
  ])
  expect(outcomes).toEqual(expected as never)
})

test('parts of an action that destroy or raise a limit require the own factor', async () => {
  const { account, organization } = await newCell('keys.create', 'password', 'none')
  const path = `/api/projects/${organization.project.id}`
  const key = (await account.post(`${path}/keys`, { name: 'Key' })).body.data
  const channel = (await account.post(`${path}/channels`, { name: 'orders' })).body.data
  await insertPasskey(server, account)
  for (const [part, body] of [
    ['', { keepDays: 1 }],
    [`/channels/${channel.id}`, { keepDays: 1 }],
    [`/keys/${key.id}`, { limit: key.limit + 1 }],
  ] as const) {
    expectFailure(await account.patch(path + part, body), 403, 'second_factor_needed')
  }
  expect((await account.patch(path, { name: 'Renamed' })).status).toBe(200)
})

test.each(STRICT.filter(action => !isForTokens(action)))('a token does not do %s', async action => {
  const cell = await newCell(action, 'passkey', 'none')
  for (const options of [{}, { organizationId: cell.organization.uuid }]) {
    const accountId = cell.account.uuid
    const token = await newManagementToken(server, { accountId, isMultiFactor: true, ...options })
    const { uuid, id } = cell.account
    const send = await prepare(
      { ...cell, account: { ...cell.account, ...token, uuid, id } },
      action,
    )
    for (const answered of await send()) expectFailure(answered, 403, 'forbidden')
  }
})

// Asking for the options of a passkey and beginning a visit change nothing, so they take no lock.
// An erasure takes none either: it can go on after the request.
const LOCKING = STRICT.filter(
  action => !/^(passkeys\.create|connections\.create|users\.erase)$/.test(action),
)

test.each(LOCKING)('%s is refused if the account gets a factor while it waits', async action => {
  const cell = await newCell(action, 'password', 'none')
  const send = await prepare(cell, action)
  const lock = await lockAccountRow(server.sql, cell.account.uuid, tx => enablePasskey(tx, cell))
  const answers = send()
  await lock.untilBlocked()
  await lock.release()
  expect((await answers).map(({ body }) => body.code)).toEqual(['second_factor_needed'])
})

test.each(LOCKING)('%s is refused if the session ends while it waits', async action => {
  const cell = await newCell(action, 'passkey', 'none')
  const send = await prepare(cell, action)
  const lock = await lockAccountRow(
    server.sql,
    cell.account.uuid,
    tx => tx`delete from sessions where account_id = ${cell.account.uuid}`,
  )
  const answers = send()
  await lock.untilBlocked()
  await lock.release()
  expect((await answers).map(({ status }) => status)).toEqual([401])
})

test('a connection is refused if the account gets a factor during the visit', async () => {
  const account = await newKnownAccount()
  const browser = createBrowser(server.url)
  await browser.signIn(account.email, PASSWORD)
  const callback = await beginVisit(browser, account, 'connect')
  await insertPasskey(server, account)
  const answered = await browser.request(`${callback.pathname}${callback.search}`)
  expect(answered.headers.get('location')).toContain('problem=expired')
  const connections = (await browser.get('/api/me/connections')).body.data.items
  expect(connections).toEqual([])
})

/** The accounts that an identity can find at its first sign-in. */
const FOUND = [
  ...(['nothing', 'passkey', 'app', 'passkey and app', 'operator'] as const),
  'an organization that requires a factor',
] as const
const IDENTITIES = {
  provider: (browser: TestBrowser, account: TestAccount) => visit(browser, account),
  'provider that reports MFA': async (browser: TestBrowser, account: TestAccount) => {
    provider.forge = claims => ({ ...claims, amr: ['pwd', 'mfa'] })
    await visit(browser, account)
    provider.forge = undefined
  },
  proxy: signInAtProxy,
}
const FIRST_SIGN_INS = FOUND.flatMap(found =>
  (Object.keys(IDENTITIES) as (keyof typeof IDENTITIES)[]).flatMap(identity =>
    [false, true].map(isProven => [identity, found, isProven] as const),
  ),
)

test.each(FIRST_SIGN_INS)(
  'the first sign-in by %s meets an account with %s, with the address proven: %s',
  async (identity, found, isProven) => {
    const account = await newAccount(server)
    const { uuid } = account
    const strict = await newOrganization(server)
    const isOperator = found === 'operator'
    const isWithoutFactor = isOperator || found.startsWith('an organization')
    const organizationIds =
      found === 'nothing' ? [organization.uuid] : [organization.uuid, strict.uuid]
    await server.sql`
      update accounts set is_operator = ${isOperator}, is_email_proven = ${isProven}
      where id = ${uuid}
    `
    await server.sql`update organizations set requires_second_factor = true where id = ${strict.uuid}`
    for (const id of organizationIds) {
      await server.sql`
        insert into memberships (organization_id, account_id, role) values (${id}, ${uuid}, 'owner')
      `
    }
    provider.people.set(account.id, { name: 'Ada', email: account.email, email_verified: true })
    if (found.startsWith('passkey')) await insertPasskey(server, account)
    if (found.endsWith('app')) await insertTotpSecret(server, account)
    await newManagementToken(server, { accountId: uuid, isMultiFactor: true })
    const strong = await newSession(server, account, { method: 'passkey', isMultiFactor: true })
    const kept = await readWaysIn(uuid)
    const enter = async () => {
      const browser = createBrowser(server.url)
      await IDENTITIES[identity](browser, account)
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
    expect(await readWaysIn(uuid)).toEqual(kept)
    // A stolen password confirms nothing, and takes in nobody.
    const weak = await newSession(server, account)
    browser.cookies.set('tidings', weak.cookie.replace('tidings=', ''))
    const confirm = () => browser.post('/api/openid/confirmation')
    if (!isWithoutFactor) expectFailure(await confirm(), 403, 'second_factor_needed')
    expect((await enter()).cookies.has('tidings')).toBe(false)
    browser.cookies.set('tidings', strong.cookie.replace('tidings=', ''))
    expect((await confirm()).status).toBe(200)
    const later = await enter()
    expect(later.cookies.has('tidings')).toBe(true)
    expect(await readWaysIn(uuid)).toEqual(kept)
    if (identity === 'provider that reports MFA') return
    const path = `/api/organizations/${strict.id}`
    expectFailure(await later.get(path), 403, 'second_factor_needed')
    if (isWithoutFactor) return
    for (const enrol of ['/api/second-factor', '/api/passkeys/options']) {
      expectFailure(await later.post(enrol), 403, 'second_factor_needed')
    }
  },
)

test.each(['provider', 'proxy'] as const)(
  'the first sign-in by %s removes no factor that the account gets while it waits',
  async identity => {
    const account = await newAccount(server)
    provider.people.set(account.id, { name: 'Ada', email: account.email, email_verified: true })
    const kept = await readWaysIn(account.uuid)
    const browser = createBrowser(server.url)
    const callback = identity === 'provider' && (await beginVisit(browser, account, 'signIn'))
    const lock = await lockAccountRow(server.sql, account.uuid, async tx => {
      await insertPasskey({ sql: tx as never }, account)
    })
    const entering = callback
      ? browser.request(`${callback.pathname}${callback.search}`)
      : signInAtProxy(browser, account)
    await lock.untilBlocked()
    await lock.release()
    await entering
    expect(browser.cookies.has('tidings')).toBe(false)
    expect(await readWaysIn(account.uuid)).toEqual({ ...kept, passkeys: 1 })
  },
)

test('an account that changes its address is no longer that of its former address at the proxy', async () => {
  const account = await newAccount(server)
  await insertPasskey(server, account)
  const strong = await newSession(server, account, { method: 'passkey', isMultiFactor: true })
  const browser = createBrowser(server.url)
  await signInAtProxy(browser, account)
  browser.cookies.set('tidings', strong.cookie.replace('tidings=', ''))
  expect((await browser.post('/api/openid/confirmation')).status).toBe(200)
  const moved = { ...account, email: `moved-${account.email}` }
  expect((await browser.patch('/api/me', { email: moved.email })).status).toBe(200)
  for (const one of [account, moved]) {
    const later = createBrowser(server.url)
    await signInAtProxy(later, one)
    expect(later.cookies.has('tidings')).toBe(false)
  }
})

test('a session does what it was refused once it is confirmed with the factor', async () => {
  const account = await newAccount(server)
  const secret = await insertTotpSecret(server, account)
  const session = await newSession(server, account)
  const browser = createBrowser(server.url)
  browser.cookies.set('tidings', session.cookie.replace('tidings=', ''))
  expectFailure(await browser.delete('/api/second-factor'), 403, 'second_factor_needed')
  const code = toTotpCode(secret)
  expect((await browser.post('/api/session/second-factor', { code })).status).toBe(200)
  expect((await browser.delete('/api/second-factor')).status).toBe(200)
})

test('docs/signing-in.md prints the table', () => {
  const section = readSection('docs/signing-in.md', 'Permissions of each kind of session')
  const rows = listRows(section).map(cells => cells.map(cell => cell.replaceAll('`', '')))
  expect(rows).toEqual(
    ROWS.map(action => [
      action,
      listRequests(action).join(', '),
      ...KINDS.map(kind =>
        action === 'account.prove'
          ? /^(proxy|provider)/.test(kind)
            ? 'first'
            : 'no'
          : toWord(action, SESSION_KINDS[kind]),
      ),
      isForTokens(action) ? 'yes' : 'no',
    ]),
  )
})

function isForTokens(action: CredentialAction): boolean {
  return listCredentials(action).includes('token')
}

/** Returns what the documentation says: `yes`, or `first` if only accounts without a factor may. */
function toWord(action: CredentialAction, isMultiFactor: boolean): string {
  const allowed = FACTORS.filter(factors => isAllowedTo(action, { isMultiFactor, factors }))
  if (allowed.length === FACTORS.length) return 'yes'
  expect(allowed).toEqual(['none'])
  return 'first'
}

/** Returns the routes of an action, as the documentation names them. */
function listRequests(action: CredentialAction): string[] {
  if (action === 'account.changeAddress') return ['PATCH /api/me']
  if (action === 'account.prove') {
    return ['GET /openid/{provider}/callback', 'POST /api/session/proxy']
  }
  const declared = API.filter(route => route.action === action).map(
    ({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`,
  )
  return action === 'connections.create'
    ? ['POST /api/openid/{provider}/visits', ...declared]
    : declared
}

/** Returns a function that requests every route of an action. */
async function prepare(cell: Cell, action: CredentialAction): Promise<() => Promise<Answered[]>> {
  const { account } = cell
  if (action === 'account.changeAddress') {
    const email = `new-${crypto.randomUUID()}@example.com`
    return async () => [await account.patch('/api/me', { email })]
  }
  if (action === 'connections.create') {
    return async () => [await account.post('/api/openid/trusted/visits', { purpose: 'connect' })]
  }
  const json = await toBody(cell, action)
  const requests = API.filter(route => route.action === action).map(({ method, path, body }) => ({
    method,
    path: path.replaceAll(/:(\w+)/g, (_, name: string) => toParameter(cell, action, name)),
    json: body && json,
  }))
  return async () => {
    const answers: Answered[] = []
    // Ending all sessions ends this one, too, so it comes last.
    for (const { path, ...rest } of requests.toSorted((a, b) => b.path.length - a.path.length)) {
      answers.push(await account.request(path, rest))
    }
    return answers
  }
}

async function toBody(cell: Cell, action: CredentialAction): Promise<object | undefined> {
  const { account, secret } = cell
  switch (action) {
    case 'account.verify':
      return { password: PASSWORD }
    case 'account.changePassword':
      return { currentPassword: PASSWORD, newPassword: 'gravel monsoon nineteen' }
    case 'account.addSecondFactor':
      return { code: secret === undefined ? '000000' : toTotpCode(secret) }
    case 'passkeys.add': {
      const options = (await account.post('/api/passkeys/options')).body.data
      const credential = createAuthenticator(server.url)
      return options
        ? { name: 'A passkey', credential: credential.create(options) }
        : BODIES['passkeys.add']?.({} as never)
    }
    case 'secondFactor.confirm': {
      const begun = (await account.post('/api/second-factor')).body
      return { code: begun.success ? toTotpCode(begun.data.secret) : '000000' }
    }
    default:
      return BODIES[action]?.({} as never)
  }
}

function toParameter(cell: Cell, action: CredentialAction, name: string): string {
  const values: Record<string, string | undefined> = {
    passkeyId: cell.passkeyId,
    connectionId: cell.connectionId,
    tokenId: cell.tokenIds?.[action.startsWith('organization') ? 'organization' : 'personal'],
    sessionId: cell.spareSessionId,
    organizationId: cell.organization.id,
    projectId: cell.organization.project.id,
    accountId: cell.memberId,
    provider: 'trusted',
    keyId: newId('key').id,
    webhookId: newId('whk').id,
    userId: 'ada',
  }
  const value = values[name]
  if (value === undefined) throw new Error(`${action} names no ${name}`)
  return value
}

/**
 * Returns whether the table allowed a request. A conflict comes after it, such as a second app. So
 * does a key that does not exist.
 */
function toOutcome(status: number, code: string | undefined): string {
  if (status === 403 && code === 'second_factor_needed') return 'refused'
  return status < 300 || status === 409 || code === 'not_found' ? 'allowed' : `${status} ${code}`
}

/**
 * An owner and operator with these factors, in a session that was made in this way, and with what
 * the paths of an action name.
 */
async function newCell(
  action: CredentialAction,
  kind: SessionKind,
  factors: Factors,
): Promise<Cell> {
  const isNamed = (parameter: string) =>
    API.some(route => route.action === action && route.path.includes(`:${parameter}`))
  const account = await newAccount(server)
  const { uuid } = account
  const own = await newOrganization(server)
  await server.sql`update accounts set is_operator = true where id = ${uuid}`
  await server.sql`
    insert into memberships (organization_id, account_id, role) values (${own.uuid}, ${uuid}, 'owner')
  `
  const passkeyId = await insertPasskey(server, account)
  if (!factors.includes('passkey')) {
    await server.sql`update passkeys set disabled_at = now() where account_id = ${uuid}`
  }
  const spare = await newSession(server, account)
  const tokens = isNamed('tokenId')
    ? {
        personal: await newManagementToken(server, { accountId: uuid }),
        organization: await newManagementToken(server, {
          accountId: uuid,
          organizationId: own.uuid,
        }),
      }
    : undefined
  return {
    account: await newSession(server, account, made[kind]),
    organization: own,
    memberId: isNamed('accountId') ? (await newMember(server, own, 'viewer')).id : undefined,
    secret: factors.includes('app') ? await insertTotpSecret(server, account) : undefined,
    passkeyId,
    connectionId: isNamed('connectionId') ? await insertConnection(server, account) : undefined,
    tokenIds: tokens && { personal: tokens.personal.id, organization: tokens.organization.id },
    spareSessionId: toId('ses', spare.sessionId),
  }
}

/** Signs in once in every way. Returns what the session's row says about it. */
async function signInInEveryWay(): Promise<typeof made> {
  const known = await newKnownAccount()
  const withApp = await newAccount(server)
  const secret = await insertTotpSecret(server, withApp)
  const withPasskey = await newAccount(server)
  const passkey = createAuthenticator(toOrigin(server))
  await insertPasskey(server, withPasskey, passkey)
  const owner = await newMember(server, organization, 'owner')
  let codes: string[] = []
  const ways: Record<SessionKind, (browser: TestBrowser) => Promise<unknown>> = {
    async password(browser) {
      await browser.signIn(known.email, PASSWORD, newAddress())
    },
    async 'password and code'(browser) {
      await browser.signIn(withApp.email, PASSWORD, newAddress())
      await browser.post('/api/session/code', { code: toTotpCode(secret) })
      codes = (await browser.post('/api/second-factor/recovery-codes')).body.data.codes
    },
    async 'password and recovery code'(browser) {
      await browser.signIn(withApp.email, PASSWORD, newAddress())
      await browser.post('/api/session/code', { code: codes[0] })
    },
    async passkey(browser) {
      const options = (await browser.post('/api/session/passkey/options')).body.data
      await browser.post('/api/session/passkey', { credential: passkey.get(options) })
    },
    async proxy(browser) {
      await signInAtProxy(browser, known)
    },
    async provider(browser) {
      await visit(browser, known)
    },
    async 'provider that reports MFA'(browser) {
      provider.forge = claims => ({ ...claims, amr: ['pwd', 'mfa'] })
      await visit(browser, known)
      provider.forge = undefined
    },
    async 'setup link or invite'(browser) {
      const path = `/api/organizations/${organization.id}/invites`
      const token = (await owner.post(path, { role: 'viewer' })).body.data.url.split('#')[1]
      const email = `${crypto.randomUUID()}@example.com`
      const body = { token, name: 'Ada', email, password: PASSWORD }
      await browser.post('/api/invites/accept', body)
    },
  }
  const rows: Partial<typeof made> = {}
  for (const kind of KINDS) {
    const browser = createBrowser(server.url)
    await ways[kind](browser)
    expect([kind, browser.cookies.has('tidings')]).toEqual([kind, true])
    const [session] = (await browser.get('/api/sessions')).body.data.items
    rows[kind] = { method: session.method, isMultiFactor: session.isMultiFactor }
  }
  return rows as typeof made
}

/** An account whose address the provider and the proxy know, and have proven. */
async function newKnownAccount(): Promise<TestAccount> {
  const account = await newAccount(server)
  await server.sql`update accounts set is_email_proven = true where id = ${account.uuid}`
  provider.people.set(account.id, { name: 'Ada', email: account.email, email_verified: true })
  return account
}

async function visit(browser: TestBrowser, account: TestAccount, purpose = 'signIn') {
  const { pathname, search } = await beginVisit(browser, account, purpose)
  return browser.request(`${pathname}${search}`)
}

function signInAtProxy(browser: TestBrowser, { email }: Pick<TestAccount, 'email'>) {
  const headers = { 'remote-email': email }
  return browser.request('/api/session/proxy', { method: 'POST', json: {}, headers })
}

/** Returns what signs an account in, without its connections and its weak sessions. */
async function readWaysIn(accountId: string) {
  const [row] = await server.sql`
    select
      a.password_hash,
      (select count(*)::int from passkeys where account_id = a.id) as passkeys,
      (select count(*)::int from totp_secrets where account_id = a.id) as apps,
      (select count(*)::int from management_tokens where account_id = a.id) as tokens,
      (select count(*)::int from sessions where account_id = a.id and is_multi_factor and method = 'passkey') as sessions
    from accounts a
    where a.id = ${accountId}
  `
  return row
}

/** Signs in at the provider. Returns the callback to which it sends the browser. */
async function beginVisit(browser: TestBrowser, { id }: TestAccount, purpose: string) {
  const started = await browser.post('/api/openid/trusted/visits', { purpose })
  return new URL(await signInAt(started.body.data.url, id))
}

function enablePasskey(tx: Tx, { account, passkeyId }: Cell) {
  return tx`
    update passkeys set disabled_at = null
    where account_id = ${account.uuid} and id = ${parseId('pky', passkeyId) ?? null}
  `
}
