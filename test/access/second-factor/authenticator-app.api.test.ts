import { expect, test } from 'bun:test'
import { createStep, STEP_AGE_S } from '../../../src/access/sign-in/sign-in-steps.ts'
import { expectFailure } from '../../support/answers.ts'
import { ageVerification } from '../../support/worlds/ageing.ts'
import {
  PASSWORD,
  createBrowser,
  newAccount,
  newAddress,
  newSignedIn,
} from '../../support/worlds/browser.ts'
import { insertPasskey } from '../../support/worlds/passkeys.ts'
import { testSecrets } from '../../support/secret.ts'
import { withServer } from '../../support/servers/server.ts'
import { newMember, newSession, newTeam } from '../../support/worlds/signed-in-account.ts'
import { insertTotpSecret, toTotpCode } from '../../support/worlds/totp.ts'

const server = withServer({}, { kinds: [] })

/** An account whose password requires a code. */
async function newAccountWithApp() {
  const account = await newAccount(server)
  const secret = await insertTotpSecret(server, account)
  return { account, secret }
}

/** A browser in which the password was entered, so that a code is next. */
async function enterPassword(email: string) {
  const browser = createBrowser(server.url)
  const answered = await browser.signIn(email, PASSWORD, newAddress())
  expect([answered.status, answered.body.data]).toEqual([202, { needs: 'code' }])
  expect(browser.cookies.has('tidings')).toBe(false)
  return browser
}

/** Returns the texts whose last character differs, and which are the same bytes in base64url. */
function listSpellings(sealed: string): string[] {
  const toBytes = (text: string) =>
    Buffer.from(text.split('.').at(-1)!, 'base64url').toString('hex')
  const texts = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
    .map(last => sealed.slice(0, -1) + last)
    .filter(text => text !== sealed && toBytes(text) === toBytes(sealed))
  expect(texts).not.toBeEmpty()
  return texts
}

const sendCode = (browser: ReturnType<typeof createBrowser>, code: string) =>
  browser.post('/api/session/code', { code })

async function listAudit(id: string): Promise<unknown[]> {
  const rows = await server.sql<{ action: string; details: object }[]>`
    select action, details from audit_log where target = ${id} order by at, id
  `
  return rows.map(({ action, details }) => [action, details])
}

test('an app is confirmed with its first code, and signing in requires a code from then on', async () => {
  const { account, browser } = await newSignedIn(server)
  expectFailure(
    await browser.post('/api/second-factor/confirm', { code: '000000' }),
    409,
    'conflict',
  )
  await browser.post('/api/second-factor')
  const { secret, uri, qr } = (await browser.post('/api/second-factor')).body.data
  expect(uri).toContain(`secret=${secret}`)
  expect(qr.path).toMatch(/^M0 0h7v1/)
  const confirm = (code: string) => browser.post('/api/second-factor/confirm', { code })
  const code = toTotpCode(secret)
  const wrong = code === '000000' ? '000001' : '000000'
  const refused = await confirm(wrong)
  expectFailure(refused, 401, 'wrong_credentials')
  expect(refused.body.error).toContain('let your phone set its clock')
  // A secret that was never confirmed does not lock anybody out.
  const early = createBrowser(server.url)
  expect((await early.signIn(account.email, PASSWORD, newAddress())).status).toBe(200)
  const confirmed = await confirm(code)
  expect(confirmed.body.data.credentials).toMatchObject({ hasSecondFactor: true })
  const [own] = (await browser.get('/api/sessions')).body.data.items.filter(
    ({ isCurrent }: { isCurrent: boolean }) => isCurrent,
  )
  expect(own.isMultiFactor).toBe(true)
  expectFailure(await browser.post('/api/second-factor'), 409, 'conflict')

  const next = await enterPassword(account.email)
  expectFailure(await sendCode(next, code), 401, 'wrong_credentials')
  expect(await listAudit(account.id)).toContainEqual(['session.refused', { factor: 'code' }])
  const signedIn = await sendCode(next, ` ${toTotpCode(secret, 30)} `)
  expect([signedIn.status, signedIn.body.data.person.id]).toEqual([200, account.id])
  const [session] = (await next.get('/api/sessions')).body.data.items
  expect(session).toMatchObject({ method: 'password', isMultiFactor: true })
})

