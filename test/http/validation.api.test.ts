import { beforeEach, describe, expect, test } from 'bun:test'
import { EventInput } from '../../src/log/events/schema.ts'
import { expectIssues, listIssues } from '../support/answers.ts'
import { withServer } from '../support/servers/server.ts'
import { newProject, type TestProject } from '../support/worlds/project.ts'

const server = withServer()
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

describe('contract §2 length limits count code points:', () => {
  for (const [field, min, max] of [
    ['channelName', 1, 255],
    ['title', 1, 500],
    ['description', 0, 5_000],
    ['source', 1, 100],
    ['userId', 1, 255],
  ] as const) {
    test(`${field} has ${min} to ${max}`, async () => {
      for (const unit of [x, rocket]) {
        expect(await check({ [field]: unit(max - 1) })).toEqual(['201'])
        expect(await check({ [field]: unit(max) })).toEqual(['201'])
        expect(await check({ [field]: unit(max + 1) })).toEqual([`${field} too_long`])
      }
      expect(await check({ [field]: x(min) })).toEqual(['201'])
      expect(await check({ [field]: '' })).toEqual(min ? [`${field} too_short`] : ['201'])
    })
  }

  test('tags are at most 20, of 1 to 50 code points each', async () => {
    expect(await check({ tags: [] })).toEqual(['201'])
    expect(await check({ tags: many(20, String) })).toEqual(['201'])
    expect(await check({ tags: many(21, String) })).toEqual(['tags too_many'])
    for (const unit of [x, rocket]) {
      expect(await check({ tags: ['a', unit(50)] })).toEqual(['201'])
      expect(await check({ tags: ['a', unit(51)] })).toEqual(['tags.1 too_long'])
    }
    expect(await check({ tags: ['', 'a', ''] })).toEqual(['tags.0 too_short', 'tags.2 too_short'])
  })

  test('user_id and aliases have 1 to 255 code points, aliases are at most 50', async () => {
    for (const unit of [x, rocket]) {
      const id = crypto.randomUUID()
      const longest = id + unit(255 - id.length)
      expect(await checkIdentity({ user_id: longest })).toEqual(['200'])
      expect(await checkIdentity({ user_id: `${longest}x` })).toEqual(['user_id too_long'])
      expect(await checkIdentity({ aliases: ['a', longest.slice(0, -4)] })).toEqual(['200'])
      expect(await checkIdentity({ aliases: ['a', `${longest}x`] })).toEqual(['aliases.1 too_long'])
    }
    expect(await checkIdentity({ user_id: '' })).toEqual(['user_id too_short'])
    expect(await checkIdentity({ aliases: ['', 'b'] })).toEqual(['aliases.0 too_short'])
    expect(await checkIdentity({ aliases: many(50, String) })).toEqual(['200'])
    expect(await checkIdentity({ aliases: many(51, String) })).toEqual(['aliases too_many'])
  })
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

test('contract §2 missing fields get their defaults', async () => {
  const { body } = await project.post('/v1/events', event)
  expect(body.data).toMatchObject({
    description: null,
    icon: null,
    tags: [],
    metadata: {},
    userId: null,
    source: 'api',
    notify: true,
  })
})

describe('contract §2 null is accepted for userId alone:', () => {
  test('in events', async () => {
    for (const field of Object.keys(EventInput.properties).filter(
      one => !/^user_?id$/i.test(one),
    )) {
      expect(await check({ [field]: null })).toEqual([`${field} invalid_type`])
    }
    expect(await check({ tags: [null] })).toEqual(['tags.0 invalid_type'])
    expect(await check({ userId: null })).toEqual(['201'])
    expect(await check({ metadata: { a: null, b: [null] } })).toEqual(['201'])
  })

  test('not in identities', async () => {
    expect(await checkIdentity({ user_id: null })).toEqual(['user_id invalid_type'])
    expect(await checkIdentity({ properties: null })).toEqual(['properties invalid_type'])
    expect(await checkIdentity({ aliases: null })).toEqual(['aliases invalid_type'])
    expect(await checkIdentity({ aliases: [null] })).toEqual(['aliases.0 invalid_type'])
  })
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
