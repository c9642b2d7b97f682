import { expect, test } from 'bun:test'
import {
  createClient,
  RateLimitError,
  UnauthorizedError,
  ValidationError,
  type ResponseInfo,
  type Client,
} from '../../../clients/typescript/src/client.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newProject } from '../../support/worlds/project.ts'

const server = withSharedServer()

function toClient(apiKey: string): Client {
  return createClient({ baseUrl: server.url, apiKey, retries: 0 })
}

test('contract §9 our own client sends, identifies, reads and erases', async () => {
  const { key, keyId } = await newProject(server)
  const client = toClient(key)
  expect((await client.me()).key.id).toBe(keyId)

  const first = await client.events.create({
    channelName: 'Payments',
    title: 'One',
    userId: '@ada',
  })
  expect(first).toMatchObject({ seq: 1, channelName: 'Payments', userId: '@ada' })
  const identity = await client.identify({
    user_id: 'a/d&a',
    properties: { plan: 'pro' },
    aliases: ['@ada', '@ada'],
  })
  expect(identity.aliases.created).toEqual(['@ada'])
  expect(identity.aliases.failed).toHaveLength(1)
  expect(await client.events.get(first.id)).toEqual({ ...first, userId: 'a/d&a' })
  expect(await client.users.get('@ada')).toMatchObject({ userId: 'a/d&a', aliases: ['@ada'] })

  for (let n = 2; n <= 7; n++) {
    await client.events.create({
      channelName: n % 2 ? 'odd' : 'even',
      title: `${n}`,
      tags: ['x y'],
    })
  }
  const page = await client.events.list({ limit: 2 })
  expect(page.items.map(({ seq }) => seq)).toEqual([7, 6])
  const next = await client.events.list({ limit: 2, cursor: page.nextCursor })
  expect(next.items.map(({ seq }) => seq)).toEqual([5, 4])
  const forward = await Array.fromAsync(client.events.all({ after: 3, limit: 2, tag: 'x y' }))
  expect(forward.map(({ seq }) => seq)).toEqual([4, 5, 6, 7])
  const backward = await Array.fromAsync(client.events.all({ limit: 2, channel: 'ODD' }))
  expect(backward.map(({ seq }) => seq)).toEqual([7, 5, 3])
  const since = await Array.fromAsync(client.events.all({ from: new Date(first.createdAt) }))
  expect(since).toHaveLength(7)
  const channels = await client.channels.list({ limit: 2 })
  expect(channels.items.map(({ name }) => name)).toEqual(['odd', 'even'])
  const rest = await client.channels.list({ limit: 2, cursor: channels.nextCursor })
  expect(rest).toMatchObject({ items: [{ name: 'Payments' }], nextCursor: null })

  expect(await client.users.erase('a/d&a')).toMatchObject({ userId: 'a/d&a', events: 1 })
  expect((await client.events.get(first.id)).userId).toBeNull()
})

// The table of errors is in errors.api.test.ts.
test('contract §1 our own client throws the error that the server returned', async () => {
  const project = await newProject(server, { limit: 3, scopes: ['events:write'] })
  const client = toClient(project.key)
  const invalid = await catchError(client.events.create({ channelName: '', title: 't' }))
  expect(invalid).toBeInstanceOf(ValidationError)
  expect(invalid).toMatchObject({ status: 400, details: [{ path: ['channelName'] }] })
  expect(await catchError(client.events.list())).toMatchObject({
    ...{ status: 403, code: 'insufficient_scope', requestId: expect.any(String) },
  })
  const event = { channelName: 'c', title: 't' }
  const answers: ResponseInfo[] = []
  await client.events.create(event, { onResponse: info => answers.push(info) })
  expect(answers).toEqual([{ requestId: expect.any(String), replayed: false }])
  const limited = await catchError(client.me())
  expect(limited).toBeInstanceOf(RateLimitError)
  expect((limited as RateLimitError).retryAfterMs).toBeWithin(1, 61_000)
  expect(await catchError(toClient('wrong').me())).toBeInstanceOf(UnauthorizedError)
})

function catchError(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  )
}
