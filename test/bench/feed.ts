import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createOrganization, createProject } from '../../src/accounts/projects.ts'
import { connect, type Sql } from '../../src/db/sql.ts'
import { toId } from '../../src/ids.ts'
import { createKey } from '../support/keys.ts'
import { cloneDatabase, closeCluster } from '../support/postgres.ts'
import { startLoad, startWorker, type LoadJob, type Worker } from './feed-process.ts'
import { makeViewer, startTidings } from './server.ts'
import { median } from './wrk.ts'

const ROUNDS = 3
const MESSAGES = 200
const PER_PERSON = 16
const MOST_SOCKETS = 5_000
const HERE = import.meta.dir

interface World {
  sql: Sql
  url: string
  pid: number
  projectId: string
  job: Omit<LoadJob, 'sockets'>
}

/** The live feed: how soon an event is there, how many it reaches, and what sockets cost. */
export async function benchFeed(): Promise<void> {
  installSocketIo()
  const databaseUrl = await cloneDatabase()
  const sql = connect(databaseUrl, { name: 'bench', max: 2, settings: { statement_timeout: 0 } })
  const { projectId, key, cookies } = await makeViewers(sql)
  const { child, url } = await startTidings(databaseUrl, key)
  const subscribe = JSON.stringify({ type: 'subscribe', project: toId('prj', projectId) })
  const world: World = {
    sql,
    url: new URL(url).origin,
    pid: child.pid ?? 0,
    projectId,
    job: {
      url: new URL(url).origin,
      path: '/api/feed',
      cookies,
      script: [{ after: '{"type":"hello"', say: subscribe }],
      ready: '{"type":"subscribed"',
      key,
    },
  }
  try {
    await benchDelay(world)
    await benchFanOut(world, 1_000)
    await benchFanOut(world, MOST_SOCKETS)
    await benchMemory(world)
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
    await sql.end()
    await closeCluster()
  }
}

/** From POST to socket at 1,000 events/s; then with ten readers that do not read, each of which fills its buffer. */
async function benchDelay({ job }: World): Promise<void> {
  const load = await startLoad({ ...job, sockets: 1, isTimed: true })
  await ask(load, 'post 1000 3')
  const alone = await ask(load, 'post 1000 15')
  // Others of the person's sockets, which are counted apart.
  const stalled = await startLoad({
    ...job,
    cookies: job.cookies.slice(1),
    sockets: 10,
    isStalled: true,
  })
  const beside = await ask(load, 'post 1000 30')
  const { closed } = await ask(stalled, 'closed')
  await Promise.all([load.stop(), stalled.stop()])
  console.log('\nPOST to socket at 1,000 events/s')
  for (const [name, figures] of Object.entries({ 'one reader': alone, 'and 10 stalled': beside })) {
    const { p50, p99, max, answerP50, lost, failed, perSecond } = figures
    console.log(
      `${name.padEnd(18)} p50 ${ms(p50)}   p99 ${ms(p99)}   max ${ms(max)}   answer p50 ${ms(answerP50)}   ${perSecond?.toFixed(0)}/s   lost ${lost}   failed ${failed}`,
    )
  }
  console.log(`stalled readers closed: ${closed} of 10   (aim p50 3 ms, p99 15 ms, all closed)`)
}

/** Messages of the same bytes to the same number of sockets, by turns; only who is measured has sockets. */
async function benchFanOut(world: World, sockets: number): Promise<void> {
  const text = await makeText(world)
  const publish = await startWorker('feed-candidate.ts', ['publish'])
  const socketIo = await startWorker('feed-candidate.ts', ['socket.io'])
  const toUrl = ({ ready }: { ready: string }) => `http://127.0.0.1:${ready.split(' ')[1]}`
  const bare = { cookies: [], script: [], ready: '' }
  const candidates: { name: string; job: LoadJob; send(): unknown }[] = [
    { name: 'tidings', job: { ...world.job, sockets }, send: () => insertAndTell(world) },
    {
      name: 'Bun.serve publish',
      job: { ...bare, url: toUrl(publish), path: '/', sockets },
      send: () => publish.say(`${MESSAGES} ${text}`),
    },
    {
      name: 'socket.io',
      job: {
        ...bare,
        url: toUrl(socketIo),
        path: '/socket.io/?EIO=4&transport=websocket',
        sockets,
        script: [{ after: '0{', say: '40' }],
        ready: '40{',
      },
      send: () => socketIo.say(`${MESSAGES} ${text}`),
    },
  ]
  const rates = new Map<string, number[]>(candidates.map(({ name }) => [name, []]))
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, job, send } of candidates) {
      const load = await startLoad(job)
      // The first one warms up.
      for (const isCounted of [false, true]) {
        load.say(`expect ${MESSAGES * sockets}`)
        await load.hear()
        await send()
        const { ms: tookMs = NaN, received = 0 } = JSON.parse(await load.hear()) as Figures
        if (isCounted) rates.get(name)?.push(received / (tookMs / 1000))
        if (received < MESSAGES * sockets) console.log(`${name}: only ${received} arrived`)
      }
      await load.stop()
    }
  }
  await Promise.all([publish.stop(), socketIo.stop()])
  console.log(
    `\n${MESSAGES} messages of ${text.length} characters to ${sockets} sockets (medians of ${ROUNDS})`,
  )
  const middle = (name: string) => median(rates.get(name) ?? [])
  for (const { name } of candidates)
    console.log(`${name.padEnd(18)} ${middle(name).toFixed(0).padStart(9)} deliveries/s`)
  const ratio = (name: string) => (middle('tidings') / middle(name)).toFixed(2)
  console.log(
    `of Bun.serve publish ${ratio('Bun.serve publish')} (aim 0.6), of socket.io ${ratio('socket.io')} (aim 3)`,
  )
}

