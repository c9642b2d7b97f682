import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { createNotifier, type Notifier } from '../../../src/log/feed/notifier.ts'
import { openFeed, type FeedClient, type Message } from '../../support/clients/feed.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { startTcpProxy, type TcpProxy } from '../../support/servers/tcp-proxy.ts'
import { until } from '../../support/until.ts'
import { newFeedProject } from '../../support/worlds/feed-project.ts'
import { scaled } from '../../support/until.ts'

let server: Booted
let proxy: TcpProxy
/** A server whose LISTEN connection goes through the proxy. */
let other: Booted
/** A server that is patient with its LISTEN connection. A lost hint is not sent again. */
let second: Booted
let pool: Pool
/** Sends hints as a server would. The changes themselves are not made. */
let notifier: Notifier
beforeAll(async () => {
  server = await boot()
  proxy = await startTcpProxy(server.databaseUrl)
  other = await boot(
    { databaseUrl: server.databaseUrl, databaseDirectUrl: proxy.url },
    { feed: { listenerHeartbeatMs: 100, listenerTimeoutMs: scaled(400) } },
  )
  second = await boot({ databaseUrl: server.databaseUrl }, { feed: { heartbeatMs: 100 } })
  pool = createPool(server.databaseUrl, { name: 'notify', max: 1 })
  notifier = createNotifier({ pool })
})
afterAll(async () => {
  await notifier.stop()
  await pool.end()
  await other[Symbol.asyncDispose]()
  await second[Symbol.asyncDispose]()
  await proxy.close()
  await server[Symbol.asyncDispose]()
})

/** Resolves with the next message. A `restored` can come twice, before and after its own hint. */
async function nextNew(client: FeedClient): Promise<Message> {
  const message = await client.next()
  const first = client.all.find(({ type, seq }) => type === message.type && seq === message.seq)
  return message === first ? message : nextNew(client)
}

const isListening = async () =>
  ((await (await fetch(`${other.url}/readyz`)).json()) as { listener: string }).listener === 'up'

test('§11 a deletion is told to every stream of the project on every server, and its undo with the event to those that match', async () => {
  const watched = await newFeedProject(server)
  const [one, two] = [
    await watched.postEvent('one', { tags: ['some'] }),
    await watched.postEvent('two'),
  ]
  const stranger = await newFeedProject(server)
  const some = await openFeed(server.url, watched.member)
  const all = await openFeed(second.url, watched.member)
  const byWord = await openFeed(second.url, watched.member)
  await some.subscribe(watched.project, { filters: { tags: ['some'] } })
  await all.subscribe(watched.project)
  await byWord.subscribe(watched.project, { filters: { text: 'tw' } })
  const bystander = await openFeed(second.url, stranger.member)
  await bystander.subscribe(stranger.project)

  const { project } = watched
  const admin = await newMember(server, { uuid: watched.organizationId }, 'admin')
  for (const event of [one, two]) {
    const path = `/api/projects/${project}/events/${event.id}`
    expect((await admin.delete(path)).status).toBe(200)
    const deleted = { type: 'deleted', project, seq: event.seq }
    for (const client of [some, all, byWord]) expect(await nextNew(client)).toEqual(deleted)
    expect((await admin.post(`${path}/restore`)).status).toBe(200)
    const restored = { type: 'restored', project, seq: event.seq, event }
    expect(await nextNew(all)).toEqual(restored)
    expect(await nextNew(event === one ? some : byWord)).toEqual(restored)
  }
  // Nothing else came to those whose filters do not match.
  await watched.postEvent('two', { tags: ['some'] })
  for (const client of [some, byWord]) {
    expect(await nextNew(client)).toMatchObject({ type: 'event', seq: 3 })
    client.close()
  }
  all.close()
  expect((await stranger.postEvent('mine')).seq).toBe(1)
  expect(await bystander.seqs(1)).toEqual([1])
  bystander.close()
})

test('§11 hints of several servers may come in any order: streams end with the state of the event', async () => {
  const watched = await newFeedProject(server)
  await watched.postEvents(2)
  const { project } = watched
  const client = await openFeed(second.url, watched.member)
  await client.subscribe(project)
  const told = (seq: number) => client.all.findLast(message => message.seq === seq)?.type
  // The event is there: its restoration was told before its deletion.
  notifier.send([
    { kind: 'restored', projectId: watched.id, seq: 1 },
    { kind: 'deleted', projectId: watched.id, seq: 1 },
  ])
  await until(() => told(1) === 'restored')
  // The event is gone: its deletion was told before an earlier restoration.
  await server.sql`update events set deleted_at = now() where project_id = ${watched.id} and seq = 2`
  notifier.send([
    { kind: 'deleted', projectId: watched.id, seq: 2 },
    { kind: 'restored', projectId: watched.id, seq: 2 },
  ])
  await until(() => told(2) === 'deleted')
  await watched.postEvent('after both')
  await until(() => told(3) === 'event')
  expect([told(1), told(2)]).toEqual(['restored', 'deleted'])
  client.close()
})

