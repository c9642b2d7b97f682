import { expect, test } from 'bun:test'
import { BUILD } from '../../../src/dashboard/assets.ts'
import { readSlices } from '../../../src/log/feed/read-events.ts'
import { parseId } from '../../../src/base/ids.ts'
import { registry } from '../../../src/base/metrics.ts'
import { openFeed } from '../../support/clients/feed.ts'
import { withServer } from '../../support/servers/server.ts'
import { newFeedProject } from '../../support/worlds/feed-project.ts'

const server = withServer({}, { feed: { heartbeatMs: 300 } })

async function readEpoch(): Promise<string> {
  const [row] = await server.sql<[{ epoch: string }]>`select epoch from installation`
  return row.epoch
}

test('design §6 hello has the epoch; an event equals the 201 answer plus its seq', async () => {
  const watched = await newFeedProject(server)
  const client = await openFeed(server.url, watched.member)
  expect(client.hello).toEqual({ type: 'hello', epoch: await readEpoch(), build: BUILD })
  expect(await client.subscribe(watched.project)).toEqual({
    type: 'subscribed',
    project: watched.project,
    head: 0,
    recovered: true,
  })
  const event = await watched.postEvent('First', { tags: ['a'], metadata: { b: 1 }, userId: 'ada' })
  expect(await client.next()).toEqual({ type: 'event', project: watched.project, seq: 1, event })
  client.close()
})

test('reliability §7 replay and live join without a gap or a duplicate during appends', async () => {
  const watched = await newFeedProject(server)
  const batch = () => Promise.all(Array.from({ length: 50 }, () => watched.postEvent('x')))
  for (let nth = 0; nth < 10; nth++) await batch()
  let isDone = false
  const writing = (async () => {
    for (let nth = 0; nth < 20; nth++) await batch()
    isDone = true
  })()
  const clients: { client: Awaited<ReturnType<typeof openFeed>>; after: number }[] = []
  while (!isDone && clients.length < 20) {
    const client = await openFeed(server.url, watched.member)
    const after = 20 * clients.length
    client.send({ type: 'subscribe', project: watched.project, after })
    clients.push({ client, after })
  }
  await writing
  expect(clients.length).toBeGreaterThan(3)
  for (const { client, after } of clients) {
    expect((await client.next()).type).toBe('subscribed')
    const seqs = await client.seqs(1_500 - after)
    expect(seqs).toEqual(Array.from(seqs, (_, nth) => after + nth + 1))
    client.close()
  }
})

test('design §6 a second subscribe replaces the first; after unsubscribe nothing is sent', async () => {
  const watched = await newFeedProject(server)
  await watched.postEvents(3)
  const client = await openFeed(server.url, watched.member)
  await client.subscribe(watched.project, { after: 0 })
  expect(await client.seqs(3)).toEqual([1, 2, 3])
  expect((await client.subscribe(watched.project, { after: 2 })).type).toBe('subscribed')
  expect(await client.seqs(1)).toEqual([3])
  await watched.postEvent('once')
  expect(await client.seqs(1)).toEqual([4])
  client.send({ type: 'unsubscribe', project: watched.project })
  // A socket without streams gets heartbeats without a project.
  while ('project' in (await client.beat()));
  await watched.postEvent('unheard')
  expect((await client.subscribe(watched.project, { after: 4 })).head).toBe(5)
  expect(await client.seqs(1)).toEqual([5])
  expect(client.all.filter(({ seq }) => seq === 4)).toHaveLength(1)
  client.close()
})

