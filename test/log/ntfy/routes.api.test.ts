import { expect, test } from 'bun:test'
import { sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newProject, type RequestOptions, type TestProject } from '../../support/worlds/project.ts'

const server = withSharedServer()

/** Publishes a message, and returns the answer and the stored event. */
async function publish(
  { request, get }: TestProject,
  path: string,
  { method = 'POST', ...options }: RequestOptions = {},
) {
  const answer = await request(path, { method, ...options })
  if (answer.status !== 200) return { answer: answer.body, event: undefined }
  return { answer: answer.body, event: (await get(`/v1/events/${answer.body.id}`)).body.data }
}

/** The fields of an event with no others than a title. */
const BARE = { description: null, icon: null, tags: [], metadata: {}, source: 'ntfy', notify: true }

test('a body becomes an event of the channel, and the answer is a message of ntfy', async () => {
  const project = await newProject(server)
  for (const method of ['POST', 'PUT']) {
    const body = '  Backup successful 😀\n'
    const { answer, event } = await publish(project, '/ntfy/ops', { method, body })
    expect(event).toMatchObject({ ...BARE, channelName: 'ops', title: 'Backup successful 😀' })
    expect(event).not.toHaveProperty('level')
    expect(answer).toEqual({
      id: event.id,
      time: Math.floor(Date.parse(event.createdAt) / 1000),
      event: 'message',
      topic: 'ops',
      message: 'Backup successful 😀',
    })
  }
})

test('title, priority, tags, click and sequence id come from headers and queries under all names', async () => {
  const project = await newProject(server)
  const sent = {
    title: 'Disk  of\tdb1',
    priority: '5',
    tags: 'warning, db1 ,skull,,db1',
    click: 'https://example.com/db1',
    sid: 'disk-db1',
  }
  const forms = [
    { ...sent },
    { t: sent.title, p: 'urgent', ta: sent.tags, click: sent.click, 'sequence-id': sent.sid },
    { title: sent.title, prio: 'MAX', tag: sent.tags, click: sent.click, sid: sent.sid },
  ]
  const headers = [
    ...forms,
    Object.fromEntries(
      Object.entries(sent).map(([name, value]) => [
        `x-${name === 'sid' ? 'sequence-id' : name}`,
        value,
      ]),
    ),
  ]
  const body = 'The disk is full.\nCall Ada.'
  const results = [
    ...headers.map(headers => publish(project, '/ntfy/ops', { body, headers })),
    ...forms.map(form => publish(project, `/ntfy/ops?${new URLSearchParams(form)}`, { body })),
    publish(project, '/ntfy', {
      body: JSON.stringify({
        topic: 'ops',
        message: body,
        title: sent.title,
        priority: 5,
        tags: ['warning', 'db1', 'skull'],
        click: sent.click,
        sequence_id: sent.sid,
        markdown: true,
        cache: null,
      }),
    }),
    publish(project, `/ntfy/ops/${sent.sid}`, { body, headers: { ...sent, sid: 'other' } }),
  ]
  for (const result of results) {
    const { answer, event } = await result
    expect(event).toMatchObject({
      title: 'Disk of db1',
      description: body,
      icon: '⚠️',
      tags: ['db1', 'skull'],
      metadata: {},
      level: 'critical',
      url: sent.click,
      thread: 'disk-db1',
    })
    expect(answer).toMatchObject({
      title: 'Disk of db1',
      message: body,
      priority: 5,
      tags: ['db1', 'skull'],
      click: sent.click,
      sequence_id: 'disk-db1',
    })
  }
})

test('each priority has its level', async () => {
  const project = await newProject(server)
  const names = ['1', 'min', '2', 'low', '3', 'default', '4', 'high', '5', 'max', 'urgent']
  const levels = await Promise.all(
    names.map(async name => {
      const { event } = await publish(project, '/ntfy/ops', { headers: { priority: name } })
      return event.level ?? 'normal'
    }),
  )
  const [low, high] = [Array(4).fill('low'), ['high', 'high']]
  expect(levels).toEqual([...low, 'normal', 'normal', ...high, ...Array(3).fill('critical')])
  // The header of RFC 9218, which proxies add, is no priority of ntfy.
  for (const priority of ['u=1, i', 'u=3, i=?0', 'i']) {
    const { event } = await publish(project, '/ntfy/ops?p=4', { headers: { priority } })
    expect(event.level).toBe('high')
  }
})

