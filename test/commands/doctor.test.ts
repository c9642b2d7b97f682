import { expect, spyOn, test } from 'bun:test'
import * as fs from 'node:fs'
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectTcp, createServer } from 'node:net'
import { join } from 'node:path'
import { checkAddress } from '../../src/cli/doctor/address.ts'
import {
  checkListener,
  checkPush,
  checkQueue,
  checkSearchIndex,
  checkServers,
} from '../../src/cli/doctor/database.ts'
import { connect } from '../../src/database/sql.ts'
import { VERSION } from '../../src/base/version.ts'
import { checkFiles, checkFreeSpace } from '../../src/cli/doctor/files.ts'
import { newSignedInAccount } from '../support/worlds/signed-in-account.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { runProgram } from '../support/servers/process.ts'
import { newProject } from '../support/worlds/project.ts'
import { startReceiver } from '../support/servers/receiver.ts'
import { boot, withServer } from '../support/servers/server.ts'
import { createAuthority } from '../support/certificates.ts'
import { makeFolder } from '../support/scratch.ts'
import { listen } from '../support/loopback.ts'
import { openSql } from '../support/sql.ts'

const server = withServer()

const states = (findings: { check: string; state: string }[]) =>
  Object.fromEntries(findings.map(({ check, state }) => [check, state]))

/** Starts a proxy in front of the server, which changes the head of each request. */
async function startProxy(change: (head: string) => string) {
  const { port } = new URL(server.url)
  const proxy = createServer(client => {
    client.once('data', head => {
      const there = connectTcp(Number(port), '127.0.0.1')
      there.write(change(head.toString('latin1')))
      there.pipe(client).pipe(there)
      there.on('error', () => client.destroy())
      client.on('error', () => there.destroy())
    })
  })
  const proxyPort = await listen(proxy)
  return { url: `http://127.0.0.1:${proxyPort}`, [Symbol.dispose]: () => void proxy.close() }
}

test('design §5 doctor requests BASE_URL, and reports what a proxy removes', async () => {
  const check = async (baseUrl: string) => checkAddress({ baseUrl, trustedProxies: [] })
  expect(states(await check(server.url))).toEqual({
    BASE_URL: 'ok',
    reachable: 'ok',
    proxy: 'ok',
  })
  const withHost = (host: string) => (head: string) => head.replace(/^host: .*$/im, `Host: ${host}`)
  const toOwn = withHost(new URL(server.url).host)
  using good = await startProxy(toOwn)
  const passed = await check(good.url)
  expect(states(passed)['reachable']).toBe('ok')
  // Everything passes: doctor finds that the server has another BASE_URL.
  expect(passed.at(-1)?.message).toContain('has a different BASE_URL')

  using stripping = await startProxy(head =>
    toOwn(head).replaceAll(/^(upgrade|connection): .*\r\n/gim, ''),
  )
  const stripped = await check(stripping.url)
  expect(stripped.at(-1)).toMatchObject({ check: 'proxy', state: 'failed' })
  expect(stripped.at(-1)?.message).toContain('Connection and Upgrade')
  // An address that doctor does not know as that of this machine, over plain http.
  const plain = await check(stripping.url.replace('127.0.0.1', '[::ffff:127.0.0.1]'))
  expect(states(plain)).toEqual({ BASE_URL: 'warning', reachable: 'ok', proxy: 'failed' })

  using renaming = await startProxy(withHost('backend:3000'))
  const renamed = await check(renaming.url)
  expect(renamed.at(-1)).toMatchObject({ check: 'proxy', state: 'failed' })
  expect(renamed.at(-1)?.message).toContain('changes the Host header')
})

test('design §5 doctor distinguishes no server, a foreign server, a redirect and a bad certificate', async () => {
  const check = async (baseUrl: string) =>
    (await checkAddress({ baseUrl, trustedProxies: ['10.0.0.0/8'] })).find(
      one => one.check === 'reachable',
    )
  expect(await check('http://127.0.0.1:1')).toMatchObject({ state: 'warning' })
  await using receiver = await startReceiver()
  expect(await check(receiver.url)).toMatchObject({
    state: 'failed',
    message: expect.stringContaining('Another server responds'),
  })
  receiver.script('/healthz', { status: 301, headers: { location: 'https://a.example/' } })
  expect((await check(receiver.url))?.message).toContain('redirects to https://a.example/')
  const certificate = createAuthority().issue(['localhost'])
  await using secure = await startReceiver({ certificate })
  const bad = await check(secure.url.replace('127.0.0.1', 'localhost'))
  expect(bad).toMatchObject({ state: 'failed', message: expect.stringContaining('certificate') })
})

