import { describe, expect, test } from 'bun:test'
import { expectIssues, listIssues } from '../support/answers.ts'
import { withServer } from '../support/servers/server.ts'
import { newProject } from '../support/worlds/project.ts'

const server = withServer()

describe('contract §9 a bad query parameter is a 400 whose path is its name:', () => {
  test.each([
    ['limit=0', 'limit out_of_range'],
    ['limit=101', 'limit out_of_range'],
    ['limit=-1', 'limit out_of_range'],
    ['limit=99999999999999999999', 'limit out_of_range'],
    ['limit=', 'limit invalid_type'],
    ['limit=1.5', 'limit invalid_type'],
    ['limit=1e1', 'limit invalid_type'],
    ['limit=+1', 'limit invalid_type'],
    ['limit=1&limit=2', 'limit invalid_value'],
    ['after=-1', 'after out_of_range'],
    ['after=9007199254740993', 'after out_of_range'],
    ['cursor=x', 'cursor invalid_format'],
    ['cursor=', 'cursor too_short'],
    ['from=yesterday', 'from invalid_format'],
    ['to=9999-12-31T23:59:59-01:00', 'to invalid_format'],
    [`tag=${'x'.repeat(51)}`, 'tag too_long'],
    ['userId=%00', 'userId invalid_encoding'],
    ['text=%ff', 'text invalid_encoding'],
    ['channel[]=a', 'channel[] invalid_value'],
    ['Limit=1', 'Limit invalid_value'],
    ['%ff=1', '%ff invalid_value'],
    ['__proto__=1', '__proto__ invalid_value'],
  ])('%s', async (query, issue) => {
    const { get } = await newProject(server)
    expect(listIssues(await get(`/v1/events?${query}`))).toEqual([issue])
  })

  test('all bad parameters are reported at once', async () => {
    const { get } = await newProject(server)
    const answer = await get('/v1/events?limit=0&tag=%ff&text=&from=x&from=y&other=%ff&other=1')
    expect(listIssues(answer).sort()).toEqual([
      'from invalid_value',
      'limit out_of_range',
      'other invalid_value',
      'tag invalid_encoding',
      'text too_short',
    ])
  })
})

test('contract §9 an unknown query parameter is named, with the one that it may mean', async () => {
  const { get, post } = await newProject(server)
  const message = async (path: string) => (await get(path)).body.details[0].message
  expect(await message('/v1/events?chanel=a')).toBe('Is not known here; did you mean channel?')
  expect(await message('/v1/events?q=a')).toBe('Is not known here')
  // Also on routes that know none.
  expect(await message('/v1/me?limit=1')).toBe('Is not known here')
  const event = { channelName: 'a', title: 'x' }
  expectIssues(await post('/v1/events?notify=false', event), 'notify invalid_value')
  expectIssues(await post('/v1/identify?a=1', { user_id: 'ada' }), 'a invalid_value')
  expect((await post('/v1/events?', event)).status).toBe(201)
})

test('contract §9 + and %20 are a space in a query', async () => {
  const { post, get } = await newProject(server)
  await post('/v1/events', { channelName: 'a', title: 'x', tags: ['two words'] })
  for (const query of ['tag=two+words', 'tag=two%20words', 'tag=two words&&=&']) {
    expect((await get(`/v1/events?${query}`)).body.data.items).toHaveLength(1)
  }
})
