import { createPool } from '../../src/db/pool.ts'
import { connect } from '../../src/db/sql.ts'
import { startOutbox, WORKER_SETTINGS } from '../../src/outbox/outbox.ts'
import { appendEvents } from '../support/deliveries.ts'
import { addTarget, createTargets, createTestKind } from '../support/delivery-kind.ts'
import { closeCluster, cloneDatabase } from '../support/postgres.ts'
import { newProject } from '../support/project.ts'
import { until } from '../support/until.ts'

const EVENTS = 10_000
const PROJECTS = 20
const TARGETS = 2

/** Events dispatched per second, and jobs claimed and settled per second with a kind that does nothing. */
export async function benchDeliveries(): Promise<void> {
  const databaseUrl = await cloneDatabase()
  const sql = connect(databaseUrl, { name: 'bench', max: 2, settings: { statement_timeout: 0 } })
  const pool = createPool(databaseUrl, { name: 'worker', max: 4, settings: WORKER_SETTINGS })
  try {
    await createTargets(sql)
    // The kind is known before the events are, so that they are all new to it.
    await (await startOutbox({ pool, kinds: [createTestKind()] })).stop()
    for (let made = 0; made < PROJECTS; made++) {
      const { id } = await newProject({ sql, url: '' })
      for (let targets = 0; targets < TARGETS; targets++) await addTarget(sql, id)
      await appendEvents(sql, id, EVENTS / PROJECTS)
    }
    const jobs = EVENTS * TARGETS
    let dispatched = 0
    let done = 0
    const kind = createTestKind({
      perTarget: 64,
      async send() {
        done++
        return { kind: 'done' }
      },
    })
    const startedMs = performance.now()
    let dispatchedMs = 0
    const outbox = await startOutbox({
      pool,
      kinds: [
        {
          ...kind,
          async dispatch(tx, runs) {
            const made = await kind.dispatch(tx, runs)
            dispatched += made
            if (dispatched === jobs) dispatchedMs = performance.now() - startedMs
            return made
          },
        },
      ],
    })
    const isEmpty = async () => (await sql`select from outbox limit 1`).length === 0
    await until(async () => done >= jobs && (await isEmpty()), 120_000)
    const tookMs = performance.now() - startedMs
    await outbox.stop()
    console.log(`${jobs} jobs of ${EVENTS} events, ${PROJECTS * TARGETS} targets`)
    console.log(`dispatched within ${dispatchedMs.toFixed(0)} ms, while workers ran`)
    console.log(
      `claimed and settled: ${((jobs / tookMs) * 1000).toFixed(0)} jobs/s, dispatch included`,
    )
  } finally {
    await pool.end()
    await sql.end()
    await closeCluster()
  }
}