test('a code is accepted after the password, in the same browser, once and for 5 minutes', async () => {
  const { account, secret } = await newAccountWithApp()
  const browser = await enterPassword(account.email)
  const code = toTotpCode(secret)
  expectFailure(await sendCode(createBrowser(server.url), code), 409, 'conflict')
  const step = browser.cookies.get('tidings-step')!
  expect((await sendCode(browser, code)).status).toBe(200)
  const replayed = createBrowser(server.url)
  replayed.cookies.set('tidings-step', step)
  expectFailure(await sendCode(replayed, toTotpCode(secret, 30)), 409, 'conflict')
  const late = createBrowser(server.url)
  const startedMs = Date.now() - STEP_AGE_S * 1_000
  const own = { accountId: account.uuid, isInstalled: false }
  late.cookies.set(
    'tidings-step',
    await server.sql.begin(tx => createStep(tx, testSecrets(), own, startedMs)),
  )
  expectFailure(await sendCode(late, toTotpCode(secret, 30)), 409, 'conflict')
  // A new password ends sign-ins that began with the former one.
  const waiting = await enterPassword(account.email)
  const change = { currentPassword: PASSWORD, newPassword: 'gravel monsoon nineteen' }
  expect((await browser.put('/api/me/password', change)).status).toBe(200)
  expectFailure(await sendCode(waiting, toTotpCode(secret, 30)), 409, 'conflict')
})

test('another spelling of the cookie does not repeat a sign-in that has ended', async () => {
  const { account, secret } = await newAccountWithApp()
  const browser = await enterPassword(account.email)
  const step = browser.cookies.get('tidings-step')!
  expect((await sendCode(browser, toTotpCode(secret))).status).toBe(200)
  for (const spelling of listSpellings(step)) {
    const replayed = createBrowser(server.url)
    replayed.cookies.set('tidings-step', spelling)
    expectFailure(await sendCode(replayed, toTotpCode(secret, 30)), 409, 'conflict')
  }
})

test('passwords that are turned off end sign-ins that wait for their codes', async () => {
  const { account, secret } = await newAccountWithApp()
  const browser = await enterPassword(account.email)
  await server.sql`update installation set are_passwords_off = true`
  expectFailure(await sendCode(browser, toTotpCode(secret)), 409, 'conflict')
  await server.sql`update installation set are_passwords_off = false`
})

test('others who enter the password do not end a sign-in that waits for its code', async () => {
  const { account, secret } = await newAccountWithApp()
  const browser = await enterPassword(account.email)
  for (let time = 0; time < 6; time++) await enterPassword(account.email)
  expect((await sendCode(browser, toTotpCode(secret))).status).toBe(200)
})

