import { expect, test } from 'bun:test'
import { expectIssues, listIssues } from '../support/answers.ts'
import { withServer } from '../support/servers/server.ts'
import { newProject } from '../support/worlds/project.ts'

const server = withServer()

test('contract §9 bad query parameters are a 400 whose paths are their names, all at once', async () => {
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