test('headers are UTF-8 as curl sends it, Latin-1, or words of RFC 2047', async () => {
  const { key, get } = await newProject(server)
  const cases: [string | Uint8Array, string][] = [
    [Buffer.from('Grüße 🦊'), 'Grüße 🦊'],
    [Buffer.from('Grüße', 'latin1'), 'Grüße'],
    ['=?UTF-8?B?R3LDvMOfZSDwn6aK?=', 'Grüße 🦊'],
    ['=?utf-8?q?Gr=C3=BC=C3=9Fe_100%_=3D?= now', 'Grüße 100% = now'],
    ['=?utf-8?q?one?= =?iso-8859-1?q?_=FC?=', 'one ü'],
    ['=?unknown?q?=FC?= x =?utf-8?b?/w==?=', '=?unknown?q?=FC?= x =?utf-8?b?/w==?='],
    ['a =?utf-8?b?AA==?= b', 'a � b'],
  ]
  for (const [title, expected] of cases) {
    const [head = '', tail] = toRequest(
      'POST /ntfy/ops HTTP/1.1',
      ['Host: localhost', `Authorization: Bearer ${key}`, 'Title: |'],
      'text',
    ).split('|')
    const answer = await sendRaw(
      server.url,
      Buffer.concat([Buffer.from(head), Buffer.from(title), Buffer.from(tail ?? '')]),
    )
    expect([title, answer?.body.title]).toEqual([title, expected])
    expect((await get(`/v1/events/${answer?.body.id}`)).body.data.title).toBe(expected)
  }
})

test('the key is a Bearer token or the password of Basic, and nothing else', async () => {
  const { key, get } = await newProject(server)
  const send = async (authorization: string, path = '/ntfy/ops') => {
    const response = await fetch(server.url + path, { method: 'POST', headers: { authorization } })
    return [response.status, await response.json()] as const
  }
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
  for (const good of [`Bearer ${key}`, basic(`:${key}`), basic(`ada:${key}`)])
    expect((await send(good))[0]).toBe(200)
  const unauthorized = { code: 40101, http: 401, error: 'Invalid or missing API key' }
  for (const bad of ['', 'Basic', basic(key), basic(`${key}:`), basic(`:${key}x`), 'Bearer tk_x'])
    expect(await send(bad)).toEqual([401, unauthorized])
  // URLs end up in logs.
  expect((await send('', `/ntfy/ops?auth=${key}`))[0]).toBe(401)
  expect((await get('/v1/events')).body.data.items).toHaveLength(3)
  // Elsewhere, Basic stays unknown.
  expect((await send(basic(`:${key}`), '/v1/channels/ops'))[0]).toBe(401)
})

test('long text is cut, and what an event has no field for becomes metadata', async () => {
  const project = await newProject(server)
  const line = 'x'.repeat(600)
  const one = await publish(project, '/ntfy/ops', { body: line })
  expect(one.event).toMatchObject({ title: `${'x'.repeat(499)}…`, description: line })
  const headers = {
    title: line,
    tags: `${'t'.repeat(51)},${Array.from({ length: 50 }, (_, n) => n + 200)}`,
    click: 'geo:1,2',
    attach: 'https://example.com/a.jpg',
    icon: 'https://example.com/icon.png',
    actions: 'view, Open, https://example.com',
    filename: 'a.jpg',
  }
  const two = await publish(project, '/ntfy/ops', { body: '🦊'.repeat(60_000), headers })
  const { title, tags, click, ...kept } = headers
  expect(two.event).toMatchObject({
    title: `${title.slice(0, 499)}…`,
    tags: tags.split(',').slice(1, 21),
    metadata: { click, ...kept },
  })
  expect(two.event.description).toBe(`${line}\n${'🦊'.repeat(2199)}…`)
  const file = await publish(project, '/ntfy/ops', { headers: { filename: 'a.jpg' } })
  expect(file.event).toMatchObject({ title: 'a.jpg', metadata: { filename: 'a.jpg' } })
  const empty = await publish(project, '/ntfy/ops', { headers: { click: '', title: ' ' } })
  expect(empty.event).toMatchObject({ ...BARE, title: 'triggered' })
})

