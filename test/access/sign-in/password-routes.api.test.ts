import { expect, test } from 'bun:test'
import { ageFailures, ageSessions } from '../../support/worlds/ageing.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import {
  PASSWORD,
  WRONG_PASSWORD,
  createBrowser,
  listAccountAudit,
  newAccount,
  newAddress,
  newSignedIn,
} from '../../support/worlds/browser.ts'
import type { Tx } from '../../../src/database/sql.ts'
import { sendWhile } from '../../support/database-lock.ts'
import { newSignedInAccount } from '../../support/worlds/signed-in-account.ts'
import { withServer } from '../../support/servers/server.ts'

const server = withServer({ trustedProxies: ['127.0.0.1/32'] })

const NEW_PASSWORD = 'gravel monsoon nineteen'

test('dashboard §5 typing the password again confirms the session for 10 minutes, under a new token', async () => {
  const { account, browser } = await newSignedIn(server)
  await ageSessions(server.sql, account.uuid, '10 minutes')
  expect((await browser.get('/api/me')).body.data.isVerified).toBe(false)
  const before = { cookie: `tidings=${browser.cookies.get('tidings')}` }
  const answered = await browser.post('/api/session/verify', { password: PASSWORD })
  expect(answered.body.data).toEqual((await browser.get('/api/me')).body.data)
  expect(answered.body.data.isVerified).toBe(true)
  expectFailure(await browser.request('/api/me', { headers: before }), 401, 'signed_out')
  await ageSessions(server.sql, account.uuid, '9 minutes 50 seconds')
  expect((await browser.get('/api/me')).body.data.isVerified).toBe(true)
  expect((await listAccountAudit(server, account)).at(-1)).toBe('account: session.verified')
})

test('reliability §6 of two concurrent confirmations of one session, one succeeds and keeps the session', async () => {
  const { browser } = await newSignedIn(server)
  const headers = { cookie: `tidings=${browser.cookies.get('tidings')}` }
  const options = { method: 'POST', json: { password: PASSWORD }, headers }
  // More attempts at once can be too many.
  const answers = await Promise.all(
    [1, 2].map(() => browser.request('/api/session/verify', options)),
  )
  const statuses = answers.map(({ status }) => status).sort()
  expect(statuses[0]).toBe(200)
  expect(statuses.slice(1).every(status => status === 409 || status === 401)).toBe(true)
  expect((await browser.get('/api/me')).status).toBe(200)
})

test('reliability §6 a stolen session does not help to guess the password, and delays nobody else', async () => {
  const { account, browser } = await newSignedIn(server)
  const change = { currentPassword: WRONG_PASSWORD, newPassword: NEW_PASSWORD }
  for (const refused of [
    await browser.post('/api/session/verify', { password: WRONG_PASSWORD }),
    await browser.put('/api/me/password', change),
  ]) {
    expectFailure(refused, 401, 'wrong_credentials')
  }
  await server.sql`update sign_in_failures set failures = 15`
  const refused = await browser.post('/api/session/verify', { password: PASSWORD })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '900'])
  const other = createBrowser(server.url)
  expect((await other.signIn(account.email, PASSWORD, newAddress())).status).toBe(200)
  await ageFailures(server.sql, '15 minutes')
  expect((await browser.post('/api/session/verify', { password: PASSWORD })).status).toBe(200)
  expect((await listAccountAudit(server, account)).slice(1, 3)).toEqual(
    Array(2).fill('account: password.refused'),
  )
})

test('dashboard §2 a new password ends all other sessions and open reset links, and renews this session', async () => {
  const { account, browser } = await newSignedIn(server)
  const others = [createBrowser(server.url), createBrowser(server.url)]
  for (const other of others) await other.signIn(account.email, PASSWORD, newAddress())
  await server.sql`
    insert into reset_links (id, hash, account_id, expires_at)
    values (gen_random_uuid(), sha256('x'), ${account.uuid}, now() + interval '1 hour')
  `
  const before = { cookie: `tidings=${browser.cookies.get('tidings')}` }
  const answered = await browser.put('/api/me/password', {
    currentPassword: PASSWORD,
    newPassword: NEW_PASSWORD,
  })
  expect([answered.status, answered.body.data]).toEqual([200, { sessionsEnded: 2 }])
  for (const other of others) expect((await other.get('/api/me')).status).toBe(401)
  expect((await browser.request('/api/me', { headers: before })).status).toBe(401)
  expect((await browser.get('/api/me')).status).toBe(200)
  expect(await server.sql`select from reset_links where account_id = ${account.uuid}`).toHaveLength(
    0,
  )
  expect((await listAccountAudit(server, account)).at(-1)).toBe('account: password.changed')

  const fresh = createBrowser(server.url)
  expect((await fresh.signIn(account.email, PASSWORD, newAddress())).status).toBe(401)
  expect((await fresh.signIn(account.email, NEW_PASSWORD, newAddress())).status).toBe(200)
})

