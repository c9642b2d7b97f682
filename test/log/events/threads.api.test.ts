import { expect, test } from 'bun:test'
import { expectIssues } from '../../support/answers.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

/** The log of the first tests, in the order of seq. */
const LOG = [
  { thread: 'disk', state: 'firing' },
  {},
  { thread: 'disk', state: 'firing', level: 'high', title: 'Disk is fuller' },
  { thread: 'deploy 42', state: 'running' },
  { thread: 'disk', state: 'resolved' },
  { thread: 'disk', state: 'firing' },
  { thread: 'deploy 42' },
]

async function newLog(): Promise<TestTenant> {
  const tenant = await newTenant(server)
  for (const event of LOG) await tenant.send(event)
  return tenant
}

async function listSeqs(tenant: TestTenant, query: string): Promise<number[]> {
  const { status, body } = await tenant.v1.get(`/v1/events?${query}`)
  expect([query, status]).toEqual([query, 200])
  return body.data.items.map(({ seq }: { seq: number }) => seq)
}

test('contract §9 a list has the latest event of each thread, and every event where it is asked to', async () => {
  const tenant = await newLog()
  const { account, path, projectId } = tenant
  const expected: [string, number[]][] = [
    ['', [7, 6, 5, 2]],
    ['channel=ops', [7, 6, 5, 2]],
    ['threads=latest&limit=3', [7, 6, 5]],
    ['threads=all', [7, 6, 5, 4, 3, 2, 1]],
    ['threads=all&channel=ops', [7, 6, 5, 4, 3, 2, 1]],
    // The order of the log has no holes.
    ['after=0', [1, 2, 3, 4, 5, 6, 7]],
    ['after=0&state=firing', [1, 3, 6]],
    ['state=firing', [6]],
    ['state=running', [7]],
    ['level=high', [5]],
    // Other searches find every event, as counts have it.
    ['text=fuller', [3]],
    ['source=api', [7, 6, 5, 4, 3, 2, 1]],
    ['thread=disk&from=2000-01-01', [6, 5, 3, 1]],
    ['thread=disk', [6, 5]],
    ['thread=disk&threads=all', [6, 5, 3, 1]],
    ['thread=DISK&threads=all', []],
    ['thread=disk&state=firing&threads=all', [6, 3, 1]],
    ['threadSeq=1', [5, 3, 1]],
    ['threadSeq=1&limit=2', [5, 3]],
    ['threadSeq=1&after=1', [3, 5]],
    ['threadSeq=1&text=fuller', [3]],
    ['threadSeq=6', [6]],
    ['threadSeq=3', []],
  ]
  const check = async () => {
    for (const [query, seqs] of expected)
      expect([query, await listSeqs(tenant, query)]).toEqual([query, seqs])
    const searches: [string, number[]][] = [
      ['state:firing', [6]],
      ['-state:firing', [7, 5, 2]],
      ['thread:"deploy 42"', [7]],
      ['-thread:disk', [7, 2]],
      ['-(thread:disk state:firing)', [7, 5, 4, 2]],
      ['state:firing hello', [6, 1]],
    ]
    for (const [q, seqs] of searches) {
      const { body } = await account.get(`${path}/events?q=${encodeURIComponent(q)}`)
      expect([q, body.data.items.map(({ seq }: { seq: number }) => seq)]).toEqual([q, seqs])
    }
  }
  await check()
  const { body: counted } = await account.get(
    `${path}/histogram?q=${encodeURIComponent('state:firing hello')}`,
  )
  expect(counted.data.total).toBe(2)
  await server.sql`select index_next_events(${projectId}, 1, 1000000)`
  await check()
  const { body } = await account.get(`${path}/events?threadSeq=1&limit=2`)
  const next = await account.get(`${path}/events?threadSeq=1&cursor=${body.data.nextCursor}`)
  expect(next.body.data).toMatchObject({ items: [{ seq: 1 }], nextCursor: null })
  expectIssues(await tenant.v1.get('/v1/events?state=open'), 'state invalid_value')
  expectIssues(await tenant.v1.get('/v1/events?threads=none'), 'threads invalid_value')
})

/** Reads a list in pages of one item. */
async function readSingly(tenant: TestTenant, query = ''): Promise<any[]> {
  const items: any[] = []
  for (let cursor = ''; ;) {
    const { status, body } = await tenant.v1.get(`/v1/threads?limit=1${query}${cursor}`)
    expect(status).toBe(200)
    items.push(...body.data.items)
    if (body.data.nextCursor === null) return items
    cursor = `&cursor=${body.data.nextCursor}`
  }
}

test('contract §9 open threads are listed worst first, and the threads of a key newest first', async () => {
  const tenant = await newLog()
  const { send, v1, account, path } = tenant
  const more = [
    { thread: 'cert', state: 'firing', level: 'low', channelName: 'web' },
    { thread: 'disk', state: 'firing', level: 'critical', channelName: 'web' },
    { thread: 'note', channelName: 'web' },
    { thread: 'queue', state: 'firing', icon: '🐇', url: 'https://example.com/queue' },
  ]
  const sent: any[] = []
  for (const event of more) sent.push(await send(event))
  const { body } = await v1.get('/v1/threads')
  const open = body.data.items
  const keys = open.map(({ thread, threadSeq }: any) => `${thread} ${threadSeq}`)
  expect(keys).toEqual(['disk 9', 'disk 6', 'queue 11', 'deploy 42 4', 'cert 8'])
  expect(await readSingly(tenant)).toEqual(open)
  expect((await account.get(`${path}/threads`)).body.data).toEqual(body.data)
  const { id, channelId, timestamp } = sent[3]
  expect(open[2]).toEqual({
    ...{ threadSeq: 11, thread: 'queue', channelId, channelName: 'ops', state: 'firing', count: 1 },
    ...{ openedAt: timestamp, updatedAt: timestamp },
    event: { id, seq: 11, title: 'Hello', icon: '🐇', url: 'https://example.com/queue' },
  })

  const former = (await v1.get('/v1/threads?channel=OPS&thread=disk')).body.data.items
  expect(former).toMatchObject([
    { threadSeq: 6, state: 'firing', count: 1, event: { seq: 6 } },
    { threadSeq: 1, state: 'resolved', level: 'high', count: 3, event: { seq: 5 } },
  ])
  expect(await readSingly(tenant, `&channel=${channelId}&thread=disk`)).toEqual(former)
  for (const query of ['channel=nowhere&thread=disk', 'channel=ops&thread=Disk'])
    expect((await v1.get(`/v1/threads?${query}`)).body.data.items).toEqual([])
  expectIssues(await v1.get('/v1/threads?channel=ops'), 'thread required')
  expectIssues(await v1.get('/v1/threads?thread=disk'), 'channel required')
  const { nextCursor } = (await v1.get('/v1/threads?limit=1')).body.data
  expectIssues(
    await v1.get(`/v1/threads?channel=ops&thread=disk&cursor=${nextCursor}`),
    'cursor invalid_format',
  )
})