test('of concurrent uses of one code, one signs in', async () => {
  const { account, secret } = await newAccountWithApp()
  const browsers = [await enterPassword(account.email), await enterPassword(account.email)]
  const code = toTotpCode(secret)
  const answers = await Promise.all(browsers.map(browser => sendCode(browser, code)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
})

test('wrong codes are throttled on their own, and a right password does not reset them', async () => {
  const { account } = await newAccountWithApp()
  const address = newAddress()
  const statuses: number[] = []
  while (statuses.at(-1) !== 429 && statuses.length < 25) {
    const browser = createBrowser(server.url)
    expect((await browser.signIn(account.email, PASSWORD, address)).status).toBe(202)
    statuses.push((await sendCode(browser, String(100_000 + statuses.length))).status)
  }
  expect(statuses.at(-1)).toBe(429)
  // Before the budget of all networks, which is 20.
  expect(statuses.length).toBeLessThan(20)
})

test('a recovery code works once instead of a code; new ones end the former', async () => {
  const { account, secret } = await newAccountWithApp()
  const browser = await enterPassword(account.email)
  await sendCode(browser, toTotpCode(secret))
  const create = async () =>
    (await browser.post('/api/second-factor/recovery-codes')).body.data.codes as string[]
  const former = await create()
  const codes = await create()
  expect(new Set([...former, ...codes]).size).toBe(20)
  for (const code of codes)
    expect(code).toMatch(/^([0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/)
  const [stored] = await server.sql`
    select string_agg(encode(hash, 'hex'), ' ') as text from recovery_codes
    where account_id = ${account.uuid}
  `
  expect(stored?.['text'].split(' ')).toHaveLength(10)
  const next = await enterPassword(account.email)
  expectFailure(await sendCode(next, former[0]!), 401, 'wrong_credentials')
  const signedIn = await sendCode(next, codes[0]!.toUpperCase().replaceAll('-', ' '))
  expect(signedIn.body.data.credentials.recoveryCodes).toBe(9)
  const [session] = (await next.get('/api/sessions')).body.data.items
  expect(session).toMatchObject({ method: 'password', isMultiFactor: true })
  const again = await enterPassword(account.email)
  expectFailure(await sendCode(again, codes[0]!), 401, 'wrong_credentials')
  expect(await listAudit(account.id)).toContainEqual(['recoveryCodes.used', { codesLeft: 9 }])
})

test('a removed app leaves the password alone to sign in', async () => {
  const { account, secret } = await newAccountWithApp()
  const browser = await enterPassword(account.email)
  await sendCode(browser, toTotpCode(secret))
  await browser.post('/api/second-factor/recovery-codes')
  const removed = await browser.delete('/api/second-factor')
  expect(removed.body.data.credentials).toMatchObject({ hasSecondFactor: false, recoveryCodes: 0 })
  expectFailure(await browser.delete('/api/second-factor'), 409, 'conflict')
  expectFailure(await browser.post('/api/second-factor/recovery-codes'), 409, 'conflict')
  const next = createBrowser(server.url)
  expect((await next.signIn(account.email, PASSWORD, newAddress())).status).toBe(200)
})

test('a code adds the second factor to a session, and is no verification', async () => {
  const { account, browser } = await newSignedIn(server)
  const send = (code: string) => browser.post('/api/session/second-factor', { code })
  expectFailure(await send('000000'), 409, 'conflict')
  const secret = await insertTotpSecret(server, account)
  await server.sql`
    update sessions set verified_at = now() - interval '1 hour' where account_id = ${account.uuid}
  `
  const answered = await send(toTotpCode(secret))
  expect([answered.status, answered.body.data.isVerified]).toEqual([200, false])
  expect((await browser.get('/api/me')).body.data.isVerified).toBe(false)
  expect((await browser.get('/api/sessions')).body.data.items[0].isMultiFactor).toBe(true)
})

test('an organization that requires a second factor is reached with one alone', async () => {
  const [organization, owner, member] = await newTeam(server, 'owner', 'member')
  const path = `/api/organizations/${organization.id}`
  const require = (requiresSecondFactor: boolean) => owner.patch(path, { requiresSecondFactor })
  // An owner without a second factor would lose access, too.
  expectFailure(await require(true), 409, 'conflict')
  await server.sql`update sessions set is_multi_factor = true where id = ${owner.sessionId}`
  await ageVerification(server.sql, owner.sessionId)
  expectFailure(await require(true), 403, 'verification_needed')
  await server.sql`update sessions set verified_at = now() where id = ${owner.sessionId}`
  await owner.post(`${path}/invites`, { role: 'viewer' })
  const required = await require(true)
  expect(required.body.data).toMatchObject({
    requiresSecondFactor: true,
    membersWithoutSecondFactor: 2,
  })
  expect(await listAudit(organization.id)).toContainEqual([
    'organization.secondFactorChanged',
    { isRequired: true, withdrawn: 1 },
  ])
  expect((await owner.get(`${path}/invites`)).body.data.items).toEqual([])
  const project = `/api/projects/${organization.project.id}`
  for (const refused of [path, `${path}/members`, project, `${project}/events`]) {
    expectFailure(await member.get(refused), 403, 'second_factor_needed')
  }
  const barred = { id: organization.id, needsSecondFactor: true, projects: [] }
  expect((await member.get('/api/me')).body.data.organizations).toMatchObject([barred])
  expect((await owner.get(project)).status).toBe(200)
  // The requirement reveals nothing to an account that is not a member.
  const [, stranger] = await newTeam(server, 'owner')
  expectFailure(await stranger.get(path), 404, 'not_found')

  // A member who lacks the factor can leave.
  const leaver = await newMember(server, organization, 'member')
  expect((await leaver.delete(`${path}/membership`)).status).toBe(200)
  const secret = await insertTotpSecret(server, member)
  const added = await member.post('/api/session/second-factor', { code: toTotpCode(secret) })
  expect(added.body.data.organizations[0].projects).toHaveLength(1)
  const [cookie = ''] = added.headers.getSetCookie()
  const headers = { cookie: cookie.split(';')[0]! }
  expect((await member.request(project, { headers })).status).toBe(200)
  expect((await owner.get(path)).body.data.membersWithoutSecondFactor).toBe(1)
})

test.each(['passkey', 'app'])('a removed %s strengthens no other session', async factor => {
  const account = await newAccount(server)
  const passkey = await insertPasskey(server, account)
  if (factor === 'app') await insertTotpSecret(server, account)
  const strong = { method: 'password', isMultiFactor: true } as const
  const [own, other] = [
    await newSession(server, account, strong),
    await newSession(server, account, strong),
  ]
  const path = factor === 'app' ? '/api/second-factor' : `/api/passkeys/${passkey}`
  expect((await own.delete(path)).status).toBe(200)
  const { items } = (await other.get('/api/sessions')).body.data
  expect(items).toMatchObject([
    { isCurrent: true, isMultiFactor: false },
    { isCurrent: false, isMultiFactor: true },
  ])
})
