import { expect, setDefaultTimeout, test } from 'bun:test'
import { connect } from '../../src/db/sql.ts'
import { addTarget, createTargets, createTestKind } from '../support/delivery-kind.ts'
import { cloneDatabase } from '../support/postgres.ts'
import { createRequests, newProject } from '../support/project.ts'
import { boot } from '../support/server.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

/**
 * Appends events one at a time on one server; returns the milliseconds until the other delivered
 * all.
 */
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

// Without hints each event waits for the 1 s poll. The bound is ten times the usual time.
const EVENTS = 10
const BOUND_MS = 5_000

test('design §4 a process delivers events that another process accepted, at once', async () => {
  const tookMs = await measure(EVENTS, { kinds: [] })
  expect(tookMs).toBeLessThan(BOUND_MS)
})

test('design §4 a process delivers at once events that another, busy process dispatched', async () => {
  const busy = createTestKind({ concurrency: 0 })
  const tookMs = await measure(EVENTS, { kinds: [busy] })
  expect(tookMs).toBeLessThan(BOUND_MS)
})