test('GET publishes under three names, and reads nothing', async () => {
  const project = await newProject(server)
  for (const verb of ['publish', 'send', 'trigger']) {
    const path = `/ntfy/ops/${verb}?message=a%5Cnb&t=Hi&up=0`
    const { event } = await publish(project, path, { method: 'GET' })
    expect(event).toMatchObject({ channelName: 'ops', title: 'Hi', description: 'a\nb' })
  }
  for (const verb of ['json', 'sse', 'ws', 'raw', 'auth']) {
    const { status, body } = await project.get(`/ntfy/ops/${verb}?poll=1`)
    expect([status, body]).toEqual([
      404,
      { code: 40401, http: 404, error: expect.stringContaining('/v1/events') },
    ])
  }
  expect((await project.get('/v1/events')).body.data.items).toHaveLength(3)
})

test('programs that know no path send JSON to the root, whatever its Content-Type', async () => {
  const project = await newProject(server)
  for (const path of ['/', '/ntfy', '/ntfy/']) {
    for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain']) {
      const body = '{"topic":"ops","message":"hi","tags":["tada","x"],"delay":"","call":null}'
      const sent = { body, headers: { 'content-type': type, 'x-priority': '4', title: 'T' } }
      const { event } = await publish(project, path, sent)
      expect(event).toMatchObject({ title: 'T', description: 'hi', level: 'high', icon: '🎉' })
    }
  }
})

test('an error has the form of those of ntfy', async () => {
  const project = await newProject(server)
  const { request } = project
  const check = async (error: string, path: string, options: RequestOptions) => {
    const { status, body } = await request(path, { method: 'POST', ...options })
    expect([status, body]).toEqual([
      400,
      { code: 40000, http: 400, error: expect.stringContaining(error) },
    ])
  }
  await check('priority: Must be 1 to 5', '/ntfy/ops', { headers: { priority: '6' } })
  for (const name of ['delay', 'at', 'in', 'email', 'call', 'template'])
    await check('Send the message without it', '/ntfy/ops', { headers: { [name]: 'yes' } })
  await check('topic: Must not contain', '/ntfy/%E2%80%AEops', { body: 'x' })
  await check('thread: Must have at most 255', `/ntfy/ops/${'x'.repeat(256)}`, {})
  await check('not valid UTF-8', '/ntfy/ops', { body: new Uint8Array([0xff, 0xd8]) })
  await check('topic: Required', '/ntfy', { body: '{}' })
  await check('not valid JSON', '/ntfy', { body: 'hi' })
  await check('title: Must have a visible character', '/ntfy/ops', { body: '\u200b' })
  const large = await request('/ntfy/ops', { method: 'PUT', body: 'x'.repeat(256 * 1024 + 1) })
  expect(large.body).toEqual({ code: 41301, http: 413, error: expect.any(String) })
  const reader = await newProject(server, { scopes: ['events:read'] })
  for (const [method, path] of [
    ['POST', '/ntfy/ops'],
    ['PUT', '/ntfy/ops/1'],
    ['POST', '/'],
    ['GET', '/ntfy/ops/publish'],
  ] as const) {
    const refused = await reader.request(path, { method })
    expect(refused.body).toMatchObject({ code: 40301, http: 403 })
  }
  expect((await reader.get('/v1/events')).body.data.items).toEqual([])
  const slow = await newProject(server, { limit: 1 })
  await slow.request('/ntfy/ops', { method: 'POST' })
  const limited = await slow.request('/ntfy/ops', { method: 'POST' })
  expect(limited.body).toEqual({ code: 42901, http: 429, error: expect.any(String) })
  expect(limited.headers.get('retry-after')).not.toBeNull()
  expect((await project.get('/v1/events')).body.data.items).toEqual([])
})