test.each([
  ['a heartbeat', () => second, () => {}],
  ['a new LISTEN connection', () => other, () => proxy.cut()],
])('reliability §7 an undo whose hint is lost is told after %s', async (_, toServer, break_) => {
  const watched = await newFeedProject(server)
  const event = await watched.postEvent('one')
  const { project } = watched
  const client = await openFeed(toServer().url, watched.member)
  await client.subscribe(project)
  await server.sql`select hide_events(${watched.id}, array[1])`
  notifier.send([{ kind: 'deleted', projectId: watched.id, seq: 1 }])
  expect(await nextNew(client)).toEqual({ type: 'deleted', project, seq: 1 })
  await server.sql`select restore_events(${watched.id}, array[1])`
  break_()
  expect(await nextNew(client)).toEqual({ type: 'restored', project, seq: 1, event })
  client.close()
  await until(isListening)
})

test('read marks are sent only to the sockets of their account, and acknowledgements to all', async () => {
  const watched = await newFeedProject(server)
  const colleague = await newMember(server, { uuid: watched.organizationId }, 'admin')
  const mine = await openFeed(other.url, watched.member)
  const theirs = await openFeed(other.url, colleague)
  for (const client of [mine, theirs]) await client.subscribe(watched.project)
  notifier.send([{ kind: 'unread', projectId: watched.id, accountId: watched.member.uuid }])
  expect(await mine.next()).toEqual({ type: 'unread', project: watched.project })
  notifier.send([{ kind: 'acknowledged', projectId: watched.id, seq: 7 }])
  for (const client of [mine, theirs])
    expect(await client.next()).toEqual({ type: 'acknowledged', project: watched.project, seq: 7 })
  await watched.postEvent('to both')
  for (const client of [mine, theirs]) {
    expect(await client.seqs(1)).toEqual([1])
    client.close()
  }
})

test('case 19: with a hint, sign-out closes sockets before the next check', async () => {
  const { databaseUrl } = server
  await using rare = await boot({ databaseUrl }, { feed: { accessCheckMs: 3_600_000 } })
  const { member } = await newFeedProject(server)
  const client = await openFeed(rare.url, member)
  await server.sql`delete from sessions where id = ${member.sessionId}`
  notifier.send([{ kind: 'access' }])
  expect((await client.closed).code).toBe(1008)
})

test.each([
  [
    'whose backend is terminated',
    () => server.sql`
      select pg_terminate_backend(pid)
      from pg_stat_activity
      where datname = current_database() and application_name like 'tidings listen %'
    `,
  ],
  ['whose connection is cut', () => proxy.cut()],
  ['whose connection is reset', () => proxy.reset()],
])('reliability §7 a listener %s loses, delays and repeats no event', async (_, break_) => {
  const watched = await newFeedProject(server)
  const client = await openFeed(other.url, watched.member)
  await client.subscribe(watched.project)
  for (let nth = 1; nth <= 10; nth++) {
    await watched.postEvent('x')
    if (nth % 3 === 0) await break_()
    expect(await client.seqs(1)).toEqual([nth])
  }
  client.close()
  await until(isListening)
})

test('reliability §7 while a listener receives nothing, polling delivers events until it reconnects', async () => {
  await until(isListening)
  const watched = await newFeedProject(server)
  const client = await openFeed(other.url, watched.member)
  await client.subscribe(watched.project)
  proxy.blackHole()
  for (let seq = 1; seq <= 3; seq++) {
    await watched.postEvent('x')
    expect(await client.seqs(1)).toEqual([seq])
  }
  await until(async () => !(await isListening()))
  await watched.postEvent('x')
  expect(await client.seqs(1)).toEqual([4])
  proxy.heal()
  await until(isListening)
  client.close()
})

test('a batch that is partly stored sends hints for the stored events', async () => {
  const watched = await newFeedProject(server)
  const there = createRequests(server.url, watched.key)
  const client = await openFeed(server.url, watched.member)
  await client.subscribe(watched.project)
  const body = { channelName: 'a', title: 'x' }
  const answers = await Promise.all([
    there.post('/v1/events', body, { 'idempotency-key': 'k' }),
    there.post('/v1/events', { ...body, title: 'y' }, { 'idempotency-key': 'k' }),
    there.post('/v1/events', body),
  ])
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 422])
  expect(await client.seqs(2)).toEqual([1, 2])
  client.close()
})
