// Our own queue, as `bench queue` measures it: `queue-ours.ts <database url>`.
import { createPool } from '../../src/database/pool.ts'
import { connect } from '../../src/database/sql.ts'
import { createAppender } from '../../src/log/events/append.ts'
import { toNewEvent } from '../../src/log/events/new-event.ts'
import { createInFlightRequests } from '../../src/http/limits/idempotency.ts'
import { startDispatcher } from '../../src/delivery/outbox/dispatcher.ts'
import type { DispatchingKind } from '../../src/delivery/outbox/delivery-kind.ts'
import { startOutbox, type Outbox } from '../../src/delivery/outbox/outbox.ts'
import { WORKER_SETTINGS } from '../../src/database/session.ts'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { addTarget, createTargets, createTestKind } from '../support/worlds/delivery-kind.ts'
import { newProject } from '../support/worlds/project.ts'
import { runQueue, type Queue } from './queue-program.ts'

const PROJECTS = 20
const TARGETS = 2
const EACH = PROJECTS * TARGETS

await runQueue(await createOutbox(process.argv[2] ?? ''))

/** A job is a delivery of an event to a target; the dispatcher enqueues it. */
async function createOutbox(databaseUrl: string): Promise<Queue> {
  const sql = connect(databaseUrl, { name: 'bench', max: 2, settings: { statement_timeout: 0 } })
  const pool = createPool(databaseUrl, { name: 'worker', max: 4, settings: WORKER_SETTINGS })
  const appends = createPool(databaseUrl, { name: 'append', max: 1 })
  await createTargets(sql)
  let onStart = (_job: string) => {}
  let stuckId = ''
  const kind = createTestKind({
    perTarget: 64,
    send({ eventId, targetId }, signal) {
      if (targetId === stuckId) return hang(signal)
      onStart(targetId === aloneId ? eventId : `${eventId} ${targetId}`)
      return Promise.resolve({ kind: 'done' })
    },
  })
  // Registers the kind before the events, so that it gets all of them.
  await (await startOutbox({ pool, kinds: [kind] })).stop()
  const newTargets = async (count: number) => {
    const { id } = await newProject({ sql, url: '' })
    const targets: string[] = []
    while (targets.length < count) targets.push(await addTarget(sql, id))
    return { id, targets }
  }
  const projects = await Promise.all(Array.from({ length: PROJECTS }, () => newTargets(TARGETS)))
  const alone = await newTargets(1)
  const aloneId = alone.targets[0]
  const projectIds = projects.map(({ id }) => id)
  let outbox: Outbox | undefined
  const appender = createAppender({
    pool: appends,
    inflight: createInFlightRequests(),
    onAppended: appended => outbox?.wake(appended),
  })

  async function dispatch(ids: string[], count: number): Promise<void> {
    const all = Promise.withResolvers<void>()
    let dispatched = 0
    const counted: DispatchingKind = {
      ...kind,
      async dispatch(sql, request) {
        const done = await kind.dispatch(sql, request)
        dispatched += done.count
        if (dispatched === count) all.resolve()
        return done
      },
    }
    const dispatcher = startDispatcher({
      pool,
      kinds: [counted],
      onDispatched() {},
      reserve: () => undefined,
    })
    dispatcher.wake(ids)
    await all.promise
    // Stops once the work in flight is committed.
    await dispatcher.stop()
  }

  return {
    async prepare(count) {
      for (const id of projectIds) await appendEvents(sql, id, count / EACH)
    },
    enqueue: count => dispatch(projectIds, count),
    async enqueueStuck(count) {
      const stuck = await newTargets(1)
      stuckId = stuck.targets[0] ?? ''
      await appendEvents(sql, stuck.id, count)
      await dispatch([stuck.id], count)
    },
    async add() {
      const event = toNewEvent({ channelName: 'bench', title: 'New payment' })
      await appender.append({
        projectId: alone.id,
        event,
        requestId: 'bench',
        claim: undefined,
        admission: undefined,
      })
      return event.id.uuid
    },
    async work(tell) {
      onStart = tell
      outbox = await startOutbox({ pool, kinds: [kind], graceMs: 0 })
    },
    async isDone() {
      const left =
        await sql`select from outbox where target_id is distinct from ${stuckId || null} limit 1`
      return left.count === 0
    },
    async stop() {
      await outbox?.stop()
    },
  }
}

function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}
