import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Sql } from '../../../src/database/sql.ts'
import { ATTESTATION_FORMATS, createAuthenticator } from '../../support/clients/authenticator.ts'
import { findFreePort } from '../../support/loopback.ts'
import {
  CLIENT_ID,
  CLIENT_SECRET,
  signInAt,
  startOpenidProvider,
  type OpenidProvider,
} from '../../support/servers/openid-provider.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { startProgram, type Program } from '../../support/servers/process.ts'
import { startReceiver, type Receiver } from '../../support/servers/receiver.ts'
import {
  createBrowser,
  newAccount,
  PASSWORD,
  type TestBrowser,
} from '../../support/worlds/browser.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { toTotpCode } from '../../support/worlds/totp.ts'
import { openSql } from '../../support/sql.ts'
import { scaled } from '../../support/until.ts'

const SEALED = join(import.meta.dirname, '../../support/servers/sealed-network.ts')
/** The least that is replaced. */
const FUNCTIONS = ['fetch', 'Socket.connect', 'node:tls.connect', 'node:dns/promises.lookup']

let program: Program
let sql: Sql
let url: string
let trap: Receiver
let provider: OpenidProvider
beforeAll(async () => {
  ;[trap, provider] = await Promise.all([startReceiver(), startOpenidProvider()])
  const databaseUrl = await cloneDatabase()
  const port = await findFreePort()
  url = `http://localhost:${port}`
  provider.serve(url, ['company'])
  program = await startProgram({
    program: SEALED,
    env: {
      DATABASE_URL: databaseUrl,
      PORT: String(port),
      TRAP_URL: trap.url,
      EGRESS_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
      OIDC_COMPANY_ISSUER: provider.issuer,
      OIDC_COMPANY_CLIENT_ID: CLIENT_ID,
      OIDC_COMPANY_CLIENT_SECRET: CLIENT_SECRET,
    },
  })
  sql = openSql(databaseUrl, { max: 2 })
}, scaled(120_000))
afterAll(async () => {
  await sql.end({ timeout: 1 })
  for (const one of [program, trap, provider]) await one[Symbol.asyncDispose]()
})

/** Returns the functions that were called so far, without those that the program tried itself. */
function listCalls(): { tried: string[]; called: string[] } {
  const names = program.logged('sealed: ').map(line => line.replace('sealed: ', ''))
  const end = names.indexOf('everything')
  return { tried: names.slice(0, end), called: names.slice(end + 1) }
}

async function expectSealed(): Promise<void> {
  expect(listCalls().called).toEqual([])
  expect(trap.connections).toBe(0)
  // The program still answers.
  expect((await createBrowser(url).get('/api/sign-in')).status).toBe(200)
}

async function newSignedInAccount() {
  const account = await newAccount({ sql })
  const browser = createBrowser(url)
  expect((await browser.signIn(account.email, PASSWORD)).status).toBe(200)
  return { account, browser }
}

async function signInByPasskey(passkey: ReturnType<typeof createAuthenticator>) {
  const browser = createBrowser(url)
  const options = (await browser.post('/api/session/passkey/options')).body.data
  return browser.post('/api/session/passkey', { credential: passkey.get(options) })
}

test('the functions that open connections throw, and the pictures and pages of the build need none', async () => {
  expect(listCalls().tried).toEqual(expect.arrayContaining(FUNCTIONS))
  await expectSealed()
})

test.each(ATTESTATION_FORMATS)('a passkey with the attestation %s opens none', async format => {
  const { browser } = await newSignedInAccount()
  const passkey = createAuthenticator(url)
  const options = (await browser.post('/api/passkeys/options')).body.data
  const attestation = { format, crlUrl: `${trap.url}/${format}` }
  const credential = passkey.create(options, { attestation })
  expect((await browser.post('/api/passkeys', { name: 'x', credential })).status).toBe(201)
  expect((await signInByPasskey(passkey)).status).toBe(200)
  const asked = (await browser.post('/api/session/verify/passkey/options')).body.data
  const verified = await browser.post('/api/session/verify/passkey', {
    credential: passkey.get(asked),
  })
  expect(verified.status).toBe(200)
  await expectSealed()
})

test('passwords and codes open none', async () => {
  const { account, browser } = await newSignedInAccount()
  const { secret } = (await browser.post('/api/second-factor')).body.data
  const confirmed = await browser.post('/api/second-factor/confirm', { code: toTotpCode(secret) })
  expect(confirmed.status).toBe(200)
  const change = { currentPassword: PASSWORD, newPassword: 'gravel monsoon nineteen' }
  expect((await browser.put('/api/me/password', change)).status).toBe(200)
  const next = createBrowser(url)
  expect((await next.signIn(account.email, change.newPassword)).status).toBe(202)
  const signedIn = await next.post('/api/session/code', { code: toTotpCode(secret, 30) })
  expect(signedIn.status).toBe(200)
  await expectSealed()
})

test('a provider and a webhook are reached through egress', async () => {
  const { account, browser } = await newSignedInAccount()
  const login = `person-${crypto.randomUUID()}`
  provider.people.set(login, { email: account.email, email_verified: true })
  const connected = await visit(browser, { purpose: 'connect', login })
  expect(connected.headers.get('location')).toBe('/')
  expect((await visit(createBrowser(url), { purpose: 'signIn', login })).status).toBe(303)

  const organization = await newOrganization({ sql })
  const admin = await newMember({ sql, url }, organization, 'admin')
  const path = `/api/projects/${organization.project.id}/webhooks`
  await using receiver = await startReceiver()
  const created = await admin.post(path, { name: 'A webhook', url: `${receiver.url}/hook` })
  expect(created.status).toBe(201)
  const tested = await admin.post(`${path}/${created.body.data.id}/test`)
  expect(tested.status).toBe(200)
  await receiver.until(1, '/hook')
  await expectSealed()
})

async function visit(browser: TestBrowser, { purpose, login }: { purpose: string; login: string }) {
  const started = await browser.post('/api/openid/company/visits', { purpose })
  expect(started.status).toBe(201)
  const { pathname, search } = new URL(await signInAt(started.body.data.url, login))
  return browser.request(`${pathname}${search}`)
}

test('a logout token of a provider opens none but through egress', async () => {
  const token = await provider.sign({
    iss: provider.issuer,
    aud: CLIENT_ID,
    iat: Math.floor(Date.now() / 1000),
    exp: Math.floor(Date.now() / 1000) + 60,
    jti: crypto.randomUUID(),
    sub: 'nobody',
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  })
  const answered = await fetch(`${url}/openid/company/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: token }),
  })
  expect(answered.status).toBe(200)
  await expectSealed()
})
