import { expect, test } from 'bun:test'
import { toArray } from '../../../src/database/arrays.ts'
import { listBlocked, lockLog } from '../../support/database-lock.ts'
import { boot, withServer } from '../../support/servers/server.ts'
import { ageAnswers } from '../../support/worlds/ageing.ts'
import { createRequests, newProject, type Answered } from '../../support/worlds/project.ts'
import { forFile } from '../../support/for-file.ts'

const lockWaitMs = 60_000
const server = withServer({}, { lockWaitMs })
/** A second process on the same database, whose requests wait long for a key. */
const sibling = forFile(() =>
  boot({ databaseUrl: server.databaseUrl }, { lockWaitMs, keyWaitMs: 60_000 }),
)

const event = { channelName: 'payments', title: 'New payment' }
const KEYED = { 'idempotency-key': 'order-1' }

test('contract §5 after a key expires, concurrent requests over two processes create one event', async () => {
  const project = await newProject(server)
  const other = createRequests(sibling.url, project.key)
  const first = await project.post('/v1/events', event, KEYED)
  await ageAnswers(server.sql, project.id, '24 hours')
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      (n % 2 ? project : other).post('/v1/events', event, KEYED),
    ),
  )
  const winner = expectOneEffect(answers)
  expect(winner?.body.data.id).not.toBe(first.body.data.id)
  expect((await project.get('/v1/events')).body.data.items).toHaveLength(2)
})

test('case 11: when two bodies race for one key, one is accepted and the other refused', async () => {
  const project = await newProject(server)
  const other = createRequests(sibling.url, project.key)
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, n) =>
      (n % 4 < 2 ? project : other).post('/v1/events', { ...event, title: `Body ${n % 2}` }, KEYED),
    ),
  )
  const served = answers.filter(({ status }) => status === 201)
  expect(served).toHaveLength(12)
  expect(new Set(served.map(({ text }) => text)).size).toBe(1)
  expect(answers.filter(({ status }) => status === 422)).toHaveLength(12)
  expect((await project.get('/v1/events')).body.data.items).toHaveLength(1)
})

test('contract §5 concurrent identify requests with one key have one effect', async () => {
  const project = await newProject(server)
  const other = createRequests(sibling.url, project.key)
  const body = { user_id: 'ada', aliases: ['@ada'] }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      (n % 2 ? project : other).post('/v1/identify', body, KEYED),
    ),
  )
  const winner = expectOneEffect(answers, 200)
  expect(winner?.body.data.aliases).toEqual({ created: ['@ada'] })
})

test('contract §1 a key whose request is running is 409 after 300 ms, and a replay once it is done', async () => {
  const project = await newProject(server)
  const routes: [string, object][] = [
    ['/v1/events', event],
    ['/v1/log', { channel: 'payments', event: 'New payment' }],
    ['/v1/identify', { user_id: 'ada' }],
  ]
  await using hold = await lockLog(server.sql, project.id)
  const winners = routes.map(([path, json]) =>
    project.post(path, json, { 'idempotency-key': path }),
  )
  await hold.untilBlocked()
  const seconds = await Promise.all(
    routes.map(([path, json]) => project.post(path, json, { 'idempotency-key': path })),
  )
  for (const { status, headers, body } of seconds) {
    expect(status).toBe(409)
    expect(headers.get('retry-after')).toBe('1')
    expect(headers.get('x-ratelimit-remaining')).not.toBeNull()
    expect(body).toMatchObject({ success: false, code: 'idempotency_key_in_use' })
  }
  await hold.release()
  for (const [n, [path, json]] of routes.entries()) {
    const winner = await winners[n]
    expect(winner?.headers.get('x-idempotent-replay')).toBeNull()
    const replay = await project.post(path, json, { 'idempotency-key': path })
    expect(replay.text).toBe(winner?.text ?? '')
    expect(replay.headers.get('x-idempotent-replay')).toBe('true')
  }
})

test('case 11: requests that wait for the request with their key hold no database connection', async () => {
  const project = await newProject(server)
  const bystander = await newProject(server)
  await using hold = await lockLog(server.sql, project.id)
  const winner = project.post('/v1/events', event, KEYED)
  await hold.untilBlocked()
  const waiting = Array.from({ length: 50 }, () => project.post('/v1/events', event, KEYED))
  // Reads still work: waiting requests would otherwise have used up the pool.
  const reads = ['/v1/me', '/v1/events', '/v1/channels', '/v1/events?text=payment']
  const answers = await Promise.all(reads.map(path => bystander.get(path)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(await listBlocked(server.sql)).toHaveLength(1)
  const refused = await Promise.all(waiting)
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([409]))
  await hold.release()
  expect((await winner).status).toBe(201)
})

test('contract §5 a failed first request frees its key, and a waiting request takes over', async () => {
  const project = await newProject(sibling)
  await using hold = await lockLog(server.sql, project.id)
  const winner = project.post('/v1/events', event, KEYED)
  await hold.untilBlocked()
  const waiting = Array.from({ length: 5 }, () => project.post('/v1/events', event, KEYED))
  // Requests are admitted in order, so those before this one wait once it is answered.
  await project.get('/v1/me')
  await hold.cancelBlocked()
  const failed = await winner
  expect(failed.status).toBe(503)
  expect(failed.headers.get('retry-after')).toBe('1')
  await hold.release()
  expectOneEffect(await Promise.all(waiting))
  const replay = await project.post('/v1/events', event, KEYED)
  expect(replay.headers.get('x-idempotent-replay')).toBe('true')
})

/** Returns the only answer that is not a replay. Expects the others to be replays of it or 409. */
function expectOneEffect(answers: Answered[], status = 201): Answered | undefined {
  const served = answers.filter(answer => answer.status === status)
  const others = answers.filter(answer => answer.status !== status)
  expect(others.filter(answer => answer.status !== 409)).toEqual([])
  const winners = served.filter(({ headers }) => headers.get('x-idempotent-replay') === null)
  expect(winners).toHaveLength(1)
  expect(new Set(served.map(({ text }) => text)).size).toBe(1)
  return winners[0]
}

test('no text of a key takes a lock of the server', async () => {
  const project = await newProject(server)
  // With these names the server once locked its own work.
  const keys = ['clear events', 'index users', 'order-1']
  await server.sql.begin(async tx => {
    await tx`select lock_idempotency_keys(array_fill(${project.id}::uuid, array[3]), ${toArray(keys)}::text[])`
    const held = await tx<{ has_class: boolean; digest: string }[]>`
      select objsubid = 2 as has_class, (classid::bigint << 32 | objid::bigint)::text as digest
      from pg_locks
      where locktype = 'advisory' and pid = pg_backend_pid()
    `
    expect(held.map(({ has_class }) => has_class)).toEqual([false, false, false])
    const guessed = await tx<{ digest: string }[]>`
      select hashtextextended(k, hashtextextended(${project.id}, 0))::text as digest
      from unnest(${toArray(keys)}::text[]) as k
    `
    const digests = new Set(held.map(({ digest }) => digest))
    expect(guessed.filter(({ digest }) => digests.has(digest))).toEqual([])
    const [cleanup] = await sibling.sql<[{ ok: boolean }]>`
      select try_lock_cleanup(${project.id}) as ok
    `
    expect(cleanup.ok).toBe(true)
  })
})
