import { connect, type Sql } from '../../src/database/sql.ts'
import { openFeed } from '../support/clients/feed.ts'
import { cloneDatabase, closeCluster } from '../support/servers/postgres.ts'
import { createKey } from '../support/worlds/keys.ts'
import { newMember, newOrganization } from '../support/worlds/signed-in-account.ts'
import type { Job } from './feed-process.ts'
import { sendToAll, startPublish, startSocketIo, type Sender } from './feed-senders.ts'
import { startTidings } from './server.ts'
import { interleave, type Line } from './table.ts'

const MESSAGES = 200
const PER_ACCOUNT = 16
const SOCKETS = 1_000

interface World {
  sql: Sql
  url: string
  projectId: string
  /** The headers that authenticate the events of `projectId`. */
  headers: Record<string, string>
  job: Job
}

/**
 * Compares fan-out with a bare publish and socket.io: sends messages of equal size to the same
 * number of sockets, in turn; only the measured system has sockets.
 */
export function compareFeed(): Promise<Line[]> {
  return withWorld(compareFanOut)
}

async function compareFanOut(world: World): Promise<Line[]> {
  const text = await makeText(world)
  const publish = await startPublish(MESSAGES, text)
  const socketIo = await startSocketIo(MESSAGES, text)
  const tidings: Sender = {
    job: world.job,
    messages: MESSAGES,
    send: () => insertAndTell(world),
    stop: async () => {},
  }
  try {
    const senders = { tidings, 'Bun.serve publish': publish, 'socket.io': socketIo }
    const rates = await interleave(
      Object.fromEntries(
        Object.entries(senders).map(([name, sender]) => [
          name,
          () => sendToAll(name, sender, SOCKETS),
        ]),
      ),
    )
    const aims: Record<string, number> = { 'Bun.serve publish': 0.6, 'socket.io': 3 }
    return Object.keys(senders)
      .filter(name => name !== 'tidings')
      .map(reference => ({
        subject: 'live feed',
        what: `deliveries/s to ${SOCKETS.toLocaleString('en')} sockets`,
        ours: rates['tidings'] ?? NaN,
        reference,
        theirs: rates[reference] ?? NaN,
        better: 'more',
        ...(aims[reference] === undefined ? {} : { aim: aims[reference] }),
      }))
  } finally {
    await Promise.all([publish.stop(), socketIo.stop()])
  }
}

/** Runs Tidings with enough accounts for the sockets. */
async function withWorld<Result>(run: (world: World) => Promise<Result>): Promise<Result> {
  const databaseUrl = await cloneDatabase()
  const sql = connect(databaseUrl, { name: 'bench', max: 2, settings: { statement_timeout: 0 } })
  const organization = await newOrganization({ sql })
  const { uuid: projectId, id: project } = organization.project
  const { token } = await createKey(sql, { projectId, name: 'bench', limit: 1_000_000_000 })
  const cookies: string[] = []
  while (cookies.length < SOCKETS / PER_ACCOUNT)
    cookies.push((await newMember({ sql, url: '' }, organization, 'viewer')).cookie)
  const { stop, url, headers } = await startTidings(databaseUrl, token)
  const { origin } = new URL(url)
  const subscribe = JSON.stringify({ type: 'subscribe', project })
  try {
    return await run({
      sql,
      url: origin,
      projectId,
      headers,
      job: {
        url: origin,
        path: '/api/feed',
        cookies,
        script: [{ after: '{"type":"hello"', say: subscribe }],
        ready: '{"type":"subscribed"',
      },
    })
  } finally {
    await stop()
    await sql.end()
    await closeCluster()
  }
}

/** Stores events like the append, in one transaction and without HTTP, and notifies the server. */
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

/** Returns a message as the feed sends it. */
async function makeText({ url, headers, job }: World): Promise<string> {
  const feed = await openFeed(url, { cookie: job.cookies[0] ?? '' })
  feed.send(job.script[0]?.say ?? '')
  await feed.next()
  await fetch(`${url}/v1/events`, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      channelName: 'bench',
      title: 'New payment',
      description: 'A customer paid for a plan',
      tags: ['billing', 'plan'],
      userId: 'user_1',
      metadata: { amount: 42, plan: 'pro', currency: 'EUR' },
    }),
  })
  const message = await feed.next()
  feed.close()
  return JSON.stringify(message)
}
