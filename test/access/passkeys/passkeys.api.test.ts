import { generateKeyPairSync } from 'node:crypto'
import { beforeAll, expect, test } from 'bun:test'
import { expectFailure } from '../../support/answers.ts'
import {
  ATTESTATION_FORMATS,
  createAuthenticator,
  type Authenticator,
} from '../../support/clients/authenticator.ts'
import { startReceiver } from '../../support/servers/receiver.ts'
import { boot, withServer } from '../../support/servers/server.ts'
import { createBrowser, newSignedIn } from '../../support/worlds/browser.ts'
import type { TestAccount, TestBrowser } from '../../support/worlds/browser.ts'
import { toOrigin } from '../../support/worlds/passkeys.ts'

const server = withServer({}, { kinds: [] })
let origin: string
beforeAll(async () => {
  origin = toOrigin(server)
})

interface PasskeyAccount extends TestAccount {
  browser: TestBrowser
  passkey: Authenticator
  passkeyId: string
}

async function addPasskey(browser: TestBrowser, passkey: Authenticator, odd = {}) {
  const options = (await browser.post('/api/passkeys/options')).body.data
  return browser.post('/api/passkeys', { name: 'Laptop', credential: passkey.create(options, odd) })
}

/** An account with a password and a passkey, signed in with the password. */
async function newPasskeyAccount(): Promise<PasskeyAccount> {
  const { account, browser } = await newSignedIn(server)
  const passkey = createAuthenticator(origin)
  const added = await addPasskey(browser, passkey)
  expect(added.status).toBe(201)
  return { ...account, browser, passkey, passkeyId: added.body.data.id }
}

async function signInOptions(browser: TestBrowser) {
  return (await browser.post('/api/session/passkey/options')).body.data
}

async function signIn(browser: TestBrowser, passkey: Authenticator, odd = {}) {
  const credential = passkey.get(await signInOptions(browser), odd)
  return browser.post('/api/session/passkey', { credential })
}

async function listAudit({ uuid }: PasskeyAccount, action: string) {
  return server.sql<{ details: any }[]>`
    select details from audit_log
    where action = ${action} and (account_id = ${uuid} or target like 'pky_%')
    order by at desc, id desc
  `
}

test('a passkey signs in without a password, and the session names it', async () => {
  const account = await newPasskeyAccount()
  const browser = createBrowser(server.url)
  const answered = await signIn(browser, account.passkey)
  expect([answered.status, answered.body.data.person.id]).toEqual([200, account.id])
  expect(answered.body.data).toMatchObject({
    isVerified: true,
    credentials: { hasPassword: true, passkeys: 1, hasSecondFactor: false, recoveryCodes: 0 },
  })
  const [session] = (await browser.get('/api/sessions')).body.data.items
  expect(session).toMatchObject({ isCurrent: true, method: 'passkey', isMultiFactor: true })
  const [entry] = await listAudit(account, 'session.created')
  expect(entry?.details).toMatchObject({ method: 'passkey', isMultiFactor: true })
  const [listed] = (await browser.get('/api/passkeys')).body.data.items
  expect(listed).toMatchObject({ name: 'Laptop', isDisabled: false, isSynced: false })
  expect(Date.parse(listed.lastUsedAt)).toBeGreaterThan(Date.now() - 60_000)
})

test('a signature with anything wrong is refused and changes nothing', async () => {
  const account = await newPasskeyAccount()
  const browser = createBrowser(server.url)
  for (const odd of [
    ...[{ origin: 'https://evil.example' }, { rpId: 'evil.example' }, { isVerified: false }],
    ...[{ isForged: true }, { type: 'webauthn.create' }, { challenge: 'A'.repeat(72) }],
  ]) {
    expectFailure(await signIn(browser, account.passkey, odd), 409, 'conflict')
    expect([odd, browser.cookies.has('tidings')]).toEqual([odd, false])
  }
  expect((await signIn(browser, account.passkey)).status).toBe(200)
})

test('the user handle, if it is sent, is that of the account', async () => {
  const [account, other] = [await newPasskeyAccount(), await newPasskeyAccount()]
  const readHandle = async ({ browser }: PasskeyAccount) =>
    (await browser.post('/api/passkeys/options')).body.data.user.id
  for (const [userHandle, status] of [
    [await readHandle(other), 401],
    ['AAAA', 401],
    [await readHandle(account), 200],
    ['', 200],
  ] as const) {
    const answered = await signIn(createBrowser(server.url), account.passkey, { userHandle })
    expect([userHandle, answered.status]).toEqual([userHandle, status])
  }
})