async function benchMemory({ pid, job }: World): Promise<void> {
  const before = readRss(pid)
  const load = await startLoad({ ...job, sockets: MOST_SOCKETS })
  const after = readRss(pid)
  await load.stop()
  const each = ((after - before) / MOST_SOCKETS).toFixed(1)
  console.log(
    `\n${MOST_SOCKETS} idle sockets: ${each} KB each (aim 20); the server ${(before / 1024).toFixed(0)} -> ${(after / 1024).toFixed(0)} MB`,
  )
}

/** Stores events as the append does, in one transaction and without HTTP, and tells the server of them. */
async function insertAndTell({ sql, projectId }: World): Promise<void> {
  await sql.begin(async tx => {
    await tx`
      insert into events (
        project_id, id, channel_id, seq, occurred_at, created_at, title, description, tags, metadata, user_ref, source, notify
      )
      select
        ${projectId}, gen_random_uuid(), c.id, l.last_seq + n, now(), now(), 'New payment', 'A customer paid for a plan',
        '{billing,plan}', '{"amount": 42, "plan": "pro", "currency": "EUR"}', 'user_1', 'api', true
      from (select * from event_logs where project_id = ${projectId} for update) l,
        (select id from channels where project_id = ${projectId} limit 1) c,
        generate_series(1, ${MESSAGES}::int) as n
    `
    await tx`update event_logs set last_seq = last_seq + ${MESSAGES} where project_id = ${projectId}`
  })
  await sql`select pg_notify('tidings', ${`bench e:${projectId}`})`
}

/** A message as the feed sends it. */
async function makeText(world: World): Promise<string> {
  const socket = new WebSocket(`${world.url.replace('http', 'ws')}/api/feed`, {
    headers: { cookie: world.job.cookies[0], origin: world.url },
  } as never)
  const text = new Promise<string>(resolve => {
    socket.onmessage = ({ data }) => {
      if (String(data).startsWith('{"type":"hello"')) socket.send(world.job.script[0]?.say ?? '')
      if (String(data).startsWith('{"type":"subscribed"')) void insertAndTell(world)
      if (String(data).startsWith('{"type":"event"')) resolve(String(data))
    }
  })
  const found = await text
  socket.close()
  return found
}

async function makeViewers(sql: Sql) {
  const { organizationId, projectId } = (await sql.begin(async tx => {
    const made = await createOrganization(tx, 'Bench')
    const project = await createProject(tx, { organizationId: made, name: 'Bench' })
    return { organizationId: made, projectId: project }
  })) as { organizationId: string; projectId: string }
  const { token } = await createKey(sql, { projectId, name: 'bench', limit: 1_000_000_000 })
  const cookies: string[] = []
  while (cookies.length < Math.ceil(MOST_SOCKETS / PER_PERSON))
    cookies.push(await makeViewer(sql, organizationId))
  return { projectId, key: token, cookies }
}

type Figures = Record<string, number>

async function ask(worker: Worker, line: string): Promise<Figures> {
  worker.say(line)
  return JSON.parse(await worker.hear()) as Figures
}

function installSocketIo(): void {
  if (existsSync(join(HERE, 'node_modules/socket.io'))) return
  const { status } = spawnSync('bun', ['install', '--silent'], { cwd: HERE, stdio: 'inherit' })
  if (status !== 0)
    throw new Error('socket.io could not be installed, and there is nothing to compare with')
}

function readRss(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

function ms(value: number | undefined): string {
  return `${value?.toFixed(2)} ms`
}