test.each([
  ['https://127.0.0.1:1', [], 'warning'],
  ['https://127.0.0.1:1', ['10.0.0.0/8'], 'ok'],
  ['https://127.0.0.1:1', ['0.0.0.0/0'], 'failed'],
  [undefined, ['::/0'], 'failed'],
  [undefined, [], undefined],
])(
  'doctor on BASE_URL %p behind %p: TRUSTED_PROXIES %p',
  async (baseUrl, trustedProxies, state) => {
    const findings = await checkAddress({ baseUrl, trustedProxies })
    expect(states(findings)['TRUSTED_PROXIES']).toBe(state as string)
  },
)

test('doctor receives its own NOTIFY, and fails if LISTEN goes elsewhere', async () => {
  expect(await checkListener(server.sql, server.databaseUrl)).toMatchObject({ state: 'ok' })
  const elsewhere = await checkListener(server.sql, await cloneDatabase())
  expect(elsewhere).toMatchObject({ state: 'failed' })
  expect(elsewhere.message).toContain('DATABASE_DIRECT_URL')
  const gone = server.databaseUrl.replace('?host=', '?host=/nowhere')
  expect(await checkListener(server.sql, gone)).toMatchObject({ state: 'failed' })
})

test('doctor says which versions of the server run', async () => {
  const url = await cloneDatabase()
  const sql = openSql(url)
  expect(await checkServers(sql, 0)).toMatchObject({ state: 'warning', check: 'server' })
  const port = Number(new URL(server.url).port)
  expect(await checkServers(server.sql, port)).toEqual({
    check: 'server',
    state: 'ok',
    message: `Running: Tidings ${VERSION} on port ${port} (1 process)`,
  })
  expect((await checkServers(server.sql, 0)).state).toBe('ok')
  expect(await checkServers(server.sql, port - 1)).toMatchObject({
    state: 'warning',
    message: expect.stringContaining(
      `on port ${port} (1 process). PORT is ${port - 1} for this command.`,
    ),
  })
  const other = connect(url, { name: 'listen 9.9.9', max: 1 })
  await other`select 1`
  const differs = await checkServers(sql, 3000)
  expect(differs.state).toBe('warning')
  expect(differs.message).toContain(
    `Tidings 9.9.9 (1 process). This command is Tidings ${VERSION}.`,
  )
  await Promise.all([sql.end(), other.end()])
})

test('doctor counts pending deliveries, and says how late they are', async () => {
  await using quiet = await boot()
  await quiet.server.stop()
  const { sql } = quiet
  const { id } = await newProject(quiet)
  const put = (lateS: number) => sql`
    insert into outbox (project_id, event_id, kind, target_id, available_at)
    values (${id}, gen_random_uuid(), 'webhook', gen_random_uuid(), now() - make_interval(secs => ${lateS}))
  `
  expect(await checkQueue(sql)).toEqual([
    { check: 'queue', state: 'ok', message: '0 pending deliveries, none overdue' },
  ])
  await put(-3_000)
  expect(states(await checkQueue(sql))).toEqual({ queue: 'ok' })
  await put(600)
  expect((await checkQueue(sql))[0]).toMatchObject({
    state: 'warning',
    message: expect.stringMatching(/^2 pending deliveries, the oldest overdue by 60\d s/),
  })
  await put(7_200)
  await sql`
    insert into dead_letters (id, project_id, event_id, kind, target_id, attempts, reason)
    values (gen_random_uuid(), ${id}, gen_random_uuid(), 'webhook', gen_random_uuid(), 10, 'The receiver answered 500')
  `
  expect(states(await checkQueue(sql))).toEqual({ queue: 'failed', 'dead letters': 'warning' })
  // The clock was ahead when it was written.
  await sql`update dead_letters set at = now() + interval '1 year'`
  expect(states(await checkQueue(sql))).toEqual({ queue: 'failed' })
})

