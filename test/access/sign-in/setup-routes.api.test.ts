import { afterAll, expect, test } from 'bun:test'
import { hashSecret, newSecret } from '../../../src/access/guard/secret.ts'
import type { Config } from '../../../src/base/config.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { createBrowser, PASSWORD } from '../../support/worlds/browser.ts'
import { newOrganization } from '../../support/worlds/signed-in-account.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'
import { findFreePort } from '../../support/loopback.ts'
import { openSql } from '../../support/sql.ts'

const booted: Booted[] = []
afterAll(async () => {
  for (const server of booted) await server[Symbol.asyncDispose]()
})

/** Boots a server on a database without accounts, unless `overrides` name another one. */
async function start(overrides: Partial<Config> = {}): Promise<Booted> {
  const server = await boot(overrides)
  booted.push(server)
  return server
}

const toClaim = (token: string | undefined, name = 'ada') => ({
  token,
  name: ` ${name} `,
  email: `${name}@Example.com`,
  password: PASSWORD,
})

test('design §5 the setup link creates the operator, owner of the first organization, and signs in', async () => {
  const server = await start()
  // The first owner gets every organization.
  const earlier = await newOrganization(server)
  const browser = createBrowser(server.url)
  const { setupToken } = server.server
  expect(setupToken).toMatch(/^[\w-]{22}$/)
  expect((await browser.get('/api/setup')).body.data).toEqual({})
  const readSignIn = async (from = browser) => (await from.get('/api/sign-in')).body.data
  expect(await readSignIn()).toMatchObject({ hasOwner: false, isSignedIn: false })
  const claimed = await browser.post('/api/setup', {
    ...toClaim(setupToken),
    ...{ organization: ' Analytical Engines ', project: 'Web shop' },
  })
  expect(claimed.status).toBe(201)
  expect(claimed.body.data).toMatchObject({
    person: { name: 'ada', email: 'ada@example.com', isOperator: true },
    isVerified: true,
    credentials: { hasPassword: true, hasSecondFactor: false },
    organizations: [
      { name: 'Analytical Engines', role: 'owner', projects: [{ name: 'Web shop' }] },
      { id: earlier.id, role: 'owner' },
    ],
  })
  expect((await browser.get('/api/me')).body.data).toEqual(claimed.body.data)
  expect((await createBrowser(server.url).signIn('ada@example.com')).status).toBe(200)

  // The sign-in page learns it without a failed request.
  expect(await readSignIn()).toMatchObject({ hasOwner: true, isSignedIn: true })
  expect(await readSignIn(createBrowser(server.url))).toMatchObject({ isSignedIn: false })
  // Setup is over for everyone.
  expectFailure(await browser.get('/api/setup'), 404, 'not_found')
  const again = await browser.post('/api/setup', toClaim(setupToken, 'eve'))
  expectFailure(again, 404, 'not_found')
  const later = await start({ databaseUrl: server.databaseUrl })
  expect(later.server.setupToken).toBeUndefined()
  expect(await server.sql`select from setup_links`).toHaveLength(0)
  expect(await server.sql`select actor, action from audit_log order by at, id`).toMatchObject([
    { actor: 'server', action: 'key.created' },
    { actor: 'anonymous', action: 'owner.created' },
    { actor: 'account', action: 'session.created' },
    { actor: 'account', action: 'session.created' },
  ])
})

test('design §5 a setup link is dead after 30 minutes and after a restart; forged links never work', async () => {
  const server = await start()
  const browser = createBrowser(server.url)
  const { setupToken: older } = server.server
  const newer = (await start({ databaseUrl: server.databaseUrl })).server.setupToken
  const post = (token: string | undefined) => browser.post('/api/setup', toClaim(token))
  for (const dead of [older, newSecret(128), `${newer}=`, '-']) {
    expectFailure(await post(dead), 404, 'not_found')
  }
  expectIssues(await post(undefined), 'token required')
  const unfit = await browser.post('/api/setup', { ...toClaim(newer), password: 'ada@example.com' })
  expectIssues(unfit, 'password invalid_value')
  await server.sql`update setup_links set expires_at = expires_at - interval '30 minutes'`
  expectFailure(await post(newer), 404, 'not_found')
  expect((await browser.get('/api/setup')).status).toBe(200)
  expect(await server.sql`select from accounts`).toHaveLength(0)
})