test('reliability §6 a password with accents is the same from every keyboard', async () => {
  const { account, browser } = await newSignedIn(server)
  const newPassword = 'crème brûlée forêt'
  await browser.put('/api/me/password', {
    currentPassword: PASSWORD,
    newPassword: newPassword.normalize('NFD'),
  })
  for (const form of ['NFC', 'NFD']) {
    const fresh = createBrowser(server.url)
    expect((await fresh.signIn(account.email, newPassword.normalize(form))).status).toBe(200)
  }
})

test('reliability §6 an unacceptable password is a 400 that says why', async () => {
  const { account, browser } = await newSignedIn(server)
  const change = (newPassword: string) =>
    browser.put('/api/me/password', { currentPassword: PASSWORD, newPassword })
  expectIssues(await change('eleven char'), 'newPassword too_short')
  expectIssues(await change('ä'.repeat(129)), 'newPassword too_long')
  for (const bad of ['Password1234!', account.email, 'Test account 1', PASSWORD])
    expectIssues(await change(bad), 'newPassword invalid_value')
  const { body } = await change('aaaaaaaaaaaaaaa')
  // The field's hint has the advice.
  expect(body.details[0].message).toEndWith('such as 123456, qwerty or a repetition')
})

test('contract §12 an account without a password cannot confirm its session', async () => {
  const account = await newSignedInAccount(server)
  const answered = await account.post('/api/session/verify', { password: PASSWORD })
  expectFailure(answered, 401, 'wrong_credentials')
})

test('contract §12 an address that another request has just changed is a new one', async () => {
  const { account, browser } = await newSignedIn(server)
  await ageSessions(server.sql, account.uuid, '10 minutes')
  const moved = `moved-${account.email}`
  const move = (tx: Tx) => tx`
    update accounts set email = ${moved}, is_email_proven = true where id = ${account.uuid}
  `
  // The address of the account, as this request found it.
  const late = await sendWhile(server.sql, account.uuid, move, () =>
    browser.patch('/api/me', { email: account.email }),
  )
  expectFailure(late, 403, 'verification_needed')
  const rows = await server.sql`select email from accounts where id = ${account.uuid}`
  expect([...rows]).toEqual([{ email: moved }])
})

test('contract §12 PATCH /api/me changes the name, and the e-mail within 10 minutes of the password', async () => {
  const { account, browser } = await newSignedIn(server)
  const renamed = await browser.patch('/api/me', { name: ' Ada  Lovelace ' })
  expect(renamed.body.data.person).toMatchObject({ name: 'Ada  Lovelace', email: account.email })
  const email = `New-${account.email}`
  await ageSessions(server.sql, account.uuid, '10 minutes')
  expectFailure(await browser.patch('/api/me', { email }), 403, 'verification_needed')
  // Unchanged fields need no password.
  const same = await browser.patch('/api/me', { name: 'Ada', email: account.email.toUpperCase() })
  expect(same.status).toBe(200)
  await browser.post('/api/session/verify', { password: PASSWORD })
  const moved = await browser.patch('/api/me', { email })
  expect(moved.body.data.person).toMatchObject({ name: 'Ada', email: email.toLowerCase() })
  expect((await browser.get('/api/me')).body.data).toEqual(moved.body.data)
  expect((await createBrowser(server.url).signIn(email)).status).toBe(200)
  expect((await createBrowser(server.url).signIn(account.email)).status).toBe(401)
  expect(
    (await listAccountAudit(server, account)).filter(deed => deed.includes('edited')),
  ).toHaveLength(3)
})

test('contract §12 an e-mail belongs to one account: a second use is a conflict', async () => {
  const { browser } = await newSignedIn(server)
  const taken = await newAccount(server)
  const refused = await browser.patch('/api/me', { name: 'Eve', email: taken.email })
  expectFailure(refused, 409, 'conflict')
  expect((await browser.get('/api/me')).body.data.person.name).toBe('Test account')
  expectIssues(await browser.patch('/api/me', { name: ' ' }), 'name too_short')
  expectIssues(await browser.patch('/api/me', { email: 'ada' }), 'email invalid_format')
})
