import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from '../../src/database/sql.ts'
import { PASSPHRASE } from '../support/worlds/backup.ts'
import { PASSWORD } from '../support/worlds/browser.ts'
import { listCodeBlocks } from '../support/docs.ts'
import { openFeed } from '../support/clients/feed.ts'
import { createHttpClient } from '../support/clients/http-client.ts'
import { findFreePort } from '../support/loopback.ts'
import { startNginx } from '../support/servers/nginx.ts'
import { createEmptyDatabase } from '../support/servers/postgres.ts'
import { runProgram, startProgram, type Program } from '../support/servers/process.ts'
import { startReceiver } from '../support/servers/receiver.ts'
import { makeFolder } from '../support/scratch.ts'
import { checkFollowers } from './feed.ts'
import { startFollower, type Follower } from './follower.ts'
import { checkLedger, type RunResult } from './ledger-check.ts'
import { startLoad } from './ledger.ts'
import { createRandom } from './random.ts'
import { openSql } from '../support/sql.ts'
import releases from '../../releases.json' with { type: 'json' }
import { scaled, until } from '../support/until.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** This checkout with one more migration, so that there is one to apply after any release. */
const NEW = join(import.meta.dirname, '../support/next-version.ts')
const SERVERS = 3
const DOCUMENTED = ['10.0.0.1:3000', '10.0.0.2:3000', '10.0.0.3:3000']
const FOLLOWERS = 4
/** Of a client after each request. A full load would only take longer to start servers. */
const PAUSE_MS = 25
const DELIVERED_MS = scaled(60_000)

/**
 * Replaces three servers of `old`, the program of an earlier version, by those of a next version,
 * one after the other, with so many requests between. They are under load behind the nginx of the
 * documentation, and the first one drains for a second. Then it goes back: by an old server on the
 * new schema, and by the old backup.
 */
