import { expect, test } from 'bun:test'
import { withServer } from '../../support/servers/server.ts'
import { newProject, type TestProject } from '../../support/worlds/project.ts'

const server = withServer()

test('contract §9 the filter channel accepts a name in any spelling, or an id', async () => {
  const project = await newProject(server)
  await send(project, { channelName: 'Big Payments', title: 'a' })
  const { data } = await send(project, { channelName: 'big  payments', title: 'b' })
  await send(project, { channelName: 'C++', title: 'c' })
  for (const channel of ['Big Payments', 'big \t payments', ' BIG payments ', data.channelId]) {
    expect(await find(project, { channel })).toEqual(['b', 'a'])
  }
  expect(await find(project, { channel: 'c++' })).toEqual(['c'])
  for (const channel of ['c', 'C#', 'big', 'big_payments', 'chn_01kadz5p6vf2w8y3m4n5q6r7s8']) {
    expect(await find(project, { channel })).toEqual([])
  }
})

test('contract §9 the filters tag and source match exactly', async () => {
  const project = await newProject(server)
  const odd = `a"b\\c,{}'NULL 🦊`
  await send(project, { title: 'a', tags: ['x', odd], source: 'web' })
  await send(project, { title: 'b', tags: ['X', 'xy'], source: odd })
  expect(await find(project, { tag: 'x' })).toEqual(['a'])
  expect(await find(project, { tag: odd })).toEqual(['a'])
  expect(await find(project, { tag: 'y' })).toEqual([])
  expect(await find(project, { source: 'web' })).toEqual(['a'])
  expect(await find(project, { source: odd })).toEqual(['b'])
  expect(await find(project, { source: 'api' })).toEqual([])
})

test('contract §9 the filter userId finds the events of a user under all aliases', async () => {
  const project = await newProject(server)
  for (const userId of ['ada', '@ada', 'ada@example.com', 'bob', null]) {
    await send(project, { title: String(userId), userId })
  }
  expect(await find(project, { userId: '@ada' })).toEqual(['@ada'])
  await project.post('/v1/identify', { user_id: 'ada', aliases: ['@ada', 'ada@example.com'] })
  await project.post('/v1/identify', { user_id: 'eve', aliases: ['bob'] })
  for (const userId of ['ada', '@ada', 'ada@example.com']) {
    expect(await find(project, { userId })).toEqual(['ada@example.com', '@ada', 'ada'])
  }
  expect(await find(project, { userId: 'eve' })).toEqual(['bob'])
  expect(await find(project, { userId: 'Ada' })).toEqual([])
})

test('contract §9 hostile text is searched for, never executed', async () => {
  const project = await newProject(server)
  await send(project, { title: 'payment' })
  const hostile = [
    ...["'", "''", '\\', "\\'", "a'b", 'a\\', ':*', 'a:*', '!', '!a', '(', ')', '&', '|', '<->'],
    ...['a & !b', "'); drop table events; --", '%', '_', '*', ':', 'a:b', '$1', '${x}', '"', '<b>'],
    ...['🦊', '\u200b', '\u2028', 'x '.repeat(20), '()'.repeat(100), "'".repeat(200)],
  ]
  for (const text of hostile) {
    const { status } = await project.get(`/v1/events?text=${encodeURIComponent(text)}`)
    expect([text, status]).toEqual([text, 200])
  }
  // A term without words is ignored beside other terms. As the only term it finds nothing.
  expect(await find(project, { text: 'pay &' })).toEqual(['payment'])
  expect(await find(project, { text: '&' })).toEqual([])
})

test('contract §9 the 21st word of text is a 400', async () => {
  const project = await newProject(server)
  const ask = (words: number) => project.get(`/v1/events?text=${'a '.repeat(words)}`)
  expect((await ask(20)).status).toBe(200)
  const { status, body } = await ask(21)
  expect([status, body.details]).toEqual([
    400,
    [{ code: 'too_many', path: ['text'], message: 'Must have at most 20 words' }],
  ])
})

test('contract §9 from and to bound the timestamp inclusively, in any time zone', async () => {
  const project = await newProject(server)
  // Lists are in the order of the log, whatever the timestamps.
  for (const day of ['02', '01', '03']) {
    await send(project, { title: day, timestamp: `2026-03-${day}T12:00:00Z` })
  }
  await send(project, { title: 'now' })
  expect(await find(project, { from: '2026-03-02T12:00:00Z' })).toEqual(['now', '03', '02'])
  expect(await find(project, { from: '2026-03-02T12:00:00.001Z' })).toEqual(['now', '03'])
  expect(await find(project, { to: '2026-03-02T12:00:00Z' })).toEqual(['01', '02'])
  expect(await find(project, { to: '2026-03-02T13:59:59+02:00' })).toEqual(['01'])
  expect(await find(project, { from: '2026-03-02', to: '2026-03-03' })).toEqual(['02'])
  expect(await find(project, { from: '2026-03-03', to: '2026-03-02' })).toEqual([])
})

test('contract §9 from and to accept any representable moment', async () => {
  const project = await newProject(server)
  await send(project, { title: 'a' })
  expect(await find(project, { from: '0100-01-01T00:00:00Z' })).toEqual(['a'])
  expect(await find(project, { to: '9999-12-31T23:59:59.999Z' })).toEqual(['a'])
  for (const edge of ['0001-01-01T00:00:00+23:59', '9999-12-31T23:59:59-23:59']) {
    for (const name of ['from', 'to']) {
      const { status } = await project.get(`/v1/events?${name}=${encodeURIComponent(edge)}`)
      expect([edge, [200, 400].includes(status)]).toEqual([edge, true])
    }
    const { status } = await project.post('/v1/events', {
      channelName: 'c',
      title: 't',
      timestamp: edge,
    })
    expect([edge, [201, 400].includes(status)]).toEqual([edge, true])
  }
})

async function send({ post }: TestProject, event: Record<string, unknown>) {
  const { status, body } = await post('/v1/events', { channelName: 'c', ...event })
  expect(status).toBe(201)
  return body
}

/** Returns the titles of all matching events, from all pages. */
async function find({ get }: TestProject, query: Record<string, string>): Promise<string[]> {
  const titles: string[] = []
  for (let cursor: Record<string, string> = {}; ;) {
    const { status, body } = await get(`/v1/events?${new URLSearchParams({ ...query, ...cursor })}`)
    expect(status).toBe(200)
    titles.push(...body.data.items.map(({ title }: { title: string }) => title))
    if (body.data.nextCursor === null) return titles
    cursor = { cursor: body.data.nextCursor }
  }
}
