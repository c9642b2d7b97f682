import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hashPassword } from '../../src/accounts/credentials.ts'
import { ageFailures, setLastFailures } from '../support/ageing.ts'
import { expectFailure } from '../support/answers.ts'
import {
  createBrowser,
  newAccount,
  newAddress,
  PASSWORD,
  WRONG_PASSWORD,
} from '../support/browser.ts'
import type { Answered } from '../support/project.ts'
import { boot, type Booted } from '../support/server.ts'

let server: Booted
beforeAll(async () => {
  server = await boot({ trustedProxies: ['127.0.0.1/32'] })
})
afterAll(() => server[Symbol.asyncDispose]())

/** Tries to sign in from another browser, each time at a new address. */
const tryElsewhere = (email: string, password = WRONG_PASSWORD) =>
  createBrowser(server.url).signIn(email, password, newAddress())

/** Counts one failure at a new address as number `failures` + 1, the last one `interval` ago. */
async function failTimes(email: string, failures: number, interval = '0'): Promise<void> {
  expect((await tryElsewhere(email)).status).toBe(401)
  await server.sql`update sign_in_failures set failures = ${failures}`
  await setLastFailures(server.sql, interval)
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
  ['an account', async () => (await newAccount(server)).email],
  ['an unknown address', async () => `${crypto.randomUUID()}@example.com`],
])(
  'reliability §6 from the fifth failure on, %s is delayed: 1 s, doubling to 15 minutes at most',
  async (_, toEmail) => {
    const email = await toEmail()
    for (let failure = 1; failure <= 17; failure++) {
      expect((await tryElsewhere(email)).status).toBe(401)
      if (failure < 5) continue
      const seconds = Math.min(2 ** (failure - 5), 900)
      // Early tries do not extend the delay, and their passwords are not checked.
      await setLastFailures(server.sql, '0')
      expectDelay(await tryElsewhere(email, PASSWORD), seconds)
      await setLastFailures(server.sql, `${seconds - 1} seconds`)
      expectDelay(await tryElsewhere(email, PASSWORD), 1)
      await setLastFailures(server.sql, `${seconds} seconds`)
    }
  },
  20_000,
)

test('reliability §6 failures are forgotten after a day without one', async () => {
  const { email } = await newAccount(server)
  await failTimes(email, 8, '1 day')
  for (let time = 0; time < 5; time++) expect((await tryElsewhere(email)).status).toBe(401)
  await setLastFailures(server.sql, '0')
  expectDelay(await tryElsewhere(email), 1)
}, 90_000)

test('reliability §6 of 50 concurrent guesses after a delay, one is checked', async () => {
  const { email } = await newAccount(server)
  await failTimes(email, 12, '15 minutes')
  const answers = await Promise.all(Array.from({ length: 50 }, () => tryElsewhere(email)))
  const statuses = answers.map(({ status }) => status).sort()
  expect(statuses).toEqual([401, ...Array(49).fill(429)])
}, 90_000)

test('reliability §6 a success resets the failures of the account', async () => {
  const { email } = await newAccount(server)
  for (let round = 0; round < 3; round++) {
    for (let time = 0; time < 4; time++) expect((await tryElsewhere(email)).status).toBe(401)
    expect((await tryElsewhere(email, PASSWORD)).status).toBe(200)
  }
}, 90_000)

test.each([
  ['an address', () => newAddress(), (address: string) => address],
  [
    'a /64 of IPv6',
    () => `2001:db8:${(Math.random() * 65_535) | 0}:1`,
    (network: string) => `${network}::${((Math.random() * 65_535) | 0).toString(16)}`,
  ],
])(
  'reliability §6 20 failures from %s within 10 minutes are too many',
  async (_, newNetwork, toAddress) => {
    const network = newNetwork()
    const account = await newAccount(server)
    const browser = createBrowser(server.url)
    const tryFromHere = (email: string, password = WRONG_PASSWORD) =>
      browser.signIn(email, password, toAddress(network))
    for (let time = 0; time < 20; time++) {
      expect((await tryFromHere(`${time}-${account.email}`)).status).toBe(401)
    }
    const refused = await tryFromHere(account.email, PASSWORD)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeWithin(500, 601)
    // Refusals of a network do not count for the account, and delay no other network.
    for (let time = 0; time < 6; time++) expect((await tryFromHere(account.email)).status).toBe(429)
    expect((await tryElsewhere(account.email, PASSWORD)).status).toBe(200)
    await ageFailures(server.sql, '10 minutes')
    expect((await tryFromHere(account.email, PASSWORD)).status).toBe(200)
  },
  20_000,
)

