import { expect, test } from 'bun:test'
import { newSecret } from '../../../src/access/guard/secret.ts'
import { openRaw, sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import { lockTable } from '../../support/database-lock.ts'
import { withServer } from '../../support/servers/server.ts'
import { newProject } from '../../support/worlds/project.ts'
import {
  createBrowser,
  newAccount,
  newAddress,
  PASSWORD,
  WRONG_PASSWORD,
} from '../../support/worlds/browser.ts'

// Attacks on sign-in by clients without an account: guesses, lock-outs and forged addresses.

const server = withServer({ trustedProxies: ['127.0.0.0/8'] })

const trySignIn = (email: string, password: string, address: string) =>
  createBrowser(server.url).signIn(email, password, address)

test('guesses from new networks all the time are bounded by the budget of the account', async () => {
  const { email } = await newAccount(server, { isCostly: true })
  await trySignIn(email, WRONG_PASSWORD, newAddress())
  await server.sql`
    update sign_in_failures set failures = 117, last_at = clock_timestamp()
    where lane = sha256('password budget')
  `
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => trySignIn(email, WRONG_PASSWORD, newAddress())),
  )
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(3)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(9)
})

test('strangers from any number of networks delay no member and no known browser', async () => {
  const account = await newAccount(server)
  const [member, known] = [createBrowser(server.url), createBrowser(server.url)]
  for (const browser of [member, known]) await browser.signIn(account.email, PASSWORD, newAddress())
  await known.delete('/api/session')
  const statuses: number[] = []
  const visit = async (address: string, cookie: string) => {
    const headers = { 'x-forwarded-for': address, cookie }
    const options = { method: 'POST', json: { token: newSecret(256) }, headers }
    statuses.push((await createBrowser(server.url).request('/api/invites/look', options)).status)
  }
  const hold = await lockTable(server.sql, 'invites')
  // Some pretend to be in a known browser.
  const crowd = Array.from({ length: 200 }, (_, at) =>
    visit(
      at % 2 === 0 ? newAddress() : `2001:db8:${at}::1`,
      at % 3 === 0 ? `tidings-device=${newSecret(256)}` : '',
    ),
  )
  try {
    await hold.untilBlocked()
    expect((await member.get('/api/me')).status).toBe(200)
    expect((await known.signIn(account.email, PASSWORD, newAddress())).status).toBe(200)
    expect(statuses).toEqual([])
  } finally {
    await hold.release()
    await Promise.all(crowd)
  }
  expect(new Set(statuses)).toEqual(new Set([404]))
})

/** Returns a sign-in as text, and sends it with these header lines. */
async function signInRaw(email: string, lines: readonly string[], body?: string) {
  const json = JSON.stringify({ email, password: PASSWORD })
  const site = [`Host: ${new URL(server.url).host}`, `Origin: ${server.url}`]
  const head = [...site, 'Content-Type: application/json', ...lines]
  const request = toRequest('POST /api/session HTTP/1.1', head, body ?? json)
  return sendRaw(server.url, request.replaceAll('LENGTH', String(json.length)))
}

const LENGTH = 'Content-Length: LENGTH'
const CLIENT = 'X-Forwarded-For: 192.0.2.8'

test('of two X-Forwarded-For headers, the one that the proxy appends counts', async () => {
  const { email, uuid } = await newAccount(server)
  const forged = 'x-forwarded-for: 6.6.6.6'
  const underscore = 'X_Forwarded_For: 6.6.6.6'
  const answer = await signInRaw(email, [LENGTH, underscore, forged, CLIENT])
  expect(answer?.status).toBe(200)
  const [session] = await server.sql`select address from sessions where account_id = ${uuid}`
  expect(session).toEqual({ address: '192.0.2.8' })
})

