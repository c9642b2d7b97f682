import { beforeEach, expect, test } from 'bun:test'
import { expectIssues, listIssues } from '../support/answers.ts'
import { withSharedServer } from '../support/servers/server.ts'
import { newProject, type TestProject } from '../support/worlds/project.ts'

const server = withSharedServer()
let project: TestProject
beforeEach(async () => {
  project = await newProject(server)
})

const event = { channelName: 'payments', title: 'New payment' }
const x = (count: number) => 'x'.repeat(count)
/** One code point, two UTF-16 units, four bytes. */
const rocket = (count: number) => '🚀'.repeat(count)
const many = <Item>(count: number, make: (index: number) => Item) =>
  Array.from({ length: count }, (_, index) => make(index))

/** Sends an event with `fields` changed; returns its issues, or `201`. */
async function check(fields: object): Promise<string[]> {
  return listIssues(await project.post('/v1/events', { ...event, ...fields }))
}

async function checkIdentity(fields: object): Promise<string[]> {
  return listIssues(await project.post('/v1/identify', { user_id: crypto.randomUUID(), ...fields }))
}

// test/properties breaks each of these rules. Here are their numbers.
test('contract §2 the document has the limits of texts and lists', async () => {
  const document: any = await (await fetch(`${server.url}/openapi.json`)).json()
  const { EventInput, IdentifyInput } = document.components.schemas
  const limits = Object.entries<any>({ ...EventInput.properties, ...IdentifyInput.properties })
    .filter(([, { maxLength, maxItems }]) => maxLength ?? maxItems)
    .map(([name, { minLength = 0, maxLength, maxItems, items }]) => [
      name,
      maxItems ? [0, maxItems, items.minLength, items.maxLength] : [minLength, maxLength],
    ])
  expect(Object.fromEntries(limits)).toEqual({
    actions: [0, 4, undefined, undefined],
    channelName: [1, 255],
    title: [1, 500],
    description: [0, 5_000],
    source: [1, 100],
    userId: [1, 255],
    user_id: [1, 255],
    url: [1, 2_048],
    thread: [1, 255],
    tags: [0, 20, 1, 50],
    aliases: [0, 50, 1, 255],
  })
})

test('contract §2 length limits count code points', async () => {
  for (const unit of [x, rocket]) {
    expect(await check({ title: unit(500), tags: [unit(50)] })).toEqual(['201'])
    expect(await check({ title: unit(501), tags: ['a', unit(51)] })).toEqual([
      'title too_long',
      'tags.1 too_long',
    ])
  }
})

test('contract §2 channelName and title are trimmed before counting, all else is kept as sent', async () => {
  const answer = await project.post('/v1/events', {
    channelName: ` \n\u3000${x(255)}\t `,
    title: `\u00a0 ${x(500)}\r\n`,
    description: ' a ',
    tags: [' a '],
    userId: ' a ',
    source: ' a ',
  })
  expect(answer.body.data).toMatchObject({
    channelName: x(255),
    title: x(500),
    description: ' a ',
    tags: [' a '],
    userId: ' a ',
    source: ' a ',
  })
  expect(await check({ title: ' \u3000\n' })).toEqual(['title too_short'])
  for (const text of ['\u200b', '\u3164\u3164', '\u2800 \u2800', '\ufe0f\u200d', '\u00ad']) {
    expect([text, await check({ title: text })]).toEqual([text, ['title too_short']])
  }
  for (const text of ['.', 'é', '\u200bx', '🏳️‍🌈', '\u0301', '\u2801']) {
    expect([text, await check({ title: text })]).toEqual([text, ['201']])
  }
  expect(await check({ channelName: ' \t ' })).toEqual(['channelName too_short'])
})

test('contract §2 duplicate tags collapse into the first, after counting', async () => {
  const { body } = await project.post('/v1/events', { ...event, tags: ['b', 'a', 'b', 'B', 'a'] })
  expect(body.data.tags).toEqual(['b', 'a', 'B'])
  expect(await check({ tags: many(21, () => 'a') })).toEqual(['tags too_many'])
})

test('§4.2.4 a missing channelName is reported with its path, the message Required and a code', async () => {
  const { body } = await project.post('/v1/events', { title: 'x' })
  expect(body.details).toEqual([{ path: ['channelName'], message: 'Required', code: 'required' }])
})

test('§7 every invalid field is listed, at most 20', async () => {
  const answer = await project.post('/v1/events', {
    title: '',
    description: 1,
    icon: 'x',
    tags: ['', x(51)],
    metadata: [],
    notify: 'yes',
    timestamp: 'now',
  })
  expectIssues(
    answer,
    'channelName required',
    'title too_short',
    'description invalid_type',
    'icon invalid_format',
    'tags.0 too_short',
    'tags.1 too_long',
    'metadata invalid_type',
    'notify invalid_type',
    'timestamp invalid_format',
  )
  expect(await check({ tags: many(20, () => ''), title: '' })).toHaveLength(20)
  expect(await checkIdentity({ aliases: many(50, () => 1) })).toHaveLength(20)
})

test('§7 invalid text in one field does not hide issues of the others', async () => {
  const answer = await project.post('/v1/events', { title: 'a\u0000', icon: 'x', other: '\ud800' })
  expect(listIssues(answer).sort()).toEqual([
    'channelName required',
    'icon invalid_format',
    'other invalid_encoding',
    'title invalid_encoding',
  ])
})

test('contract §2 unknown properties are ignored and not stored', async () => {
  const answer = await project.post('/v1/events', {
    ...event,
    id: 'evt_mine',
    seq: 99,
    channelId: 'chn_mine',
    createdAt: '2020-01-01T00:00:00Z',
    project: null,
    parser: { deep: [1e400, {}] },
  })
  expect(answer.status).toBe(201)
  expect(answer.body.data.id).not.toBe('evt_mine')
  expect(answer.body.data).not.toContainAnyKeys(['project', 'parser'])
  expect(answer.body.data.createdAt).not.toStartWith('2020')
})
