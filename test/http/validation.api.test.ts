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

/** Sends an event with `fields` changed; returns its issues, or `201`. */
async function check(fields: object): Promise<string[]> {
  return listIssues(await project.post('/v1/events', { ...event, ...fields }))
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

test('contract §2 channelName and title are trimmed before counting, all else is kept as sent', async () => {
  const kept = { description: ' a ', tags: [' a '], userId: ' a ', source: ' a ' }
  const answer = await project.post('/v1/events', {
    ...{ channelName: ` \n\u3000${x(255)}\t `, title: `\u00a0 ${x(500)}\r\n` },
    ...kept,
  })
  expect(answer.body.data).toMatchObject({ channelName: x(255), title: x(500), ...kept })
  for (const text of [' \u3000\n', '\u200b', '\u2800 \u2800', '\ufe0f\u200d', '\u00ad'])
    expect([text, await check({ title: text })]).toEqual([text, ['title too_short']])
  for (const text of ['.', 'é', '\u200bx', '🏳️‍🌈', '\u0301', '\u2801'])
    expect([text, await check({ title: text })]).toEqual([text, ['201']])
  expect(await check({ channelName: ' \t ' })).toEqual(['channelName too_short'])
})

test('contract §2 duplicate tags collapse into the first, after counting', async () => {
  const { body } = await project.post('/v1/events', { ...event, tags: ['b', 'a', 'b', 'B', 'a'] })
  expect(body.data.tags).toEqual(['b', 'a', 'B'])
  expect(await check({ tags: Array(21).fill('a') })).toEqual(['tags too_many'])
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
  expect(await check({ tags: Array(20).fill(''), title: '' })).toHaveLength(20)
  expect((await check({ icon: 'x', title: 'a\u0000', other: '\ud800' })).sort()).toEqual([
    'icon invalid_format',
    'other invalid_encoding',
    'title invalid_encoding',
  ])
})

test('contract §2 unknown properties are ignored and not stored', async () => {
  const unknown = { id: 'evt_mine', createdAt: '2020-01-01T00:00:00Z', project: null }
  const { body } = await project.post('/v1/events', { ...event, ...unknown })
  expect(body.data).toMatchObject({ id: expect.not.stringContaining('mine'), seq: 1 })
  expect(body.data).not.toContainKey('project')
  expect(body.data.createdAt).not.toStartWith('2020')
})

test('contract §9 bad query parameters are a 400 whose paths are their names, all at once', async () => {
  const query = 'limit=0&tag=%ff&text=&from=x&from=y&other=%ff&other=1'
  expect(listIssues(await project.get(`/v1/events?${query}`)).sort()).toEqual([
    'from invalid_value',
    'limit out_of_range',
    'other invalid_value',
    'tag invalid_encoding',
    'text too_short',
  ])
})

test('contract §9 an unknown query parameter is named, with the one that it may mean', async () => {
  const message = async (path: string) => (await project.get(path)).body.details[0].message
  expect(await message('/v1/events?chanel=a')).toBe('Is not known here; did you mean channel?')
  expect(await message('/v1/events?q=a')).toBe('Is not known here')
  // Also on routes that know none.
  expect(await message('/v1/me?limit=1')).toBe('Is not known here')
  expectIssues(await project.post('/v1/events?notify=false', event), 'notify invalid_value')
})
