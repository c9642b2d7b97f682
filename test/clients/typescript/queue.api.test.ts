import { afterEach, expect, spyOn, test } from 'bun:test'
import { ValidationError } from '../../../clients/typescript/src/client.ts'
import type { EventInput } from '../../../clients/typescript/src/client.ts'
import { until } from '../../support/until.ts'
import {
  EVENT,
  failure,
  keysOf,
  startStory,
  success,
  UUID,
  closeServers,
} from '../../support/worlds/client-story.ts'

afterEach(closeServers)

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

/**
 * The clock of the day and that of the machine drift apart, and the header of a server has whole
 * seconds. A clock that the client corrects is minutes off.
 */
const CLOCKS_MS = 2_000

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
  expect(Date.parse(queuedAt)).toBeWithin(before - CLOCKS_MS, Date.now() + CLOCKS_MS)
  const keys = keysOf(server)
  expect(keys).toContain('order-1')
  expect(keys.filter(key => UUID.test(key ?? ''))).toHaveLength(2)
  expect(await client.flush()).toBe(0)
})

test('queue: at most 10 events are sent at a time, and flush reports those that are left', async () => {
  const { server, client } = await startStory([CREATED, 'hang'])
  for (let n = 0; n < 16; n++) client.queue(EVENT)
  await server.until(11)
  expect(await client.flush({ timeoutMs: 20 })).toBe(15)
  expect(server.received).toHaveLength(11)
})

test('queue: a full queue refuses an event, and onDrop gets it', async () => {
  const { drops, onDrop } = createDrops()
  const { client } = await startStory(['hang'], { queueLimit: 2, onDrop })
  expect([client.queue(EVENT), client.queue(EVENT)]).toEqual([true, true])
  expect(client.queue({ ...EVENT, title: 'Third' })).toBe(false)
  expect(drops).toMatchObject([{ event: { title: 'Third' } }])
  expect(drops[0]?.error.message).toBe('The queue is full: 2 events with 82 bytes wait')
})

test('queue: its events have at most so many bytes together', async () => {
  const { drops, onDrop } = createDrops()
  const options = { queueLimitBytes: 100, onDrop }
  const { server, client } = await startStory([CREATED], options)
  const long = { ...EVENT, title: '€'.repeat(17) }
  expect([client.queue(EVENT), client.queue(long), client.queue(EVENT)]).toEqual([
    ...[true, false, true],
  ])
  expect(drops).toMatchObject([{ event: long }])
  expect(await client.flush()).toBe(0)
  // The events that were sent make room.
  expect(client.queue(long)).toBe(true)
  expect(await client.flush()).toBe(0)
  expect(server.received).toHaveLength(3)
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

test('queue: a clock that differs by less than a minute keeps its milliseconds', async () => {
  const { server, client } = await startStory([CREATED], { aheadMs: 50_000 })
  const before = Date.now()
  client.queue(EVENT)
  expect(await client.flush()).toBe(0)
  const { timestamp } = JSON.parse(server.received[0]?.body ?? '') as { timestamp: string }
  expect(Date.parse(timestamp)).toBeWithin(before - CLOCKS_MS, Date.now() + CLOCKS_MS)
})

test('queue: an event whose time is refused is sent without it, and its own time is never changed', async () => {
  const { drops, onDrop } = createDrops()
  const details = [{ path: ['timestamp'], message: 'Must be …', code: 'out_of_range' }]
  const refused = failure(400, { details })
  const { server, client } = await startStory([refused, CREATED, refused], { onDrop })
  client.queue(EVENT)
  expect(await client.flush()).toBe(0)
  expect(server.received.map(({ body }) => JSON.parse(body))).toEqual([
    { ...EVENT, timestamp: expect.any(String) },
    EVENT,
  ])
  expect(new Set(keysOf(server)).size).toBe(1)
  const mine = { ...EVENT, timestamp: '2100-01-01T00:00:00Z' }
  client.queue(mine)
  expect(await client.flush()).toBe(0)
  expect(drops).toMatchObject([{ event: mine }])
  expect(server.received).toHaveLength(3)
})

test('queue: flush after a long outage tries again soon, however many attempts failed before', async () => {
  const { setTimeout } = globalThis
  const pauses: number[] = []
  const hurried = <Args extends unknown[]>(run: (...args: Args) => void, ms = 0, ...args: Args) => {
    const isPause = [1_000, 2_000, 4_000, 8_000, 16_000].includes(ms)
    if (isPause || ms === 30_000) pauses.push(ms)
    return setTimeout(run, isPause ? 0 : ms, ...args)
  }
  const replies = [...Array.from({ length: 7 }, () => failure(503)), CREATED]
  const { client } = await startStory(replies)
  Object.assign(globalThis, { setTimeout: hurried })
  restore.push(() => Object.assign(globalThis, { setTimeout }))
  client.queue(EVENT)
  await until(() => pauses.includes(30_000))
  expect(await client.flush()).toBe(0)
})

test('queue: onDrop that rejects costs no event', async () => {
  const warn = spyOn(console, 'warn').mockImplementation(() => {})
  restore.push(() => warn.mockRestore())
  const onDrop = () => Promise.reject(new Error('A bug'))
  const details = [{ path: ['title'], message: 'Required', code: 'required' }]
  const { server, client } = await startStory([failure(400, { details }), CREATED], {
    ...{ queueLimit: 2, onDrop },
  })
  expect([1, 2, 3].map(() => client.queue(EVENT))).toEqual([true, true, false])
  expect(await client.flush()).toBe(0)
  expect(server.received).toHaveLength(2)
  await until(() => warn.mock.calls.length === 2)
  expect(warn.mock.calls[0]).toEqual(['Tidings: onDrop failed.', expect.any(Error)])
})

test('queue: without onDrop, the console warns at most once a second', async () => {
  const warn = spyOn(console, 'warn').mockImplementation(() => {})
  restore.push(() => warn.mockRestore())
  const { client } = await startStory(['hang'], { queueLimit: 1 })
  for (let n = 0; n < 5; n++) client.queue(EVENT)
  expect(warn.mock.calls).toEqual([
    ['Tidings: the event "Paid" is lost. The queue is full: 1 events with 41 bytes wait'],
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