test('reliability §6 signing in between guesses does not raise the limit of a network', async () => {
  const [own, address] = [await newAccount(server), newAddress()]
  const statuses = []
  for (let time = 0; time < 21; time++) {
    const email = `${time}-${own.email}`
    statuses.push((await createBrowser(server.url).signIn(email, WRONG_PASSWORD, address)).status)
    if (time % 5 === 0) await createBrowser(server.url).signIn(own.email, PASSWORD, address)
  }
  expect(statuses).toEqual([...Array(20).fill(401), 429])
}, 90_000)

test('reliability §6 guesses from elsewhere cannot lock out a known browser of the owner', async () => {
  const account = await newAccount(server)
  const [known, address] = [createBrowser(server.url), newAddress()]
  await known.signIn(account.email, PASSWORD, address)
  await known.delete('/api/session')
  await failTimes(account.email, 16)
  expectDelay(await createBrowser(server.url).signIn(account.email, PASSWORD, address), 900)
  // Guesses from the same network cannot either.
  for (let time = 0; time < 21; time++) {
    await createBrowser(server.url).signIn(`${time}-${account.email}`, WRONG_PASSWORD, address)
  }
  expect((await known.signIn(account.email, PASSWORD, address)).status).toBe(200)
}, 90_000)

test('reliability §6 a known browser has its own delay, and only for accounts that signed in there', async () => {
  const [account, other] = [await newAccount(server), await newAccount(server)]
  const browser = createBrowser(server.url)
  await browser.signIn(account.email)
  for (let time = 0; time < 5; time++) {
    expect((await browser.signIn(account.email, WRONG_PASSWORD)).status).toBe(401)
  }
  await setLastFailures(server.sql, '0')
  expectDelay(await browser.signIn(account.email, PASSWORD), 1)
  expect((await tryElsewhere(account.email, PASSWORD)).status).toBe(200)

  await failTimes(other.email, 7)
  expectDelay(await browser.signIn(other.email, PASSWORD, newAddress()), 4)
}, 90_000)

test('reliability §6 a browser can be known for two accounts', async () => {
  const [account, other] = [await newAccount(server), await newAccount(server)]
  const browser = createBrowser(server.url)
  for (const { email } of [account, other]) await browser.signIn(email)
  for (const { email } of [account, other]) {
    await failTimes(email, 16)
    expect((await browser.signIn(email)).status).toBe(200)
  }
}, 90_000)

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
}, 90_000)

test('reliability §6 an account has at most 20 known browsers: the least recently used one is forgotten', async () => {
  const account = await newAccount(server)
  const browsers = Array.from({ length: 21 }, () => createBrowser(server.url))
  for (const browser of browsers) await browser.signIn(account.email, PASSWORD, newAddress())
  await failTimes(account.email, 16)
  expect((await browsers[0]!.signIn(account.email, PASSWORD, newAddress())).status).toBe(429)
  expect((await browsers[1]!.signIn(account.email, PASSWORD, newAddress())).status).toBe(200)
}, 90_000)

test('reliability §6 a try that could not be hashed in time is a 503, and does not count', async () => {
  const { email } = await newAccount(server)
  const address = newAddress()
  // A known browser: strangers have a queue of their own.
  const browser = createBrowser(server.url)
  await browser.signIn(email, PASSWORD, address)
  let isAnswered = false
  const hash = async () => {
    while (!isAnswered) await hashPassword(PASSWORD)
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
}, 90_000)
