import { expect, test } from 'bun:test'
import { openFeed, type FeedClient } from '../../support/clients/feed.ts'
import { withServer } from '../../support/servers/server.ts'
import { newMember } from '../../support/worlds/signed-in-account.ts'
import { newFeedProject, type FeedProject } from '../../support/worlds/feed-project.ts'

const server = withServer({}, { feed: { heartbeatMs: 50 } })

/** Returns the seqs that pass a filter in the replay, and those of the same events sent live. */
async function listSeqs(watched: FeedProject, filters: object, events: object[]) {
  const client = await openFeed(server.url, watched.member)
  await client.subscribe(watched.project, { after: 0, filters })
  let last = 0
  for (const event of events) last = (await watched.postEvent('title', event)).seq
  return readTo(watched, client, last)
}

/** Returns the seqs of all matching events, once a heartbeat says that they were sent. */
async function readTo(watched: FeedProject, client: FeedClient, head: number): Promise<number[]> {
  for (;;) {
    const beat = await client.beat()
    if (beat.project === watched.project && beat.head >= head) break
  }
  client.close()
  return client.all.filter(({ type }) => type === 'event').map(({ seq }) => seq)
}

const EVENTS = [
  { channelName: 'Big Payments', tags: ['a', 'b'], source: 'shop', title: 'New payment' },
  {
    ...{
      channelName: 'ops',
      tags: ['a'],
      source: 'cron',
      title: 'Backup',
      description: 'Disk full',
    },
    level: 'high',
  },
  { channelName: 'ops', tags: ['b'], title: 'foo-bar paid', thread: 'Foo', state: 'running' },
]

test('design §6 filters decide the same in the replay and live', async () => {
  const watched = await newFeedProject(server)
  const channelIds: string[] = []
  for (const event of EVENTS)
    channelIds.push((await watched.postEvent(event.title, event)).channelId)
  const filters: [object, number[]][] = [
    [{}, [1, 2, 3]],
    [{ channels: ['big  PAYMENTS'] }, [1]],
    [{ channels: ['nowhere', 'big_payments'] }, []],
    [{ channels: channelIds.slice(1, 2) }, [2, 3]],
    [{ tags: ['a', 'b'] }, [1]],
    [{ text: 'dis ba' }, [2]],
    [{ level: 'high' }, [2]],
    [{ state: 'running', thread: 'Foo' }, [3]],
    [{ state: 'firing' }, []],
    [{ thread: 'foo' }, []],
    [{ any: [{ level: 'normal' }, { level: 'low' }] }, [1, 3]],
    [{ text: 'bar' }, [3]],
    [{ text: '...' }, []],
    [{ any: [{ source: 'cron' }, { tags: ['b'], text: 'pai' }] }, [2, 3]],
    [{ tags: ['b'], any: [{ text: 'new' }, {}] }, [1, 3]],
    [{ any: [{ text: 'nothing' }, { channels: ['nowhere'] }] }, []],
    [{ channels: ['ops'], tags: ['b'], text: 'pai' }, [3]],
  ]
  const clients = await Promise.all(
    filters.map(async ([filters]) => {
      const client = await openFeed(server.url, watched.member)
      await client.subscribe(watched.project, { after: 0, filters })
      return client
    }),
  )
  for (const event of EVENTS) await watched.postEvent(event.title, event)
  for (const [n, [filter, expected]] of filters.entries()) {
    const seqs = await readTo(watched, clients[n]!, 6)
    expect([filter, seqs]).toEqual([filter, [...expected, ...expected.map(seq => seq + 3)]])
  }
})

test('contract §9 an unknown filter, or one with too many words, is refused with what is wrong', async () => {
  const watched = await newFeedProject(server)
  for (const [fields, problem] of [
    [
      { filters: { channel: ['ops'] } },
      'filters.channel: Is not known here; did you mean channels?',
    ],
    [
      { filters: { any: [{ tag: 'a' }] } },
      'filters.any.0.tag: Is not known here; did you mean tags?',
    ],
    [{ filters: { any: [{ text: 'a '.repeat(21) }] } }, 'filters.text: Must have at most 20 words'],
    [{ filters: { text: 'a \u0301' } }, 'filters.text: Must have a letter, a digit or a symbol'],
    [{ filter: {} }, 'filter: Is not known here; did you mean filters?'],
  ] as const) {
    // A socket is closed after a few invalid messages.
    const client = await openFeed(server.url, watched.member)
    client.send({ type: 'subscribe', project: watched.project, ...fields })
    expect(await client.next()).toMatchObject({ type: 'error', code: 'invalid', message: problem })
    client.close()
  }
})

