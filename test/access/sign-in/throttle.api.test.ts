import { expect, test } from 'bun:test'
import { hashPassword } from '../../../src/access/sign-in/credentials.ts'
import { expectFailure } from '../../support/answers.ts'
import { withServer } from '../../support/servers/server.ts'
import { setLastFailures } from '../../support/worlds/ageing.ts'
import {
  createBrowser,
  newAccount,
  newAddress,
  PASSWORD,
  WRONG_PASSWORD,
} from '../../support/worlds/browser.ts'
import type { Answered } from '../../support/worlds/project.ts'
import { until } from '../../support/until.ts'
import { insertTotpSecret, toTotpCode } from '../../support/worlds/totp.ts'

const server = withServer({ trustedProxies: ['127.0.0.1/32'], authProxyHeader: 'remote-email' })

/** Tries to sign in from a new browser at an address, by default a new one. */
const trySignIn = (email: string, password = WRONG_PASSWORD, address = newAddress()) =>
  createBrowser(server.url).signIn(email, password, address)

/**
 * Counts one failure of a network as number `failures` + 1, the last one `interval` ago. Returns an
 * address of the network.
 */
async function failTimes(email: string, failures: number, interval = '0'): Promise<string> {
  const address = newAddress()
  expect((await trySignIn(email, WRONG_PASSWORD, address)).status).toBe(401)
  await server.sql`update sign_in_failures set failures = ${failures}`
  await setLastFailures(server.sql, interval)
  return address
}

/** Sets the used part of the budgets, as it was `interval` ago. Lanes of the tests have fewer. */
async function setBudgets(used: number, interval: string, name = 'password budget'): Promise<void> {
  await server.sql`
    update sign_in_failures set failures = ${used}, last_at = clock_timestamp() - ${interval}::interval
    where lane = sha256(${name}::bytea)
  `
}

function expectDelay(answered: Answered, seconds: number): void {
  expect(answered.status).toBe(429)
  expect(answered.body).toEqual({
    success: false,
    error: 'Rate limit exceeded',
    message: `Too many attempts with a wrong password. Try again in ${seconds} s.`,
    requestId: expect.any(String),
  })
  expect(answered.headers.get('retry-after')).toBe(String(seconds))
}

test.each([
  ['an account', async () => (await newAccount(server)).email, [5, 6, 10, 14, 15, 17]],
  // Each of its failures costs a password of full strength.
  ['an unknown address', async () => `${crypto.randomUUID()}@example.com`, [6]],
])(
  'reliability §6 from the fifth failure on, a network is delayed for %s: 1 s, doubling to 15 minutes at most',
  async (_, toEmail, counts) => {
    const email = await toEmail()
    for (const failures of counts) {
      const address = await failTimes(email, failures)
      const seconds = Math.min(2 ** (failures - 5), 900)
      // Early tries do not extend the delay, and their passwords are not checked.
      expectDelay(await trySignIn(email, PASSWORD, address), seconds)
      await setLastFailures(server.sql, `${seconds - 1} seconds`)
      expectDelay(await trySignIn(email, PASSWORD, address), 1)
      await setLastFailures(server.sql, `${seconds} seconds`)
      expect((await trySignIn(email, WRONG_PASSWORD, address)).status).toBe(401)
    }
  },
)

test('reliability §6 failures are forgotten after a day without one', async () => {
  const { email } = await newAccount(server)
  const address = await failTimes(email, 8, '1 day 1 second')
  for (let time = 0; time < 5; time++) {
    expect((await trySignIn(email, WRONG_PASSWORD, address)).status).toBe(401)
  }
  await setLastFailures(server.sql, '0')
  expectDelay(await trySignIn(email, WRONG_PASSWORD, address), 1)
})

test('reliability §6 of 10 concurrent guesses after a delay, one is checked', async () => {
  const { email } = await newAccount(server, { isCostly: true })
  const address = await failTimes(email, 12, '15 minutes')
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => trySignIn(email, WRONG_PASSWORD, address)),
  )
  const statuses = answers.map(({ status }) => status).sort()
  expect(statuses).toEqual([401, ...Array(9).fill(429)])
})

