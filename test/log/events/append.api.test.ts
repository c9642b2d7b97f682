import { expect, test } from 'bun:test'
import { withSharedServer } from '../../support/servers/server.ts'
import { newProject } from '../../support/worlds/project.ts'

const server = withSharedServer()

test('§4.2 an event is answered 201 with all of its fields', async () => {
  const { post } = await newProject(server)
  const { status, body } = await post('/v1/events', {
    channelName: ' Payments ',
    title: ' New payment ',
    icon: '❤',
    tags: ['a', 'a', 'b'],
    metadata: { amount: 42 },
    userId: 'ada',
  })
  expect(status).toBe(201)
  expect(body.data).toMatchObject({
    seq: 1,
    channelName: 'Payments',
    title: 'New payment',
    description: null,
    icon: '❤️',
    tags: ['a', 'b'],
    metadata: { amount: 42 },
    userId: 'ada',
    source: 'api',
    notify: true,
  })
  expect(body.data.timestamp).toBe(body.data.createdAt)
})