test('reliability §6 of 15 concurrent claims over two servers, with one link or many, one wins', async () => {
  const one = await start()
  const two = await start({ databaseUrl: one.databaseUrl })
  // More links than a start would leave.
  const tokens = [two.server.setupToken, newSecret(128), newSecret(128)]
  for (const token of tokens.slice(1)) {
    await one.sql`
      insert into setup_links (hash, expires_at)
      values (decode(${hashSecret(token ?? '')}, 'hex'), now() + interval '30 minutes')
    `
  }
  const answers = await Promise.all(
    Array.from({ length: 15 }, (_, at) =>
      createBrowser(at % 2 ? one.url : two.url).post(
        '/api/setup',
        toClaim(tokens[at % 3], `claimant-${at}`),
      ),
    ),
  )
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter(status => status === 201)).toHaveLength(1)
  // 503: more passwords than can be hashed at once.
  expect(statuses.every(status => [201, 404, 503].includes(status))).toBe(true)
  const accounts = await one.sql<{ email: string }[]>`select email from accounts`
  const winner = answers.find(({ status }) => status === 201)
  expect(accounts.map(({ email }) => email)).toEqual([winner?.body.data.person.email])
  expect(await one.sql`select from memberships`).toHaveLength(1)
  expect(await one.sql`select from sessions`).toHaveLength(1)
})

test('design §5 OWNER_EMAIL and OWNER_PASSWORD create the first owner, once and without a link', async () => {
  const databaseUrl = await cloneDatabase()
  const owner = { email: 'ada@example.com', password: PASSWORD }
  const servers = await Promise.all([start({ databaseUrl, owner }), start({ databaseUrl, owner })])
  const [server] = servers
  for (const { server } of servers) expect(server.setupToken).toBeUndefined()
  const browser = createBrowser(server.url)
  expectFailure(await browser.get('/api/setup'), 404, 'not_found')
  const { body } = await browser.signIn(owner.email)
  expect(body.data.person).toMatchObject({ name: 'ada', email: owner.email, isOperator: true })
  expect(body.data.organizations).toMatchObject([{ role: 'owner' }])

  const eve = { email: 'eve@example.com', password: `${PASSWORD} more` }
  const later = await start({ databaseUrl, owner: eve })
  expect(later.server.setupToken).toBeUndefined()
  expect((await createBrowser(later.url).signIn(eve.email, eve.password)).status).toBe(401)
  const changed = await start({ databaseUrl, owner: { ...owner, password: eve.password } })
  expect((await createBrowser(changed.url).signIn(owner.email)).status).toBe(200)
})

test.each([
  // The start waits for a table that another transaction has locked, before and after the key.
  ['the first project', 'organizations'],
  ['the owner of OWNER_EMAIL', 'accounts'],
])('reliability §6 a server is not ready before %s exists', async (_, table) => {
  const databaseUrl = await cloneDatabase()
  await using sql = connectTo(databaseUrl)
  const port = await findFreePort()
  const owner = { email: 'ada@example.com', password: PASSWORD }
  const readyz = `http://127.0.0.1:${port}/readyz`
  let starting: Promise<Booted> | undefined
  await sql.begin(async tx => {
    await tx`lock table ${tx(table)} in share row exclusive mode`
    starting = start({ databaseUrl, port, owner })
    await until(async () => {
      const [waiting] = await sql`
        select from pg_locks
        where relation = ${table}::regclass and not granted and mode = 'ShareRowExclusiveLock'
      `
      return waiting !== undefined
    })
    await until(async () => {
      const answer = await fetch(readyz)
      expect(answer.status).toBe(503)
      const { reasons } = (await answer.json()) as { reasons: string[] }
      return reasons.join() === 'The first project or the first owner does not exist yet'
    })
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200)
  })
  await starting
  await until(async () => (await fetch(readyz)).ok)
})

function connectTo(url: string) {
  const sql = openSql(url, { max: 2 })
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) })
}
