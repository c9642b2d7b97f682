import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import {
  createBrowser,
  newAccount,
  newAddress,
  PASSWORD,
  WRONG_PASSWORD,
} from '../../support/browser.ts'
import { boot, type Booted } from '../../support/server.ts'

// Attacks on sign-in by clients without an account: guesses, lock-outs and forged addresses.
//
// Covered elsewhere: delays and counts one by one (api/sign-in-throttle), response times
// (api/sign-in), use of links (links).

setDefaultTimeout(60_000)

let server: Booted
beforeAll(async () => {
  server = await boot({ trustedProxies: ['127.0.0.0/8'] })
})
afterAll(() => server[Symbol.asyncDispose]())

const trySignIn = (email: string, password: string, address: string) =>
  createBrowser(server.url).signIn(email, password, address)

test('scripts that guess and poll from 20 networks keep no new device out', async () => {
  const { email } = await newAccount(server)
  let isOver = false
  const statuses: number[] = []
  const scripts = Array.from({ length: 20 }, async () => {
    const address = newAddress()
    while (!isOver) statuses.push((await trySignIn(email, WRONG_PASSWORD, address)).status)
  })
  try {
    while (statuses.filter(status => status === 429).length < 40) await Bun.sleep(10)
    const startedMs = performance.now()
    expect((await trySignIn(email, PASSWORD, newAddress())).status).toBe(200)
    expect(performance.now() - startedMs).toBeLessThan(5_000)
  } finally {
    isOver = true
    await Promise.all(scripts)
  }
  // Half of the budget is left to networks with fewer failures.
  expect(statuses.filter(status => status === 401).length).toBeLessThanOrEqual(100)
  expect((await trySignIn(email, PASSWORD, newAddress())).status).toBe(200)
})

test('guesses from new networks all the time are bounded by the budget of the account', async () => {
  const { email } = await newAccount(server)
  await trySignIn(email, WRONG_PASSWORD, newAddress())
  await server.sql`
    update sign_in_failures set failures = 110, last_at = clock_timestamp()
    where lane = sha256('password budget')
  `
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => trySignIn(email, WRONG_PASSWORD, newAddress())),
  )
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(10)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(20)
})

test('20 guesses at invented accounts lock nobody out who has the same address', async () => {
  const { email } = await newAccount(server)
  const address = newAddress()
  for (let time = 0; time < 21; time++) {
    await trySignIn(`invented-${time}@example.com`, WRONG_PASSWORD, address)
  }
  expect((await trySignIn(email, PASSWORD, address)).status).toBe(200)
})

test.each([
  ['1.1.1.1, 192.0.2.7:4711', '192.0.2.7'],
  ['1.1.1.1, [2001:db8::7]:443', '2001:db8::7'],
  ['1.1.1.1, [2001:db8::7]', '2001:db8::7'],
  ['1.1.1.1, 192.0.2.7:4711, 127.0.0.2:80', '192.0.2.7'],
  ['1.1.1.1, unknown', '127.0.0.1'],
  ['1.1.1.1, 192.0.2.7.8, 127.0.0.2', '127.0.0.2'],
])(
  'a client that forges the first hop of %p is %p in the list of sessions',
  async (hops, client) => {
    const { email } = await newAccount(server)
    const browser = createBrowser(server.url)
    await browser.signIn(email, PASSWORD, hops)
    expect((await browser.get('/api/sessions')).body.data.items[0].address).toBe(client)
  },
)