test('reliability §6 a success resets the failures of its network alone', async () => {
  const { email } = await newAccount(server)
  const [own, other] = [newAddress(), await failTimes(email, 9)]
  for (let round = 0; round < 2; round++) {
    for (let time = 0; time < 4; time++) {
      expect((await trySignIn(email, WRONG_PASSWORD, own)).status).toBe(401)
    }
    expect((await trySignIn(email, PASSWORD, own)).status).toBe(200)
  }
  expect((await trySignIn(email, PASSWORD, other)).status).toBe(429)
})

test('reliability §6 an IPv6 network is a /48', async () => {
  const { email } = await newAccount(server)
  for (let time = 0; time < 5; time++) {
    expect((await trySignIn(email, WRONG_PASSWORD, `2001:db8:7:${time}::1`)).status).toBe(401)
  }
  await setLastFailures(server.sql, '0')
  expectDelay(await trySignIn(email, PASSWORD, '2001:db8:7:99::1'), 1)
  expect((await trySignIn(email, PASSWORD, '2001:db8:8:1::1')).status).toBe(200)
})

test('reliability §6 failures at one account delay no other account of the network', async () => {
  const [account, other] = [await newAccount(server), await newAccount(server)]
  const address = newAddress()
  for (let time = 0; time < 3; time++) {
    const { status } = await trySignIn(`${time}-${other.email}`, WRONG_PASSWORD, address)
    expect(status).toBe(401)
  }
  await trySignIn(account.email, WRONG_PASSWORD, address)
  await server.sql`update sign_in_failures set failures = 16, last_at = clock_timestamp()`
  expectDelay(await trySignIn(account.email, PASSWORD, address), 900)
  expect((await trySignIn(other.email, PASSWORD, address)).status).toBe(200)
})

test('reliability §6 all networks together have a budget, half of it for networks without failures', async () => {
  const { email } = await newAccount(server)
  const used = await failTimes(email, 10, '1 hour')
  // 60 of 120 guesses were used, one a second ago.
  await setBudgets(60, '1 second')
  expectDelay(await trySignIn(email, PASSWORD, used), 29)
  const fresh = newAddress()
  expect((await trySignIn(email, WRONG_PASSWORD, fresh)).status).toBe(401)
  await setBudgets(115, '0')
  // One failure leaves 6 guesses to others, and the budget falls by one in 30 s.
  expectDelay(await trySignIn(email, PASSWORD, fresh), 60)
  expect((await trySignIn(email, PASSWORD)).status).toBe(200)
  await setBudgets(120, '0')
  expectDelay(await trySignIn(email, PASSWORD), 30)
  await setBudgets(120, '30 seconds')
  expect((await trySignIn(email, PASSWORD)).status).toBe(200)
})

test('reliability §6 a network that tries again and again during a delay leaves more to the others', async () => {
  const { email } = await newAccount(server)
  const [polling, patient] = [newAddress(), newAddress()]
  await failTimes(email, 0, '1 hour')
  await setBudgets(120, '0')
  for (let time = 0; time < 5; time++) {
    expect((await trySignIn(email, PASSWORD, polling)).status).toBe(429)
  }
  expect((await trySignIn(email, PASSWORD, patient)).status).toBe(429)
  await setBudgets(119, '0')
  expect((await trySignIn(email, PASSWORD, polling)).status).toBe(429)
  expect((await trySignIn(email, PASSWORD, patient)).status).toBe(200)
})

test('reliability §6 guesses from elsewhere cannot lock out a known browser of the owner', async () => {
  const account = await newAccount(server)
  const [known, address] = [createBrowser(server.url), newAddress()]
  await known.signIn(account.email, PASSWORD, address)
  await known.delete('/api/session')
  // Neither can guesses from its own network, nor a used budget.
  await trySignIn(account.email, WRONG_PASSWORD, address)
  await server.sql`update sign_in_failures set failures = 120, last_at = clock_timestamp()`
  expectDelay(await trySignIn(account.email, PASSWORD, address), 1830)
  expect((await known.signIn(account.email, PASSWORD, address)).status).toBe(200)
})