test('a response is accepted once, in the browser and for the purpose of its challenge', async () => {
  const account = await newPasskeyAccount()
  const browser = createBrowser(server.url)
  const options = await signInOptions(browser)
  const other = createBrowser(server.url)
  await signInOptions(other)
  const credential = account.passkey.get(options)
  expectFailure(await other.post('/api/session/passkey', { credential }), 409, 'conflict')
  const verify = '/api/session/verify/passkey'
  expectFailure(await account.browser.post(verify, { credential }), 409, 'conflict')
  const cookie = `tidings-challenge=${browser.cookies.get('tidings-challenge')}`
  const use = { method: 'POST', json: { credential }, headers: { cookie } }
  const uses = Array.from({ length: 8 }, () =>
    createBrowser(server.url).request('/api/session/passkey', use),
  )
  const statuses = (await Promise.all(uses)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([200, ...Array(7).fill(409)])
})

test('a counter that goes backwards disables the passkey and ends its sessions', async () => {
  const account = await newPasskeyAccount()
  const browser = createBrowser(server.url)
  expect((await signIn(browser, account.passkey, { counter: 10 })).status).toBe(200)
  const copy = createBrowser(server.url)
  expectFailure(await signIn(copy, account.passkey, { counter: 10 }), 401, 'wrong_credentials')
  expect((await browser.get('/api/me')).status).toBe(401)
  expectFailure(await signIn(copy, account.passkey, { counter: 99 }), 401, 'wrong_credentials')
  const me = (await account.browser.get('/api/me')).body.data
  expect(me.credentials.passkeys).toBe(0)
  const [listed] = (await account.browser.get('/api/passkeys')).body.data.items
  expect(listed.isDisabled).toBe(true)
  const [entry] = await listAudit(account, 'passkey.disabled')
  expect(entry?.details).toEqual({ name: 'Laptop', sessionsEnded: 1 })
})

test('a passkey verifies the session that asks, and only with the passkey of its account', async () => {
  const [account, other] = [await newPasskeyAccount(), await newPasskeyAccount()]
  const [session] = (await account.browser.get('/api/sessions')).body.data.items
  const { body } = await account.browser.get('/api/me')
  expect(body.data.isVerified).toBe(true)
  const weaken = (isMultiFactor: boolean) => server.sql`
    update sessions set verified_at = now() - interval '1 hour', is_multi_factor = ${isMultiFactor}
    where account_id = ${account.uuid}
  `
  await weaken(true)
  expect((await account.browser.post('/api/passkeys/options')).body.code).toBe(
    'verification_needed',
  )
  await weaken(false)
  const options = () => account.browser.post('/api/session/verify/passkey/options')
  const verify = (credential: object) =>
    account.browser.post('/api/session/verify/passkey', { credential })
  const asked = (await options()).body.data
  expect(asked.allowCredentials.map(({ id }: { id: string }) => id)).toEqual([account.passkey.id])
  expectFailure(await verify(other.passkey.get(asked)), 401, 'wrong_credentials')
  const before = { cookie: `tidings=${account.browser.cookies.get('tidings')}` }
  const verified = await verify(account.passkey.get(asked))
  expect([verified.status, verified.body.data.isVerified]).toEqual([200, true])
  expect((await account.browser.request('/api/me', { headers: before })).status).toBe(401)
  expect((await account.browser.get('/api/sessions')).body.data.items[0]).toMatchObject({
    id: session.id,
    method: 'password',
    isMultiFactor: true,
  })
})

test('a removed passkey is unknown, and the sessions that it made end', async () => {
  const account = await newPasskeyAccount()
  const browser = createBrowser(server.url)
  await signIn(browser, account.passkey)
  const path = `/api/passkeys/${account.passkeyId}`
  const renamed = await account.browser.patch(path, { name: ' Phone ' })
  expect(renamed.body.data.name).toBe('Phone')
  expect((await account.browser.delete(path)).status).toBe(200)
  expect((await browser.get('/api/me')).status).toBe(401)
  expectFailure(await signIn(browser, account.passkey), 401, 'wrong_credentials')
  expectFailure(await account.browser.delete(path), 404, 'not_found')
  const [entry] = await listAudit(account, 'passkey.removed')
  expect(entry?.details).toEqual({ name: 'Phone', sessionsEnded: 1 })
})

test('a passkey can be registered once, with the challenge of its own session', async () => {
  const account = await newPasskeyAccount()
  expectFailure(await addPasskey(account.browser, account.passkey), 409, 'conflict')
  const options = (await account.browser.post('/api/passkeys/options')).body.data
  expect(options.excludeCredentials).toHaveLength(1)
  const stranger = await newPasskeyAccount()
  const credential = createAuthenticator(origin).create(options)
  const json = { name: 'x', credential }
  expectFailure(await stranger.browser.post('/api/passkeys', json), 409, 'conflict')
  expect((await account.browser.post('/api/passkeys', json)).status).toBe(201)
  for (const odd of [{ origin: 'https://evil.example' }, { isVerified: false }]) {
    const fresh = (await account.browser.post('/api/passkeys/options')).body.data
    const refused = createAuthenticator(origin).create(fresh, odd)
    const answered = await account.browser.post('/api/passkeys', { name: 'x', credential: refused })
    expectFailure(answered, 409, 'conflict')
  }
})

test('a new passkey is accepted with any attestation, and no URL in it is requested', async () => {
  await using trap = await startReceiver()
  for (const format of ATTESTATION_FORMATS) {
    const { browser } = await newSignedIn(server)
    const passkey = createAuthenticator(origin)
    const attestation = { format, crlUrl: `${trap.url}/${format}` }
    const added = await addPasskey(browser, passkey, { attestation })
    expect([format, trap.connections, added.status]).toEqual([format, 0, 201])
    expect((await signIn(createBrowser(server.url), passkey)).status).toBe(200)
  }
})

test('a new passkey is refused with a broken attestation object or public key', async () => {
  const { browser } = await newPasskeyAccount()
  for (const attestationObject of [
    // No CBOR, a list, a map without authenticator data, and data of another type.
    ...['////', 'gA', 'oA', 'oWhhdXRoRGF0YWF4'],
    // 65,000 lists in each other.
    Buffer.alloc(49_000, 0x81).toString('base64url'),
  ]) {
    const options = (await browser.post('/api/passkeys/options')).body.data
    const credential: any = createAuthenticator(origin).create(options)
    const response = { ...credential.response, attestationObject }
    const json = { name: 'x', credential: { ...credential, response } }
    expectFailure(await browser.post('/api/passkeys', json), 409, 'conflict')
  }
  const ec = `a5010203262001215820${'00'.repeat(32)}`
  for (const hex of [
    // Not a point of its curve, half a point, and longer than any that is in use.
    ...[`${ec}225820${'00'.repeat(32)}`, `a4${ec.slice(2)}`],
    `a401030339010020590800${'ff'.repeat(2_048)}2143010001`,
  ]) {
    const odd = { publicKey: Buffer.from(hex, 'hex') }
    expectFailure(await addPasskey(browser, createAuthenticator(origin), odd), 409, 'conflict')
  }
  // It would count as a way to sign in, and as a second factor.
  expect((await browser.get('/api/passkeys')).body.data.items).toHaveLength(1)
})

test('a new passkey is accepted with a public key of RSA or Ed25519', async () => {
  const toHex = (base64url = '') => Buffer.from(base64url, 'base64url').toString('hex')
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).publicKey.export({
    format: 'jwk',
  })
  const ed25519 = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  const { browser } = await newPasskeyAccount()
  for (const hex of [
    `a401030339010020590100${toHex(rsa.n)}2143${toHex(rsa.e)}`,
    `a4010103272006215820${toHex(ed25519.x)}`,
  ]) {
    const odd = { publicKey: Buffer.from(hex, 'hex') }
    expect((await addPasskey(browser, createAuthenticator(origin), odd)).status).toBe(201)
  }
})

