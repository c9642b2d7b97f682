import { beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../src/base/ids.ts'
import { newSigningSecret } from '../../src/delivery/webhooks/signing.ts'
import {
  createBrowser,
  newAccount,
  newAddress,
  PASSWORD,
  WRONG_PASSWORD,
} from '../support/worlds/browser.ts'
import { openFeed } from '../support/clients/feed.ts'
import {
  prepareClockedDatabases,
  type ClockedDatabase,
} from '../support/worlds/clocked-database.ts'
import { runProgram, startProgram, type Program } from '../support/servers/process.ts'
import { newProject } from '../support/worlds/project.ts'
import { startReceiver } from '../support/servers/receiver.ts'
import { testSecrets } from '../support/secret.ts'
import { newTenant, type TestTenant } from '../support/worlds/tenant.ts'
import { until } from '../support/until.ts'
import { insertReceivingWebhook } from './webhook-receiver.ts'
import { makeFolder } from '../support/scratch.ts'

// Real servers; the clock of the database or of the server is moved. The tests run together. Each
// waits for the checks of its own server.

const DAY_S = 86_400
const SHIFTED_CLOCK = join(import.meta.dirname, '../support/shifted-clock.ts')
const ONCE = { 'idempotency-key': 'an order' }

let createDatabase: () => Promise<ClockedDatabase>
beforeAll(async () => {
  createDatabase = await prepareClockedDatabases()
})

async function start({ url }: ClockedDatabase, env: Record<string, string> = {}): Promise<Program> {
  return startProgram({
    env: {
      DATABASE_URL: url,
      EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
      TRUSTED_PROXIES: '127.0.0.1/32',
      ...env,
    },
  })
}

/** Inserts a webhook to `url` for the events of a project. */
async function addHook({ sql }: ClockedDatabase, projectId: string, url: string): Promise<void> {
  const { uuid } = newId('whk')
  await insertReceivingWebhook(sql, testSecrets(), {
    projectId,
    uuid,
    url,
    secret: newSigningSecret(),
  })
}

async function readSeqs({ sql }: ClockedDatabase, { projectId }: TestTenant): Promise<number[]> {
  const rows = await sql<{ seq: number }[]>`
    select seq::int as seq from events where project_id = ${projectId} order by seq
  `
  return rows.map(({ seq }) => seq)
}

/** Resolves when the server has checked the clock again and finished the work of earlier checks. */
async function untilCleared({ sql }: ClockedDatabase): Promise<void> {
  for (let rounds = 0; rounds < 2; rounds++) {
    await sql`update clock set checked_at = now() - interval '2 minutes'`
    await until(async () => {
      const rows = await sql`select from clock where checked_at > now() - interval '1 minute'`
      return rows.length > 0
    })
  }
}

test.concurrent('clock: a leap of a year over a restart deletes nothing, with any retention', async () => {
  await using database = await createDatabase()
  const { sql } = database
  const first = await start(database)
  const before = await newTenant({ sql, url: first.url })
  await sql`update projects set keep_days = 10 where id = ${before.projectId}`
  for (let sent = 0; sent < 3; sent++) await before.send()
  await until(async () => (await sql`select from clock`).length > 0)
  expect((await first.kill('SIGTERM')).code).toBe(0)

  await database.moveClock('1 year')
  await using second = await start(database)
  await until(() => second.logged('jumped forward by').length > 0)
  const doctor = (...args: string[]) =>
    runProgram({ env: { DATABASE_URL: database.url }, args: ['doctor', ...args] })
  const [report] = await Promise.all([doctor(), untilCleared(database)])
  expect(await readSeqs(database, before)).toEqual([1, 2, 3])
  expect(report.output).toContain('jumped forward')
  await doctor('--trust-clock')
  await until(async () => (await readSeqs(database, before)).length === 0)
})

test.concurrent('clock: after 40 days without a server, a start extends deadlines before it sends', async () => {
  await using database = await createDatabase()
  await using receiver = await startReceiver({ reply: { status: 500 } })
  const { sql } = database
  const first = await start(database)
  const tenant = await newTenant({ sql, url: first.url })
  for (const name of ['failing', 'disabled']) {
    const made = await tenant.account.post(`${tenant.path}/webhooks`, {
      name,
      url: `${receiver.url}/${name}`,
    })
    expect(made.status).toBe(201)
  }
  await tenant.send()
  const read = () => sql<{ name: string; attempts: number; is_enabled: boolean }[]>`
    select w.name, o.attempts, w.disabled_at is null as is_enabled
    from webhooks w
      join outbox o on o.target_id = w.id
    where o.token is null
    order by w.name
  `
  await until(async () => (await read()).filter(({ attempts }) => attempts === 1).length === 2)
  await sql`update webhooks set disabled_at = now(), disabled_reason = 'A test' where name = 'disabled'`
  await until(async () => (await sql`select from clock`).length > 0)
  expect((await first.kill('SIGTERM')).code).toBe(0)

  await database.moveClock('40 days')
  await using _ = await start(database)
  // Neither 40 days of failures nor 40 days without a webhook have passed.
  await until(async () => (await read())[1]?.attempts === 2)
  expect(await read()).toMatchObject([
    { name: 'disabled', attempts: 1, is_enabled: false },
    { name: 'failing', attempts: 2, is_enabled: true },
  ])
})

test.concurrent('clock: a running server keeps working while the clock goes back by an hour, and ahead by up to a day', async () => {
  await using database = await createDatabase()
  await using receiver = await startReceiver()
  const { sql } = database
  await using program = await start(database)
  const { url } = program
  const tenant = await newTenant({ sql, url })
  const { email } = await newAccount({ sql })
  const limited = await newProject({ sql, url }, { limit: 2 })
  await using feed = await follow(url, tenant)

  // A delivery waits for its second attempt.
  receiver.script('/hook', { status: 500 }, { status: 200 })
  await addHook(database, tenant.projectId, `${receiver.url}/hook`)
  const sent = await tenant.send({}, ONCE)
  await until(async () => {
    const rows = await sql`select from outbox where attempts = 1 and token is null`
    return rows.length === 1
  })
  const address = newAddress()
  const fail = () => createBrowser(url).signIn(email, WRONG_PASSWORD, address)
  expect((await fail()).status).toBe(401)
  await sql`update sign_in_failures set failures = 30`
  for (const status of [200, 200, 429]) expect((await limited.get('/v1/me')).status).toBe(status)

  for (const [nth, interval] of ['-1 hour', '1 hour', '10 minutes', '1 day'].entries()) {
    await database.moveClock(interval)
    // Windows restart, and sessions stay valid.
    for (const status of [200, 200, 429]) expect((await limited.get('/v1/me')).status).toBe(status)
    if (interval !== '1 day') expect(await tenant.send({}, ONCE)).toEqual(sent)
    expect((await tenant.send()).seq).toBe(nth + 2)
    expect((await tenant.account.get('/api/me')).status).toBe(200)
    // Beside the second attempt for the first event.
    await receiver.until(nth + 3, '/hook')
    if (nth > 0) continue
    await until(() => program.logged('went back by').length > 0)
    const { status, headers } = await fail()
    expect(status).toBe(429)
    expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(15 * 60)
  }
  await until(() => feed.seqs.length === 5)
  expect(feed.seqs).toEqual([1, 2, 3, 4, 5])
  await until(async () => (await sql`select from outbox`).length === 0)
  // A delivery in flight when the clock leaps past its lease is sent again.
  const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
  expect(new Set(ids).size).toBe(5)
})

test.concurrent("clock: the server's own clock is irrelevant: it may be off by minutes or years, and jump", async () => {
  await using database = await createDatabase()
  await using receiver = await startReceiver()
  const { sql } = database
  const file = join(makeFolder(), 'shift')
  const shift = (seconds: number) => writeFileSync(file, String(seconds * 1_000))
  shift(0)
  const env = {
    LOG_LEVEL: 'debug',
    CLOCK_SHIFT_FILE: file,
    // Bun splits this at spaces that no backslash precedes.
    BUN_OPTIONS: `--preload ${SHIFTED_CLOCK.replaceAll(' ', '\\ ')}`,
  }
  await using program = await start(database, env)
  const { url } = program
  const tenant = await newTenant({ sql, url })
  const { email } = await newAccount({ sql })
  const limited = await newProject({ sql, url }, { limit: 2 })
  await addHook(database, tenant.projectId, `${receiver.url}/hook`)
  await using feed = await follow(url, tenant)
  const sent = await tenant.send({}, ONCE)
  const shifts = [-3_600, DAY_S, 400 * DAY_S]
  for (const [nth, seconds] of shifts.entries()) {
    shift(seconds)
    await untilShifted(program, tenant, seconds)
    const event = await tenant.send()
    const cookieS = await signIn(url, email)
    expect(event.seq).toBe(nth + 2)
    expect(Math.abs(Date.parse(event.createdAt) - Date.now())).toBeLessThan(60_000)
    expect(Math.abs(cookieS - 30 * DAY_S)).toBeLessThan(60)
    expect(await tenant.send({}, ONCE)).toEqual(sent)
    await receiver.until(nth + 2, '/hook')
    // Receivers refuse messages older or newer than five minutes.
    const signedS = Number(receiver.received.at(-1)?.headers['webhook-timestamp'])
    expect(Math.abs(signedS - Date.now() / 1_000)).toBeLessThan(60)
  }
  const answers = [await limited.get('/v1/me'), await limited.get('/v1/me')]
  shift(-DAY_S)
  await untilShifted(program, tenant, -DAY_S)
  answers.push(await limited.get('/v1/me'))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
  await until(() => feed.seqs.length === shifts.length + 1)
  await until(async () => (await sql`select from outbox`).length === 0)
  expect(receiver.received).toHaveLength(shifts.length + 1)

  const doctor = await runProgram({
    env: { ...env, DATABASE_URL: database.url },
    args: ['doctor'],
  })
  expect(doctor.output).toMatch(/failed +clock: Differs from the clock of the database by \d+ s/)
  expect(doctor.code).toBe(1)
})

/** Resolves when the log shows that the server's own clock is ahead by the shift. */
async function untilShifted(
  { output }: Program,
  { account }: TestTenant,
  seconds: number,
): Promise<void> {
  await until(async () => {
    await account.get('/api/me')
    const at = [...output().matchAll(/"@timestamp":"([^"]+)"/g)].at(-1)?.[1] ?? ''
    return Math.abs(Date.parse(at) - Date.now() - seconds * 1_000) < 60_000
  })
}

/** Signs in; returns the lifetime of the session cookie in seconds. */
async function signIn(url: string, email: string): Promise<number> {
  const { headers } = await createBrowser(url).signIn(email, PASSWORD, newAddress())
  const session = headers.getSetCookie().find(text => /^(__Host-)?tidings=/.test(text))
  return Number(/Max-Age=(\d+)/i.exec(session ?? '')?.[1])
}

/** Follows a project's feed from its beginning, and collects the events. */
async function follow(url: string, { organization, account }: TestTenant) {
  const feed = await openFeed(url, account)
  await feed.subscribe(organization.project.id)
  const seqs: number[] = []
  const running = (async () => {
    for (;;) seqs.push(...(await feed.seqs(1)))
  })()
  running.catch(() => {})
  return {
    seqs,
    async [Symbol.asyncDispose]() {
      feed.close()
      await feed.closed
    },
  }
}