test('reliability §6 a known browser has its own delay, and only for accounts that signed in there', async () => {
  const [account, other] = [await newAccount(server), await newAccount(server)]
  const browser = createBrowser(server.url)
  await browser.signIn(account.email)
  for (let time = 0; time < 5; time++) {
    expect((await browser.signIn(account.email, WRONG_PASSWORD)).status).toBe(401)
  }
  await setLastFailures(server.sql, '0')
  expectDelay(await browser.signIn(account.email, PASSWORD), 1)
  expect((await trySignIn(account.email, PASSWORD)).status).toBe(200)

  const address = await failTimes(other.email, 7)
  expectDelay(await browser.signIn(other.email, PASSWORD, address), 4)
})

test('reliability §6 a browser can be known for two accounts', async () => {
  const [account, other] = [await newAccount(server), await newAccount(server)]
  const browser = createBrowser(server.url)
  for (const { email } of [account, other]) await browser.signIn(email)
  for (const { email } of [account, other]) {
    const address = await failTimes(email, 16)
    expect((await browser.signIn(email, PASSWORD, address)).status).toBe(200)
  }
})

test('reliability §6 signing in to the own account in a shared browser gives no more guesses at another', async () => {
  const [own, other] = [await newAccount(server), await newAccount(server)]
  const browser = createBrowser(server.url)
  await browser.signIn(other.email)
  const statuses = []
  for (let time = 0; time < 6; time++) {
    await browser.signIn(own.email)
    await setLastFailures(server.sql, '0')
    statuses.push((await browser.signIn(other.email, WRONG_PASSWORD)).status)
  }
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
})

test('reliability §6 an account has at most 20 known browsers: the least recently used one is forgotten', async () => {
  const account = await newAccount(server)
  const browsers = Array.from({ length: 21 }, () => createBrowser(server.url))
  for (const browser of browsers) await browser.signIn(account.email, PASSWORD, newAddress())
  const address = await failTimes(account.email, 16)
  expect((await browsers[0]!.signIn(account.email, PASSWORD, address)).status).toBe(429)
  expect((await browsers[1]!.signIn(account.email, PASSWORD, address)).status).toBe(200)
})

test('reliability §6 a try that could not be hashed in time is a 503, and does not count', async () => {
  const { email } = await newAccount(server)
  const address = newAddress()
  // A known browser: strangers have a queue of their own.
  const browser = createBrowser(server.url)
  await browser.signIn(email, PASSWORD, address)
  let isAnswered = false
  const hash = async () => {
    while (!isAnswered) await hashPassword(PASSWORD, email)
  }
  // The test shares its process with the server: it fills the hash queue all the time.
  const busy = Promise.all(Array.from({ length: 36 }, hash))
  const refused = await browser.signIn(email, WRONG_PASSWORD, address)
  isAnswered = true
  expectFailure(refused, 503, 'unavailable')
  expect(refused.headers.get('retry-after')).toBe('1')
  await busy
  for (let time = 0; time < 5; time++) {
    expect((await browser.signIn(email, WRONG_PASSWORD, address)).status).toBe(401)
  }
})

test('reliability §6 many new networks do not delay the sign-in from a later one', async () => {
  const { email } = await newAccount(server)
  let answered = 0
  // An unknown address costs as much as a password of full strength.
  const crowd = Array.from({ length: 24 }, () =>
    trySignIn('nobody@example.com').then(() => answered++),
  )
  await until(() => answered > 0)
  expect((await trySignIn(email, PASSWORD)).status).toBe(200)
  expect(answered).toBeLessThan(crowd.length)
  await Promise.all(crowd)
})

test('reliability §6 a site with many IPv6 networks makes one attempt at a time', async () => {
  const { email } = await newAccount(server, { isCostly: true })
  const crowd = Array.from({ length: 24 }, (_, at) =>
    trySignIn(`${at}-${email}`, WRONG_PASSWORD, `2001:db8:9:${at}::1`),
  )
  // One attempt of the site runs, 16 wait, and the others get a 503.
  expect((await trySignIn(email)).status).toBe(401)
  const statuses = (await Promise.all(crowd)).map(({ status }) => status)
  expect(statuses.filter(status => status === 503).length).toBeGreaterThan(0)
  expect((await trySignIn(email, PASSWORD)).status).toBe(200)
})

