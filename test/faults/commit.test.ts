import { afterAll, beforeAll, expect, test } from 'bun:test'
import { registry } from '../../src/base/metrics.ts'
import type { Sql } from '../../src/database/sql.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { startProgram } from '../support/servers/process.ts'
import { boot } from '../support/servers/server.ts'
import { startTcpProxy, type Held } from '../support/servers/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { createRequests, newProject, type TestProject } from '../support/worlds/project.ts'
import { openSql } from '../support/sql.ts'

let sql: Sql
let databaseUrl: string
beforeAll(async () => {
  databaseUrl = await cloneDatabase()
  sql = openSql(databaseUrl, { max: 2 })
})
afterAll(() => sql.end({ timeout: 1 }))

const EVENT = { channelName: 'payments', title: 'New payment' }
/** Postgres sends this after it has committed. */
const COMMITTED = { from: 'server', type: 'Z', application: 'tidings append' } as const
/** Outside of a transaction block this message commits. */
const COMMIT = { from: 'client', type: 'S', application: 'tidings append' } as const

test('§13 after a server is killed between COMMIT and answer, the retry at another one is a replay', async () => {
  const proxy = await startTcpProxy(databaseUrl)
  await using first = await startProgram({ env: { DATABASE_URL: proxy.url } })
  await using second = await startProgram({ env: { DATABASE_URL: databaseUrl } })
  const there = await newProject({ sql, url: first.url })
  const here = createRequests(second.url, there.key)
  await there.post('/v1/events', EVENT)

  const held = proxy.trap(COMMITTED)
  const lost = there.post('/v1/events', EVENT, { 'idempotency-key': 'k1' }).catch(() => 'no answer')
  await held
  expect(await countEvents(there)).toBe(2)
  await first.kill('SIGKILL')
  expect(await lost).toBe('no answer')

  const retry = await here.post('/v1/events', EVENT, { 'idempotency-key': 'k1' })
  expect(retry.status).toBe(201)
  expect(retry.headers.get('x-idempotent-replay')).toBe('true')
  expect(retry.body.data.seq).toBe(2)
  expect(await countEvents(there)).toBe(2)
  await proxy.close()
})

/**
 * The ways a connection ends around COMMIT, and how many of the events in flight are then stored.
 */
const CUTS: {
  name: string
  trap: typeof COMMITTED | typeof COMMIT
  cut(held: Held): void
  isStored: boolean | undefined
}[] = [
  { name: 'the answer to COMMIT is lost', trap: COMMITTED, cut: h => h.cut(), isStored: true },
  { name: 'reset instead of the answer', trap: COMMITTED, cut: h => h.reset(), isStored: true },
  { name: 'COMMIT is lost', trap: COMMIT, cut: h => h.cut(), isStored: false },
  { name: 'cut as COMMIT goes out', trap: COMMIT, cut: h => h.passAndCut(), isStored: undefined },
]

for (const { name, trap, cut, isStored } of CUTS) {
  test(`§16 ${name}: 503, nothing is tried twice, and a retry with the key settles it`, async () => {
    const proxy = await startTcpProxy(databaseUrl)
    await using server = await boot({ databaseUrl: proxy.url })
    const project = await newProject({ sql, url: server.url })
    const send = (intent: string, key?: string) =>
      project.post(
        '/v1/events',
        { ...EVENT, metadata: { intent } },
        key === undefined ? {} : { 'idempotency-key': key },
      )
    await send('warm')

    // Events that arrive while one batch is held make up the next one, which is cut.
    const before = proxy.trap(trap)
    const alone = send('alone')
    const first = await before
    const unkeyed = ['a', 'b', 'c', 'd'].map(intent => send(intent))
    const keyed = ['e', 'f', 'g', 'h'].map(intent => send(intent, intent))
    await until(async () => (await countWaiting()) === 8)
    const second = proxy.trap(trap)
    first.pass()
    cut(await second)

    expect((await alone).status).toBe(201)
    for (const { status, headers } of await Promise.all([...unkeyed, ...keyed])) {
      expect(status).toBe(503)
      expect(headers.get('retry-after')).toBe('1')
    }
    const stored = await countByIntent(project)
    if (isStored !== undefined) {
      // All or none of them.
      for (const intent of 'abcdefgh') expect(stored.get(intent) ?? 0).toBe(isStored ? 1 : 0)
    }
    for (const intent of 'efgh') {
      const retry = await send(intent, intent)
      expect(retry.status).toBe(201)
      if (isStored !== undefined) expect(retry.headers.has('x-idempotent-replay')).toBe(isStored)
    }
    const settled = await countByIntent(project)
    for (const intent of 'efgh') expect(settled.get(intent)).toBe(1)
    // A batch has one outcome, and no server duplicates an event.
    const fates = [...'abcd'].map(intent => settled.get(intent) ?? 0)
    expect(fates).toEqual(new Array(4).fill(fates[0]))
    expect(fates[0]).toBeLessThanOrEqual(1)
    if (isStored !== undefined) expect(fates[0]).toBe(isStored ? 1 : 0)
    await proxy.close()
  })
}

test('§4 a commit waits for fsync, and each statement sees earlier commits, with any settings of the database', async () => {
  const url = await cloneDatabase()
  const own = openSql(url)
  const [{ name }] = await own<[{ name: string }]>`select current_database() as name`
  await own.unsafe(`alter database ${name} set synchronous_commit = off`)
  await own.unsafe(`alter database ${name} set default_transaction_isolation = 'repeatable read'`)
  await own.end()
  const next = openSql(url)
  const [row] = await next`
    select
      current_setting('synchronous_commit') as synchronous_commit,
      current_setting('transaction_isolation') as isolation
  `
  expect(row).toEqual({ synchronous_commit: 'on', isolation: 'read committed' })
  await next.end()
})

async function countByIntent({ id }: TestProject): Promise<Map<string, number>> {
  const rows = await sql<{ intent: string; events: number }[]>`
    select metadata ->> 'intent' as intent, count(*)::int as events
    from events
    where project_id = ${id}
    group by 1
  `
  return new Map(rows.map(({ intent, events }) => [intent, events]))
}

/** Returns how many events wait in this process for the next batch. */
async function countWaiting(): Promise<number | undefined> {
  const all = await registry.getMetricsAsJSON()
  const waiting = all.find(({ name }) => name === 'tidings_batch_queue_length')?.values
  return waiting?.find(({ labels }) => Object.values(labels).includes('append'))?.value
}

async function countEvents({ id }: TestProject): Promise<number> {
  const [row] = await sql<[{ events: number }]>`
    select count(*)::int as events from events where project_id = ${id}
  `
  return row.events
}