test('design §6 a replay reads large events a few at a time, and sends all of them', async () => {
  const watched = await newFeedProject(server)
  const metadata = { text: 'x'.repeat(200_000) }
  for (let n = 1; n <= 9; n++) await watched.postEvent(`Large ${n}`, { metadata })
  const projectId = parseId('prj', watched.project) ?? ''
  const read = (after: number, maxBytes: number) => {
    const slice = { projectId, after, until: 9, users: [], wantsText: false }
    return readSlices(server.sql, [slice], { each: 200, most: 200, maxBytes })
  }
  const few = await read(0, 256 * 1024)
  expect([few.events.map(({ seq }) => seq), few.isCut]).toEqual([[1, 2], true])
  const rest = await read(7, 2 ** 30)
  expect([rest.events.map(({ seq }) => seq), rest.isCut]).toEqual([[8, 9], false])
  const client = await openFeed(server.url, watched.member)
  await client.subscribe(watched.project, { after: 0 })
  expect(await client.seqs(9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  client.close()
})

test('performance §3 a round reads few long texts for filters by words, and the rest in the next ones', async () => {
  const watched = await newFeedProject(server)
  const description = '𐀀'.repeat(5_000)
  for (let nth = 0; nth < 9; nth++) await watched.postEvent('long', { description })
  const projectId = parseId('prj', watched.project) ?? ''
  const read = async (wantsText: boolean) => {
    const slice = { projectId, after: 0, until: 9, users: [], wantsText }
    const bounds = { each: 200, most: 200, maxBytes: 1024 * 1024 }
    const { events, isCut } = await readSlices(server.sql, [slice], bounds)
    return [events.length, isCut]
  }
  expect([await read(false), await read(true)]).toEqual([
    [9, false],
    [4, true],
  ])
})

test('performance §3 a subscription that runs into a time-out ends its socket, and is not repeated', async () => {
  const watched = await newFeedProject(server)
  const client = await openFeed(server.url, watched.member)
  await server.sql.begin(async tx => {
    await tx`lock table projects in access exclusive mode`
    client.send({ type: 'subscribe', project: watched.project })
    expect(await client.closed).toMatchObject({ code: 1011 })
  })
})

test('research §3 gap: retention, another epoch, or a cursor ahead of the head', async () => {
  const watched = await newFeedProject(server)
  await watched.postEvents(6)
  const { project } = watched
  const epoch = await readEpoch()
  const client = await openFeed(server.url, watched.member)

  expect(await client.subscribe(project, { after: 7 })).toMatchObject({ recovered: false })
  expect(await client.next()).toEqual({ type: 'gap', project, reason: 'ahead', head: 6 })
  expect(await client.subscribe(project, { after: 4, epoch: crypto.randomUUID() })).toMatchObject({
    recovered: false,
  })
  expect(await client.next()).toEqual({ type: 'gap', project, reason: 'epoch', head: 6 })
  expect(await client.subscribe(project, { after: 5, epoch })).toMatchObject({ recovered: true })
  expect(await client.seqs(1)).toEqual([6])

  // A deleted event leaves a hole, which is not a gap.
  await server.sql`
    update events set deleted_at = now() where project_id = ${watched.id} and seq in (1, 5)
  `
  expect(await client.subscribe(project, { after: 3 })).toMatchObject({ recovered: true })
  expect(await client.seqs(2)).toEqual([4, 6])

  // Retention removes the oldest events.
  await server.sql`delete from events where project_id = ${watched.id} and seq <= 3`
  expect(await client.subscribe(project, { after: 2 })).toMatchObject({ recovered: false })
  expect(await client.next()).toEqual({ type: 'gap', project, reason: 'retention', head: 6 })
  expect(await client.seqs(2)).toEqual([4, 6])
  expect(await client.subscribe(project, { after: 3 })).toMatchObject({ recovered: true })
  expect(await client.seqs(2)).toEqual([4, 6])
  expect(await client.subscribe(project, { after: 0 })).toMatchObject({ recovered: true })
  expect(await client.seqs(2)).toEqual([4, 6])
  // A channel with a shorter retention moves `expired_seq`.
  await server.sql`update event_logs set expired_seq = 5 where project_id = ${watched.id}`
  await server.sql`delete from events where project_id = ${watched.id} and seq = 5`
  expect(await client.subscribe(project, { after: 4 })).toMatchObject({ recovered: false })
  expect((await client.next()).reason).toBe('retention')
  client.close()
})

test('§5 metrics count sockets, streams, listener, lag and replayed events', async () => {
  const watched = await newFeedProject(server)
  await watched.postEvents(2)
  const client = await openFeed(server.url, watched.member)
  await client.subscribe(watched.project, { after: 0 })
  await client.seqs(2)
  await watched.postEvent('live')
  await client.seqs(1)
  const text = await registry.metrics()
  const read = (name: string) => Number(text.split(`\n${name} `)[1]?.split('\n')[0])
  for (const name of ['sockets', 'subscriptions', 'listener_up', 'lag_seconds_count'])
    expect([name, read(`tidings_feed_${name}`) > 0]).toEqual([name, true])
  expect(read('tidings_feed_events_behind')).toBeGreaterThanOrEqual(0)
  expect(read('tidings_feed_replay_rows_total')).toBeGreaterThan(1)
  expect(read('tidings_feed_hints_total{result="sent"}')).toBeGreaterThan(0)
  client.close()
})

test('scale §1 a log that ends before a position begins a new epoch, and sockets are closed one by one', async () => {
  const watched = await newFeedProject(server)
  await watched.postEvents(2)
  const clients = await Promise.all(
    Array.from({ length: 15 }, () => openFeed(server.url, watched.member)),
  )
  for (const client of clients) await client.subscribe(watched.project, { after: 2 })
  let closed = 0
  const closings = clients.map(client => client.closed.finally(() => closed++))
  await server.sql`
    update event_logs set last_seq = 1 where project_id = ${parseId('prj', watched.project)!}
  `
  expect(await Promise.race(closings)).toMatchObject({ code: 1012 })
  expect(closed).toBeLessThan(clients.length)
  // A new socket is served meanwhile.
  const again = await openFeed(server.url, watched.member)
  expect(again.hello.epoch).toBe(await readEpoch())
  expect(again.hello.epoch).not.toBe(clients[0]!.hello.epoch)
  await again.subscribe(watched.project, { after: 1 })
  expect(new Set((await Promise.all(closings)).map(({ code }) => code))).toEqual(new Set([1012]))
  again.close()
})
