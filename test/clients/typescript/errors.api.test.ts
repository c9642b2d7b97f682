import { afterEach, expect, test } from 'bun:test'
import { inspect } from 'node:util'
import {
  ConnectionError,
  TidingsError,
  UnauthorizedError,
  ValidationError,
} from '../../../clients/typescript/src/client.ts'
import {
  API_KEY,
  REQUEST_ID,
  EVENT,
  startStory,
  errorOf,
  success,
  failure,
  closeServers,
  type Reply,
} from '../../support/worlds/client-story.ts'

afterEach(closeServers)

test('§7 errors: 400 is a ValidationError whose details are also in its message', async () => {
  const details = [
    { path: ['channelName'], message: 'Required', code: 'required' },
    { path: ['tags', '3'], message: 'Too long', code: 'too_long' },
    { path: [], message: 'Not an object' },
  ]
  const { client } = await startStory([failure(400, { error: 'Validation error', details })])
  const error = await errorOf(client.events.create(EVENT), ValidationError)
  expect(error).toBeInstanceOf(TidingsError)
  expect(error).toMatchObject({
    name: 'ValidationError',
    status: 400,
    requestId: REQUEST_ID,
    details,
    message: 'Validation error; channelName: Required; tags.3: Too long; body: Not an object',
  })
})

test('§7 errors: 401 has two fields and is an UnauthorizedError, with the requestId of its header', async () => {
  const body = { error: 'Unauthorized', message: 'Invalid or missing API key' }
  const headers = { 'X-Request-Id': REQUEST_ID }
  const { client } = await startStory([
    { status: 401, body, headers },
    { status: 401, body },
  ])
  const expected = { name: 'UnauthorizedError', status: 401, message: 'Invalid or missing API key' }
  const error = await errorOf(client.me(), UnauthorizedError)
  expect(error).toMatchObject({ ...expected, requestId: REQUEST_ID })
  expect((await errorOf(client.me(), UnauthorizedError)).requestId).toBeUndefined()
})

test('errors: a connection that cannot be made is a ConnectionError with its cause', async () => {
  const { server, client } = await startStory([success({})], { retries: 1 })
  await server.close()
  const error = await errorOf(client.me(), ConnectionError)
  expect(error).toMatchObject({ timedOut: false, message: `No response from ${server.url}` })
  expect(error.cause).toBeInstanceOf(Error)
})

test('errors: a body that Tidings did not write becomes a TidingsError, never a SyntaxError', async () => {
  const bodies = ['<html>502</html>', '', '{"success":true', 'null', '[]', '1', '"x"', '{}']
  for (const body of bodies) {
    for (const status of [200, 201, 400, 404, 418, 502]) {
      const { client } = await startStory([{ status, body }], { retries: 0 })
      const error = await errorOf(client.me(), TidingsError)
      expect(error.message).toBe(`HTTP ${status}, and the response body is not from Tidings`)
      expect(error.status).toBe(status)
    }
  }
  const { client } = await startStory([{ status: 404, body: { success: true, data: 1 } }])
  await errorOf(client.me(), TidingsError)
  for (const body of [{ details: [null] }, { details: 'x', error: 1 }, { success: false }]) {
    const { client } = await startStory([{ status: 400, body }])
    expect((await errorOf(client.me(), TidingsError)).constructor).toBe(TidingsError)
  }
})

test('errors: a redirect is not followed, which would turn a POST into a GET', async () => {
  for (const status of [301, 302, 307, 308]) {
    const { server, client } = await startStory([
      { status, headers: { Location: '/v1/events' } },
      success({ items: [], nextCursor: null }),
    ])
    const error = await errorOf(client.events.create(EVENT), TidingsError)
    expect(error).toMatchObject({ status, message: expect.stringMatching(/redirects.*baseUrl/) })
    expect(server.received).toHaveLength(1)
  }
})

test('errors: no error and no cause contains the API key', async () => {
  const { server: gone, client: unreachable } = await startStory([success({})], { retries: 0 })
  await gone.close()
  const replies: Reply[] = ['reset', 'cut', 'hang', failure(400, { details: [] }), failure(401)]
  const errors = [await errorOf(unreachable.me(), TidingsError)]
  for (const reply of [...replies, failure(429), failure(500), { status: 502, body: 'no' }]) {
    const { client } = await startStory([reply], { retries: 0, timeoutMs: 100 })
    errors.push(await errorOf(client.events.create(EVENT), TidingsError))
  }
  for (const error of errors) {
    const shown = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error)
    expect(shown).not.toContain(API_KEY.slice(4))
  }
})