export async function runUpgrade({
  seed,
  old,
  between = 2_000,
  clients = 16,
  pauseMs = PAUSE_MS,
  goesBack = true,
}: {
  seed: number
  old: string
  between?: number
  clients?: number
  pauseMs?: number
  goesBack?: boolean
}): Promise<RunResult> {
  const random = createRandom(seed)
  const databaseUrl = await createEmptyDatabase()
  const sql = openSql(databaseUrl, { max: 2 })
  const port = await findFreePort()
  const url = `http://127.0.0.1:${port}`
  const ports = await Promise.all(Array.from({ length: SERVERS }, findFreePort))
  const env = { BASE_URL: url, TRUSTED_PROXIES: '127.0.0.1', EGRESS_ALLOW_CIDRS: '127.0.0.0/8' }
  const start = (nth: number, program: string) =>
    startProgram({
      env: {
        ...env,
        DATABASE_URL: databaseUrl,
        PORT: String(ports[nth]),
        DRAIN_SECONDS: nth === 0 ? '1' : '0',
      },
      program,
    })
  const programs = [await start(0, old), await start(1, old), await start(2, old)]
  const block = listCodeBlocks('docs/scaling.md').find(({ language }) => language === 'nginx')
  await using _nginx = await startNginx(block?.text ?? '', {
    port,
    addresses: Object.fromEntries(DOCUMENTED.map((one, nth) => [one, `127.0.0.1:${ports[nth]}`])),
  })
  await using _programs = { [Symbol.asyncDispose]: () => stopAll(programs) }
  await using receiver = await startReceiver()
  const world = await prepare(url, { sql, programs, receiverUrl: receiver.url })
  const { project, projectId, key, cookie } = world

  const load = startLoad({
    clients,
    pauseMs,
    random,
    projects: [{ id: projectId, key }],
    servers: () => [url],
  })
  const followers = Array.from({ length: FOLLOWERS }, (_, nth): Follower =>
    startFollower({
      name: `follower ${nth}`,
      projectId,
      project,
      cookie,
      after: 0,
      servers: () => [url],
      random: random.fork(nth),
    }),
  )
  await load.successes(between)
  const folder = makeFolder()
  const backup = join(folder, 'old.backup')
  const before = await readAll(url, key, await countEvents(sql))
  if (goesBack) await runOld(old, { args: ['backup', backup], databaseUrl })
  const stopping = new AbortController()
  const watching = Promise.all([
    readAgain(url, { key, cookie, project }, stopping.signal),
    reopenAgain(() => openFeed(url, { cookie }), stopping.signal),
    watchReady(programs, stopping.signal),
  ])

  /** Returns problems of old servers: on the new schema, and on the backup of an old one. */
  async function goBack(): Promise<string[]> {
    const problems: string[] = []
    await using again = await startProgram({
      env: { ...env, DATABASE_URL: databaseUrl },
      program: old,
    })
    if ((await readAll(again.url, key, before.length)).join() !== before.join())
      problems.push('an old server reads its events differently on the new schema')
    const [functions] = await sql`select version, later() as later from function_sets`
    if (functions?.['version'] !== '900.0.0' || functions['later'] !== 1)
      problems.push(`an old server left the functions ${JSON.stringify(functions)}`)
    const restoredUrl = await createEmptyDatabase()
    await runOld(old, { args: ['restore', backup], databaseUrl: restoredUrl })
    await using restored = await startProgram({
      env: { ...env, DATABASE_URL: restoredUrl },
      program: old,
    })
    if ((await readAll(restored.url, key, before.length)).join() !== before.join())
      problems.push('the restored backup has other events')
    return problems
  }

  const problems: string[] = []
  for (const nth of ports.keys()) {
    await load.successes(between)
    const { code, signal } = await programs[nth]!.kill('SIGTERM')
    if (code !== 0) problems.push(`a stop ended with ${signal ?? code}`)
    programs[nth] = await start(nth, NEW)
  }
  await load.successes(between)
  await load.stop()
  stopping.abort()
  const [statuses, closes, notReady] = await watching
  problems.push(...notReady)
  for (const code of closes)
    if (code !== 1001 && code !== 1012) problems.push(`a socket was closed with ${code}`)
  if ([...statuses.keys()].join() !== '200') problems.push(`a reader got ${[...statuses.keys()]}`)
  // Clients share keys. A repeat gets a 409 while the first request runs for more than 300 ms.
  const answers = [...load.ledger.outcomes.keys()].filter(status => status !== '409')
  if (answers.join() !== '201') problems.push(`a writer got ${answers.join(', ')}`)
  const count = (text: string) => programs.flatMap(({ logged }) => logged(text)).length
  const applied = count('Applied migration')
  const replaced = count('Replaced the functions')
  if (applied < 1 || replaced !== 1)
    problems.push(`${applied} migrations were applied, and ${replaced} times the functions`)

  const ledger = await checkLedger(sql, [projectId], load.ledger)
  const seen = await checkFollowers({ sql }, followers)
  const events = await countEvents(sql)
  await until(() => countDelivered(receiver.received) >= events, DELIVERED_MS).catch(() =>
    problems.push(`${countDelivered(receiver.received)} of ${events} events were delivered`),
  )
  if ((await readAll(url, key, before.length)).join() !== before.join())
    problems.push('the new server reads the old events differently')
  await Promise.all(followers.map(follower => follower.stop()))

  if (goesBack) problems.push(...(await goBack()))
  await sql.end()
  return {
    figures: {
      servers: SERVERS,
      'migrations applied': applied,
      'events before': before.length,
      reads: [...statuses.values()].reduce((sum, n) => sum + n, 0),
      'delivered by webhook': countDelivered(receiver.received),
      ...ledger.figures,
      ...seen.figures,
    },
    problems: [...problems, ...ledger.problems, ...seen.problems],
  }
}

/**
 * Checks out a revision of git, by default the latest release, installs and builds it. Returns the
 * path of its program.
 */
export function checkOut(revision = `v${releases.releases.at(-1)?.version}`): string {
  const folder = makeFolder()
  const run = (command: string, cwd: string) => {
    const env = { ...process.env, TO: folder, REVISION: revision }
    const { status } = spawnSync('sh', ['-c', command], { cwd, env, stdio: 'inherit' })
    if (status !== 0) throw new Error(`This failed: ${command}`)
  }
  run('git archive "$REVISION" | tar -x -C "$TO"', ROOT)
  if (!existsSync(join(folder, 'package.json'))) throw new Error(`Git does not know ${revision}`)
  run('bun install --frozen-lockfile --silent --production --omit=peer', folder)
  run('bun src/dashboard/build.ts --quick', folder)
  return join(folder, 'src/main.ts')
}

