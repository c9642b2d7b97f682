import { expect, setDefaultTimeout, test } from 'bun:test'
import { connect } from '../../src/db/sql.ts'
import { addTarget, createTargets, createTestKind } from '../support/delivery-kind.ts'
import { cloneDatabase } from '../support/postgres.ts'
import { createRequests, newProject } from '../support/project.ts'
import { boot } from '../support/server.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

/** How long it takes, one after the other, until each of so many events is told by a server that did not take it. */
async function measure(events: number, ingesting: object): Promise<number> {
  const databaseUrl = await cloneDatabase()
  const sql = connect(databaseUrl, { name: 'test', max: 1 })
  const told: string[] = []
  try {
    await createTargets(sql)
    const kind = createTestKind({
      async send({ eventId }) {
        told.push(eventId)
        return { kind: 'done' }
      },
    })
    await using here = await boot({ databaseUrl }, ingesting)
    await using _there = await boot({ databaseUrl }, { kinds: [kind] })
    const project = await newProject(here)
    await addTarget(sql, project.id)
    const { post } = createRequests(here.url, project.key)
    const startedMs = performance.now()
    for (let n = 1; n <= events; n++) {
      const { status } = await post('/v1/events', { channelName: 'ops', title: `No ${n}` })
      expect(status).toBe(201)
      await until(() => told.length === n)
    }
    return performance.now() - startedMs
  } finally {
    await sql.end({ timeout: 1 })
  }
}

// Without hints each waits for the poll of a second. The bound is against that, ten times what it takes.
const EVENTS = 10
const BOUND_MS = 5_000

test('design §4 a process that took no event is told of it at once, and dispatches and delivers', async () => {
  const tookMs = await measure(EVENTS, { kinds: [] })
  expect(tookMs).toBeLessThan(BOUND_MS)
})

test('design §4 a process delivers at once what another, which is busy, has dispatched', async () => {
  const busy = createTestKind({ concurrency: 0 })
  const tookMs = await measure(EVENTS, { kinds: [busy] })
  expect(tookMs).toBeLessThan(BOUND_MS)
})