test('an account removes its password if it has a passkey, and keeps one way to sign in', async () => {
  const account = await newPasskeyAccount()
  const { browser } = account
  const path = `/api/passkeys/${account.passkeyId}`
  expect((await browser.delete('/api/me/password')).status).toBe(200)
  expect((await browser.get('/api/me')).body.data.credentials.hasPassword).toBe(false)
  expectFailure(await browser.delete('/api/me/password'), 409, 'conflict')
  expectFailure(await browser.delete(path), 409, 'conflict')
  const other = createBrowser(server.url)
  expectFailure(await other.signIn(account.email), 401, 'wrong_credentials')
  expect((await signIn(other, account.passkey)).status).toBe(200)
  // A password can be set again, after a verification instead of the former one.
  const change = { newPassword: 'gravel monsoon nineteen' }
  expect((await browser.put('/api/me/password', change)).status).toBe(200)
  expect((await other.get('/api/me')).status).toBe(401)
  expect((await browser.delete(path)).status).toBe(200)
  expectFailure(await browser.delete('/api/me/password'), 409, 'conflict')
  expect((await other.signIn(account.email, change.newPassword)).status).toBe(200)
})

test('passkeys need an address with a name, over https or on this machine', async () => {
  const account = await newPasskeyAccount()
  await using plain = await boot(
    { baseUrl: 'http://10.0.0.1', databaseUrl: server.databaseUrl },
    { kinds: [] },
  )
  const headers = {
    host: '10.0.0.1',
    origin: 'http://10.0.0.1',
    cookie: `tidings=${account.browser.cookies.get('tidings')}`,
  }
  const browser = createBrowser(plain.url)
  const options = { method: 'POST', headers }
  expectFailure(await browser.request('/api/passkeys/options', options), 409, 'conflict')
})