/** Claims the installation, and makes what the run needs through the old server itself. */
async function prepare(
  url: string,
  { sql, programs, receiverUrl }: { sql: Sql; programs: Program[]; receiverUrl: string },
) {
  await until(() =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  // Each start of a server without an owner replaces the link.
  const account = { name: 'Ada Lovelace', email: 'ada@example.com', password: PASSWORD }
  const claimed = await post(`${url}/api/setup`, {
    body: { ...account, token: programs.at(-1)?.setupToken },
    headers: { origin: url },
  })
  const cookie = claimed.headers
    .getSetCookie()
    .map(one => one.split(';')[0])
    .join('; ')
  const { data } = (await claimed.json()) as {
    data: { organizations: { projects: { id: string }[] }[] }
  }
  const project = data.organizations[0]?.projects[0]?.id ?? ''
  await post(`${url}/api/projects/${project}/webhooks`, {
    body: { url: receiverUrl },
    headers: { origin: url, cookie },
  })
  const [{ id }] = await sql<[{ id: string }]>`
    update api_keys set rate_limit = 1000000000 returning project_id as id
  `
  return { project, projectId: id, key: programs[0]?.firstKey ?? '', cookie }
}

/** Posts JSON. The contract of this checkout does not count, because an old server responds. */
async function post(
  url: string,
  { body, headers }: { body: object; headers: Record<string, string> },
): Promise<Response> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${url} responded with ${await response.text()}`)
  return response
}

async function runOld(
  program: string,
  { args, databaseUrl }: { args: string[]; databaseUrl: string },
): Promise<void> {
  const env = { DATABASE_URL: databaseUrl, BACKUP_PASSPHRASE: PASSPHRASE }
  const { code, output } = await runProgram({ program, args, env })
  if (code !== 0) throw new Error(`${args.join(' ')} failed:\n${output}`)
}

/** Returns the first `count` events of the log, each as JSON. */
async function readAll(url: string, key: string, count: number): Promise<string[]> {
  const events: string[] = []
  while (events.length < count) {
    const response = await fetch(`${url}/v1/events?limit=100&after=${events.length}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const { data } = (await response.json()) as { data: { items: object[] } }
    if (data.items.length === 0) throw new Error(`There are only ${events.length} events`)
    events.push(...data.items.map(item => JSON.stringify(item)))
  }
  return events.slice(0, count)
}

/** Reads by key and by session until the signal. Returns the number of each status. */
async function readAgain(
  url: string,
  { key, cookie, project }: { key: string; cookie: string; project: string },
  signal: AbortSignal,
): Promise<Map<number, number>> {
  const client = createHttpClient(url)
  const statuses = new Map<number, number>()
  while (!signal.aborted) {
    for (const [path, headers] of [
      ['/v1/events?limit=20', { authorization: `Bearer ${key}` }],
      [`/api/projects/${project}/events?q=payment`, { cookie }],
    ] as const) {
      const { status } = await client.request('GET', path, { headers })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    await sleep(PAUSE_MS)
  }
  client.close()
  return statuses
}

/** Opens a socket whenever the last one has closed. Returns the close codes. */
async function reopenAgain(
  open: () => ReturnType<typeof openFeed>,
  signal: AbortSignal,
): Promise<number[]> {
  const codes: number[] = []
  const aborted = new Promise<undefined>(resolve => {
    signal.addEventListener('abort', () => resolve(undefined))
  })
  while (!signal.aborted) {
    const feed = await open()
    const closed = await Promise.race([feed.closed, aborted])
    if (closed) codes.push(closed.code)
    else feed.close()
  }
  return codes
}

/** Returns the responses of servers that were not ready, unless they were starting or stopping. */
async function watchReady(programs: readonly Program[], signal: AbortSignal): Promise<string[]> {
  const problems: string[] = []
  while (!signal.aborted) {
    await sleep(50)
    for (const { url } of programs) {
      const response = await fetch(`${url}/readyz`).catch(() => undefined)
      const text = response?.status === 503 ? await response.text() : ''
      if (text !== '' && !/The server is (starting|stopping)/.test(text)) problems.push(text)
    }
  }
  return problems
}

async function countEvents(sql: Sql): Promise<number> {
  const [row] = await sql<[{ n: number }]>`select count(*)::int as n from events`
  return row.n
}

/** Counts the events of which a delivery has arrived. */
function countDelivered(received: readonly { body: string }[]): number {
  return new Set(received.map(({ body }) => (JSON.parse(body) as { data: { id: string } }).data.id))
    .size
}

async function stopAll(programs: readonly Program[]): Promise<void> {
  await Promise.all(programs.map(program => program.kill('SIGTERM')))
}