test('of 1,000 hostile messages, none breaks the server or a bound', async () => {
  const { request, get } = await newProject(server)
  const texts = [
    ...String.raw`=? ?q? ?B? ?= utf-8 =00 , : 1 \n {{.a}} é & %00 % https:// __proto__ tada "`.split(
      ' ',
    ),
    ...['\xff', '\x1b]', '\ud800', 'a'.repeat(900)],
  ]
  // The same texts at every run.
  let state = 1
  const pick = <Item>(items: readonly Item[]) => {
    state = (state * 48_271) % 2_147_483_647
    return items[state % items.length] as Item
  }
  const text = () => Array.from({ length: pick([0, 1, 3, 9]) }, () => pick(texts)).join('')
  const names = 'title tags click priority sid icon actions message p f'.split(' ')
  const paths = ['/ntfy/ops', '/ntfy/ops/1', '/ntfy/', '/ntfy/%ff', '/ntfy/__proto__', '/']
  const messages = Array.from({ length: 1_000 }, () => {
    const sent = [0, 1, 2].map(() => [pick(names), text()] as const)
    const values = Object.fromEntries(
      sent.map(([name, value]) => [name, pick([value, [value], { value }, 1e30, null, true])]),
    )
    const headers = Object.fromEntries(
      sent.map(([name, value]) => [name, value.replaceAll(/[^\x20-\x7e\x80-\xff]/g, '')]),
    )
    const body = pick([text(), JSON.stringify({ topic: 'ops', ...values }), '{"__proto__":1}'])
    const path = `${pick(paths)}?${pick(names)}=${pick(texts)}`
    return { path, method: pick(['POST', 'PUT']), headers, body }
  })
  const statuses = new Set<number>()
  const send = async ({ path, ...message }: (typeof messages)[number]) => {
    const { status, body } = await request(path, message)
    statuses.add(status)
    if (status !== 200) expect(body).toMatchObject({ http: status, error: expect.any(String) })
    if (status >= 500) throw new Error(`${status} for ${JSON.stringify({ path, ...message })}`)
  }
  while (messages.length > 0) await Promise.all(messages.splice(0, 50).map(send))
  expect(statuses).toEqual(new Set([200, 400]))
  for (const { title, description, tags, url = 'https://a', thread = '' } of (
    await get('/v1/events?limit=100&threads=all')
  ).body.data.items) {
    expect([...title].length).toBeWithin(1, 501)
    expect([...(description ?? '')].length).toBeWithin(0, 5_001)
    expect(tags.length).toBeWithin(0, 21)
    expect(Math.max(0, ...tags.map((tag: string) => [...tag].length))).toBeWithin(0, 51)
    expect(url).toMatch(/^https:/)
    expect([...thread].length).toBeWithin(0, 256)
  }
})

test('a question mark in a query and priority 0 cost nothing', async () => {
  const project = await newProject(server)
  const query = 'message=Done?&ti=Backup&click=https://example.com/?a=1&p=4'
  const asked = await publish(project, `/ntfy/ops/publish?${query}`, { method: 'GET' })
  const url = 'https://example.com/?a=1'
  expect(asked.event).toMatchObject({ title: 'Backup', description: 'Done?', level: 'high', url })
  const bare = await publish(project, '/ntfy', {
    body: '{"topic":"ops","message":"x","priority":0}',
  })
  expect(bare.event).not.toHaveProperty('level')
})

test('a title without a visible character is none', async () => {
  const project = await newProject(server)
  const { event } = await publish(project, '/ntfy/ops?t=%E2%80%8B', { body: 'Backup' })
  expect(event.title).toBe('Backup')
})

test('a message beside a file is kept', async () => {
  const project = await newProject(server)
  const headers = { filename: 'a.log', message: 'Backup failed', ti: 'db1' }
  const { event } = await publish(project, '/ntfy/ops', { body: 'line 1', headers })
  expect(event).toMatchObject({ title: 'db1', description: 'Backup failed\nline 1' })
})

test('an Idempotency-Key makes one event of two GET requests', async () => {
  const { request, get } = await newProject(server)
  const send = () =>
    request('/ntfy/ops/publish?m=x', { method: 'GET', headers: { 'idempotency-key': 'k' } })
  expect((await send()).body).toEqual((await send()).body)
  expect((await get('/v1/events')).body.data.items).toHaveLength(1)
})

test('an Idempotency-Key covers the headers, too', async () => {
  const { request, get } = await newProject(server)
  const send = (title: string) =>
    request('/ntfy/ops', { method: 'POST', body: 'x', headers: { title, 'idempotency-key': 'k' } })
  const [first, second, other] = [await send('a'), await send('a'), await send('b')]
  expect(second.body).toEqual(first.body)
  expect(second.headers.get('x-idempotent-replay')).toBe('true')
  expect(other.body).toMatchObject({ code: 42201, http: 422 })
  expect((await get('/v1/events')).body.data.items).toHaveLength(1)
})
