import { afterEach, expect, spyOn, test } from 'bun:test'
import { TidingsError, ValidationError } from '../../clients/typescript/src/client.ts'
import type { EventInput } from '../../clients/typescript/src/client.ts'
import { EVENT, failure, keysOf, startStory, success, UUID } from '../support/client-story.ts'

const CREATED = success({}, 201)

/** A drop as `onDrop` gets it. */
interface Drop {
  event: EventInput
  error: Error
}

function createDrops() {
  const drops: Drop[] = []
  return { drops, onDrop: (event: EventInput, error: Error) => void drops.push({ event, error }) }
}

const restore: (() => void)[] = []
afterEach(() => {
  for (const undo of restore.splice(0)) undo()
})

test('queue: events are sent in the background, each with a key, and flush waits for them', async () => {
  const { server, client } = await startStory([CREATED])
  const before = Date.now()
  expect(client.queue(EVENT)).toBe(true)
  const changed = { ...EVENT, title: 'As queued' }
  expect(client.queue(changed, { idempotencyKey: 'order-1' })).toBe(true)
  changed.title = 'Changed later'
  client.queue({ ...EVENT, timestamp: 1795167000 })
  expect(await client.flush()).toBe(0)
  const bodies = server.received.map(({ body }) => JSON.parse(body) as EventInput)
  expect(bodies.map(({ title }) => title).toSorted()).toEqual(['As queued', 'Paid', 'Paid'])
  const times = bodies.map(({ timestamp }) => timestamp)
  expect(times).toContain(1795167000)
  const [queuedAt = ''] = times.filter(time => typeof time === 'string')
  expect(Date.parse(queuedAt)).toBeGreaterThanOrEqual(before)
  const keys = keysOf(server)
  expect(keys).toContain('order-1')
  expect(keys.filter(key => UUID.test(key ?? ''))).toHaveLength(2)
  expect(await client.flush()).toBe(0)
})

test('queue: at most 10 events are sent at a time, and flush reports those that are left', async () => {
  const { server, client } = await startStory(['hang'])
  for (let n = 0; n < 15; n++) client.queue(EVENT)
  await server.until(10)
  expect(await client.flush({ timeoutMs: 20 })).toBe(15)
  expect(server.received).toHaveLength(10)
})

test('queue: a full queue refuses an event, and onDrop gets it', async () => {
  const { drops, onDrop } = createDrops()
  const { client } = await startStory(['hang'], { queueLimit: 2, onDrop })
  expect([client.queue(EVENT), client.queue(EVENT)]).toEqual([true, true])
  expect(client.queue({ ...EVENT, title: 'Third' })).toBe(false)
  expect(drops).toMatchObject([{ event: { title: 'Third' } }])
  expect(drops[0]?.error.message).toBe('The queue is full: 2 events wait')
})

test('queue: an event outlasts the retries of one call with its key, and flush tries it at once', async () => {
  const { drops, onDrop } = createDrops()
  const replies = [
    failure(503),
    failure(429, {}, { 'Retry-After': '3600' }),
    'drop' as const,
    CREATED,
  ]
  const { server, client } = await startStory(replies, { retries: 0, onDrop })
  client.queue(EVENT)
  // Only flush ends the pause of an hour.
  while (server.received.length < 4) await client.flush({ timeoutMs: 20 })
  expect(await client.flush()).toBe(0)
  expect(server.received).toHaveLength(4)
  expect(new Set(keysOf(server)).size).toBe(1)
  expect(drops).toEqual([])
})

test('queue: an event that the server rejects is dropped, and the next ones are sent', async () => {
  const { drops, onDrop } = createDrops()
  const details = [{ path: ['title'], message: 'Required', code: 'required' }]
  const { server, client } = await startStory([failure(400, { details }), CREATED], { onDrop })
  client.queue({ ...EVENT, title: '' })
  client.queue(EVENT, { idempotencyKey: 'snow ☃' })
  expect(await client.flush()).toBe(0)
  client.queue(EVENT)
  expect(await client.flush()).toBe(0)
  expect(server.received).toHaveLength(2)
  expect(drops.map(({ error }) => error.constructor)).toContain(ValidationError)
  expect(drops.map(({ error }) => error.constructor)).toContain(TypeError)
})

test('queue: an event that failed for 24 hours is dropped, because its key is forgotten', async () => {
  const { drops, onDrop } = createDrops()
  const { server, client } = await startStory([failure(503)], { retries: 0, onDrop })
  client.queue(EVENT)
  const { now } = Date
  Date.now = () => now() + 24 * 60 * 60_000
  restore.push(() => (Date.now = now))
  expect(await client.flush()).toBe(0)
  expect(server.received).toHaveLength(1)
  expect(drops[0]?.error).toBeInstanceOf(TidingsError)
})

test('queue: without onDrop, the console warns at most once a second', async () => {
  const warn = spyOn(console, 'warn').mockImplementation(() => {})
  restore.push(() => warn.mockRestore())
  const { client } = await startStory(['hang'], { queueLimit: 1 })
  for (let n = 0; n < 5; n++) client.queue(EVENT)
  expect(warn.mock.calls).toEqual([
    ['Tidings: the event "Paid" is lost. The queue is full: 1 events wait'],
  ])
})

test('queue: input that no request can carry is refused at the call', async () => {
  const { server, client } = await startStory([CREATED])
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  expect(() => client.queue({ ...EVENT, metadata: circular })).toThrow(TypeError)
  expect(await client.flush()).toBe(0)
  expect(server.received).toEqual([])
})