test('§3 a filter by user uses the aliases of the moment when the event is sent', async () => {
  const watched = await newFeedProject(server)
  await watched.postEvent('by user_id', { userId: 'ada' })
  await watched.postEvent('by alias', { userId: 'ada@example.com' })
  await watched.postEvent('of another', { userId: 'bob' })
  const byAlias = await openFeed(server.url, watched.member)
  await byAlias.subscribe(watched.project, { after: 0, filters: { userId: 'ada@example.com' } })
  expect(await byAlias.seqs(1)).toEqual([2])
  // From now on the alias is one of ada's: filters for it match all her names at once.
  await watched.post('/v1/identify', { user_id: 'ada', aliases: ['ada@example.com', 'a2'] })
  await watched.postEvent('by user_id', { userId: 'ada' })
  await watched.postEvent('of another', { userId: 'bob' })
  await watched.postEvent('by the other alias', { userId: 'a2' })
  expect(await byAlias.seqs(2)).toEqual([4, 6])
  const byId = await openFeed(server.url, watched.member)
  await byId.subscribe(watched.project, { after: 0, filters: { userId: 'ada' } })
  expect(await byId.seqs(4)).toEqual([1, 2, 4, 6])
  for (const client of [byAlias, byId]) client.close()
})

test('design §6 filters: a channel by its new name, unless that is the first name of another', async () => {
  const watched = await newFeedProject(server)
  const { channelId } = await watched.postEvent('one', { channelName: 'payments' })
  const account = await newMember(server, { uuid: watched.organizationId }, 'member')
  const rename = (name: string) =>
    account.patch(`/api/projects/${watched.project}/channels/${channelId}`, { name })
  const both = [{ channelName: 'payments' }, { channelName: 'ops' }]
  await rename('Big Money')
  expect(await listSeqs(watched, { channels: ['big  money'] }, both)).toEqual([1, 2])
  const any = [{ channels: ['Big Money'] }, { source: 'none' }]
  expect(await listSeqs(watched, { any }, both)).toEqual([1, 2, 4])
  await rename('Ops')
  expect(await listSeqs(watched, { channels: ['ops'] }, both)).toEqual([3, 5, 7])
  // A subscription also notices names that are given after its start.
  const client = await openFeed(server.url, watched.member)
  await client.subscribe(watched.project, { filters: { channels: ['third name'] } })
  await rename('Third Name')
  await watched.postEvent('under the third name')
  expect(await client.seqs(1)).toEqual([8])
  client.close()
})

test('design §6 a new filter misses no event of a running stream', async () => {
  const watched = await newFeedProject(server)
  const open = await openFeed(server.url, watched.member)
  await open.subscribe(watched.project)
  let isDone = false
  const writing = (async () => {
    for (let nth = 0; nth < 40; nth++) {
      await Promise.all(
        Array.from({ length: 10 }, (_, i) => watched.postEvent(`n${i}`, { userId: `user ${i}` })),
      )
    }
    isDone = true
  })()
  const clients: FeedClient[] = []
  for (let nth = 0; !isDone && nth < 10; nth++) {
    const client = await openFeed(server.url, watched.member)
    const filters = nth % 2 === 0 ? { text: `n${nth}` } : { userId: `user ${nth}` }
    await client.subscribe(watched.project, { after: 0, filters })
    clients.push(client)
  }
  await writing
  expect(await open.seqs(400)).toEqual(Array.from({ length: 400 }, (_, nth) => nth + 1))
  for (const [nth, client] of clients.entries()) {
    await client.seqs(40)
    const events = client.all.filter(({ type }) => type === 'event')
    expect(new Set(events.map(({ seq }) => seq)).size).toBe(40)
    expect(events.every(({ event }) => event.title === `n${nth}`)).toBe(true)
    client.close()
  }
  open.close()
})

test('contract §9 a search gets what the list finds, also by names of users of the moment', async () => {
  const watched = await newFeedProject(server)
  const identify = (user_id: string, more: object) =>
    watched.post('/v1/identify', { user_id, ...more })
  await identify('u1', { aliases: ['ada@x'], properties: { name: 'Ada Lovelace' } })
  await identify('u2', { properties: { firstName: 'Grace', lastName: 'Hopper' } })
  const searches: [q: string, seqs: number[]][] = [
    ['user:ad', [1, 2, 4]],
    ['user:"ada  lovelace"', [1, 2]],
    ['-user:"Ada Lovelace" has:user', [3, 4]],
    ['user:"grace hopper" OR meta:n=1.0', [1, 3]],
    ['user:u -user:"u1"', [3]],
    ['-tag:x "new event"', [2]],
  ]
  const clients = await Promise.all(
    searches.map(async ([q]) => {
      const client = await openFeed(server.url, watched.member)
      await client.subscribe(watched.project, { search: { q } })
      return client
    }),
  )
  await watched.postEvent('New event', { userId: 'u1', tags: ['x'], metadata: { n: 1 } })
  await watched.postEvent('New event', { userId: 'ada@x', metadata: { n: 2 } })
  await watched.postEvent('Event 7', { userId: 'u2' })
  await watched.postEvent('Event 8', { userId: 'Adam' })
  await watched.postEvent('Of nobody', {})
  for (const [n, [q, seqs]] of searches.entries())
    expect([q, await clients[n]!.seqs(seqs.length)]).toEqual([q, seqs])
  await identify('u2', { aliases: ['ad-hoc'] })
  await watched.postEvent('Event 9', { userId: 'u2' })
  expect(await clients[0]!.seqs(1)).toEqual([6])
  for (const client of clients) client.close()
  const client = await openFeed(server.url, watched.member)
  client.send({ type: 'subscribe', project: watched.project, search: { q: 'has:x' } })
  expect((await client.next()).message).toStartWith('q.has: Must be one of')
  client.close()
})