test.each([
  ['two lengths', [LENGTH, 'Content-Length: 1', CLIENT]],
  ['a length and chunks', [LENGTH, 'Transfer-Encoding: chunked', CLIENT]],
  ['an unknown coding', [LENGTH, 'Transfer-Encoding: xchunked', CLIENT]],
  ['chunks that are not the last coding', ['Transfer-Encoding: chunked, identity', CLIENT]],
  ['a space before the colon', [LENGTH, 'X-Forwarded-For : 6.6.6.6', CLIENT]],
  ['a folded line', [LENGTH, CLIENT, ' 6.6.6.6']],
  ['two hosts', [LENGTH, 'Host: evil.example', CLIENT]],
  ['a NUL', [LENGTH, 'X-Forwarded-For: 6.6.6.6\0, 192.0.2.8']],
  ['17 KiB', [LENGTH, `a: ${'x'.repeat(17 * 1024)}`, CLIENT]],
  ['300 fields', [LENGTH, ...Array.from({ length: 300 }, (_, at) => `a${at}: x`), CLIENT]],
])('a head with %s signs nobody in', async (_, lines) => {
  const { email, uuid } = await newAccount(server)
  const answer = await signInRaw(email, lines)
  expect([400, 431]).toContain(answer?.status ?? 0)
  expect(await server.sql`select from sessions where account_id = ${uuid}`).toHaveLength(0)
})

test('a trailer cannot change the address of a client', async () => {
  const { email, uuid } = await newAccount(server)
  const json = JSON.stringify({ email, password: PASSWORD })
  const body = `${json.length.toString(16)}\r\n${json}\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n`
  await signInRaw(email, ['Transfer-Encoding: chunked', CLIENT], body)
  const sessions = await server.sql`select address from sessions where account_id = ${uuid}`
  expect(sessions.filter(({ address }) => address !== '192.0.2.8')).toEqual([])
})

const LINES = ['Content-Type: application/json', CLIENT]
/** Beginnings of requests that never continue. */
const BEGINNINGS = [
  '',
  'G',
  'POST /v1/events HTTP/1.1\r\nHost: a\r\nX-Long: ',
  'POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{',
  'GET /api/feed HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n',
]

test('600 requests that never end, also sign-ins, and 1,000 cookies delay no other request', async () => {
  const { email } = await newAccount(server, { isCostly: true })
  const { post } = await newProject(server)
  const site = [`Host: ${new URL(server.url).host}`, `Origin: ${server.url}`, ...LINES]
  const signIn = toRequest('POST /api/session HTTP/1.1', [...site, 'Content-Length: 100'], '{')
  const open = Array.from({ length: 600 }, () => openRaw(server.url))
  for (const [at, one] of open.entries()) one.write(BEGINNINGS[at % 6] ?? signIn)
  try {
    const cookies = Array.from({ length: 1_000 }, (_, at) => `c${at}=x`).join('; ')
    expect((await signInRaw(email, [LENGTH, `Cookie: ${cookies}`, CLIENT]))?.status).toBe(200)
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    const sent = await post('/v1/events', { channelName: 'payments', title: 'New payment' })
    expect(sent.status).toBe(201)
  } finally {
    for (const one of open) one[Symbol.dispose]()
  }
})

// The last test, because the server writes what it has counted when it stops.
test('guesses at unknown addresses write an entry for each network and minute, for 20 networks', async () => {
  let guesses = 0
  const guess = async (from: string) =>
    (await trySignIn(`unknown-${guesses++}@example.com`, WRONG_PASSWORD, from)).status
  const address = newAddress()
  for (let nth = 0; nth < 3; nth++) expect(await guess(address)).toBe(401)
  const networks = Array.from({ length: 21 }, newAddress)
  expect(await Promise.all(networks.map(guess))).toEqual(networks.map(() => 401))
  await server.server.stop()
  const [row] = await server.sql`
    select
      count(*) filter (where details ->> 'count' is null)::int as single,
      sum((details ->> 'count')::int) filter (where address = ${address})::int as guesses,
      count(*)::int as entries, count(distinct at)::int as times
    from audit_log
    where action = 'session.refused' and target is null
  `
  expect(row).toMatchObject({ single: 0, guesses: 3 })
  expect(row?.['entries']).toBeLessThanOrEqual(20 * row?.['times'])
})