test('doctor counts the events that the search index does not have', async () => {
  const url = await cloneDatabase()
  await using sql = openSql(url)
  expect(await checkSearchIndex(sql)).toMatchObject({ state: 'ok', message: 'Up to date' })
  const { id } = await newProject({ sql, url: '' })
  await sql`update event_logs set last_seq = 511 where project_id = ${id}`
  expect(await checkSearchIndex(sql)).toMatchObject({ state: 'ok', message: 'Up to date' })
  await sql`update event_logs set last_seq = 600 where project_id = ${id}`
  expect(await checkSearchIndex(sql)).toMatchObject({
    state: 'ok',
    message: '600 events of 1 projects are not indexed yet',
  })
  await sql`update event_logs set last_seq = 100000 where project_id = ${id}`
  expect(await checkSearchIndex(sql)).toMatchObject({
    state: 'warning',
    message: expect.stringMatching(/^100000 events of 1 projects/),
  })
  await sql`
    with made as (
      insert into projects (id, organization_id, name)
      select gen_random_uuid(), organization_id, 'p' from projects, generate_series(1, 1000)
      returning id
    )
    insert into event_logs (project_id, last_seq) select id, 600 from made
  `
  await sql`update event_logs set last_seq = 600`
  expect((await checkSearchIndex(sql)).message).toMatch(/^At least 600000 events of 1000 projects/)
})

test('doctor checks the VAPID contact', async () => {
  await using fresh = await boot()
  const vapidSubject = undefined
  expect(states(await checkPush(fresh.sql, { vapidSubject }))['push subject']).toBe('warning')
  const configured = await checkPush(fresh.sql, { vapidSubject: 'mailto:ops@example.com' })
  expect(configured[1]).toMatchObject({ state: 'ok', message: 'mailto:ops@example.com' })
  const operator = await newSignedInAccount(fresh, { isOperator: true })
  const found = await checkPush(fresh.sql, { vapidSubject })
  expect(found[1]).toMatchObject({ state: 'ok', message: `mailto:${operator.email}` })
})

test('doctor finds secrets that other users can read, and a disk that fills up', () => {
  const dataDir = makeFolder(0o700)
  const secret = join(dataDir, 'app-secret')
  writeFileSync(secret, '', { mode: 0o600 })
  mkdirSync(join(dataDir, 'postgres'))
  expect(states(checkFiles({ dataDir, kind: 'external' }))).toEqual({ DATA_DIR: 'ok' })
  expect(Object.keys(states(checkFiles({ dataDir, kind: 'embedded' })))).toEqual([
    'DATA_DIR',
    'disk',
  ])
  chmodSync(secret, 0o640)
  expect(checkFiles({ dataDir, kind: 'external' })[0]).toMatchObject({
    state: 'failed',
    message: expect.stringContaining(`chmod 600 ${secret}`),
  })
  // On exFAT, chmod changes nothing.
  const exfat = { ...fs.statfsSync(dataDir), type: 0x2011bab0 }
  const statfs = spyOn(fs, 'statfsSync').mockReturnValue(exfat as never)
  expect(checkFiles({ dataDir, kind: 'external' })[0]?.message).toContain('umask=077')
  statfs.mockRestore()
  chmodSync(secret, 0o600)
  // Root reads everything, so the owner tells whether the server can.
  if (process.getuid?.() === 0) chownSync(dataDir, 4242, 4242)
  else chmodSync(secret, 0)
  expect(checkFiles({ dataDir, kind: 'external' })[0]).toMatchObject({
    state: 'failed',
    message: expect.stringMatching(/The server cannot read .*app-secret\. Run: chown \d+:\d+ /),
  })
  rmSync(dataDir, { recursive: true })
  expect(checkFiles({ dataDir, kind: 'external' })).toEqual([])
  const gigabyte = 1024 ** 3
  expect([0.1, 1, 3].map(left => checkFreeSpace('/data', left * gigabyte).state)).toEqual([
    'failed',
    'warning',
    'ok',
  ])
})

test('doctor --json prints a list of findings, and a failed one gives exit code 1', async () => {
  const env = { DATABASE_URL: server.databaseUrl }
  const well = await runProgram({ args: ['doctor', '--json'], env })
  const findings = JSON.parse(well.output) as { check: string; state: string }[]
  expect(well.code).toBe(0)
  const ok = ['configuration', 'BASE_URL', 'database', 'migrations', 'clock', 'server', 'queue']
  expect(states(findings)).toMatchObject({
    ...Object.fromEntries(ok.map(check => [check, 'ok'])),
    ...{ owner: 'warning', listener: 'ok', 'push subject': 'warning' },
  })
  const ill = await runProgram({ args: ['doctor'], env: { ...env, TRUSTED_PROXIES: '0.0.0.0/0' } })
  expect(ill.code).toBe(1)
  expect(ill.output).toContain('failed   TRUSTED_PROXIES')
})