/** An account with an app and a password, which the proxy has signed in before. */
async function newAccountAtProxy() {
  const account = await newAccount(server)
  await server.sql`update accounts set is_email_proven = true where id = ${account.uuid}`
  await signInAtProxy(account.email)
  return { account, secret: await insertTotpSecret(server, account) }
}

async function signInAtProxy(email: string, browser = createBrowser(server.url)) {
  const headers = { 'remote-email': email, 'x-forwarded-for': newAddress() }
  const options = { method: 'POST', json: {}, headers }
  expect((await browser.request('/api/session/proxy', options)).status).toBe(200)
  return browser
}

test('reliability §6 wrong codes count in one budget for all sessions, which leaves that of strangers alone', async () => {
  const { account, secret } = await newAccountAtProxy()
  let checked = 0
  for (let session = 0; session < 8; session++) {
    const browser = await signInAtProxy(account.email)
    for (let time = 0; time < 4; time++) {
      const answered = await browser.post('/api/session/second-factor', { code: '000000' })
      expect([401, 429]).toContain(answered.status)
      if (answered.status === 401) checked++
    }
  }
  expect(checked).toBe(20)
  const late = await signInAtProxy(account.email)
  const refused = await late.post('/api/session/second-factor', { code: toTotpCode(secret) })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, expect.any(String)])
  // The owner still gets in with the password and a code.
  const owner = createBrowser(server.url)
  expect((await owner.signIn(account.email, PASSWORD, newAddress())).status).toBe(202)
  const code = await owner.post('/api/session/code', { code: toTotpCode(secret) })
  expect(code.status).toBe(200)
})

test('reliability §6 browsers that became known without the code share the budget of sessions', async () => {
  const { account } = await newAccountAtProxy()
  let checked = 0
  for (let browsers = 0; browsers < 8; browsers++) {
    // Each sign-in at the proxy makes a new browser a known one.
    const browser = await signInAtProxy(account.email)
    await browser.delete('/api/session')
    for (let time = 0; time < 4; time++) {
      expect((await browser.signIn(account.email)).status).toBe(202)
      const { status } = await browser.post('/api/session/code', { code: '000000' })
      if (status === 401) checked++
    }
  }
  expect(checked).toBe(20)
})

test('reliability §6 strangers who know the password delay no session that asks for a code', async () => {
  const { account, secret } = await newAccountAtProxy()
  const browser = await signInAtProxy(account.email)
  const statuses: number[] = []
  for (let time = 0; statuses.at(-1) !== 429; time++) {
    const stranger = createBrowser(server.url)
    const headers = { 'x-forwarded-for': newAddress() }
    await stranger.signIn(account.email, PASSWORD, newAddress())
    const options = { method: 'POST', json: { code: '000000' }, headers }
    statuses.push((await stranger.request('/api/session/code', options)).status)
  }
  expect(statuses).toEqual([...Array(20).fill(401), 429])
  const answered = await browser.post('/api/session/second-factor', { code: toTotpCode(secret) })
  expect(answered.status).toBe(200)
})

test('reliability §6 passwords that sessions confirm have a budget, too', async () => {
  const { account } = await newAccountAtProxy()
  await server.sql`delete from totp_secrets where account_id = ${account.uuid}`
  const verify = async (password: string) =>
    (await signInAtProxy(account.email)).post('/api/session/verify', { password })
  expect((await verify(WRONG_PASSWORD)).status).toBe(401)
  await setBudgets(119, '0', 'password budget of sessions and known browsers')
  expect((await verify(WRONG_PASSWORD)).status).toBe(401)
  expectDelay(await verify(PASSWORD), 30)
  expect((await trySignIn(account.email, PASSWORD)).status).toBe(200)
  await setBudgets(120, '30 seconds', 'password budget of sessions and known browsers')
  expect((await verify(PASSWORD)).status).toBe(200)
})
