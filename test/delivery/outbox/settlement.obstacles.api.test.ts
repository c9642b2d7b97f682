import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parseId } from '../../../src/base/ids.ts'
import { WORKER_SETTINGS } from '../../../src/database/delivery-settings.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { sqlState, type Sql } from '../../../src/database/sql.ts'
import { startOutbox } from '../../../src/delivery/outbox/outbox.ts'
import { createSettler } from '../../../src/delivery/outbox/settler.ts'
import { createWebhookKind } from '../../../src/delivery/webhooks/kind.ts'
import { hold, type DatabaseLock } from '../../support/database-lock.ts'
import { startReceiver, type Receiver } from '../../support/servers/receiver.ts'
import { boot, type Booted } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'
import { createWebhooks } from '../../support/worlds/webhooks.ts'

let server: Booted
let webhooks: ReturnType<typeof createWebhooks>
let receiver: Receiver
beforeAll(async () => {
  server = await boot({ egressAllowCidrs: ['127.0.0.0/8'] }, { kinds: [] })
  webhooks = createWebhooks(server)
  receiver = await startReceiver()
})
afterAll(async () => {
  await receiver.close()
  await webhooks.close()
  await server[Symbol.asyncDispose]()
})

/** A statement of the worker, with the lock that it waits for. */
const STEPS = {
  scan: { lock: 'outbox in access exclusive mode', isSent: false },
  claim: { lock: 'outbox in exclusive mode', isSent: false },
  read: { lock: 'webhooks in access exclusive mode', isSent: false },
  record: { lock: 'webhook_attempts in exclusive mode', isSent: true },
  settlement: { lock: 'outbox in exclusive mode', isSent: true },
}

/**
 * Ends the statements that wait, each with a code. A lock time-out comes by itself. For a killed
 * session (57P01) the driver says that its connection is closed, or was reset.
 */
const ENDINGS: Record<string, (sql: Sql) => PromiseLike<unknown>> = {
  '55P03': async () => {},
  '57014': sql => sql`
    select pg_cancel_backend(pid) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
  `,
  CONNECTION_CLOSED: sql => sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
  `,
}

function toCode(error: unknown): string | undefined {
  const code = sqlState(error) ?? (error as NodeJS.ErrnoException).code
  return code === 'ECONNRESET' || code === '57P01' ? 'CONNECTION_CLOSED' : code
}

/** Returns a pool that notes why its work has failed. */
function watch(pool: Pool, states: Set<string | undefined>): Pool {
  return Object.create(pool, {
    run: {
      value: (work: Parameters<Pool['run']>[0]) =>
        pool.run(work).catch((error: unknown) => {
          states.add(toCode(error))
          throw error
        }),
    },
  }) as Pool
}

test.each(
  Object.keys(STEPS).flatMap(step =>
    Object.keys(ENDINGS).map(state => [step as keyof typeof STEPS, state] as const),
  ),
)(
  'delivery: a %s that ends with %s costs no attempt, and loses and doubles nothing',
  async (step, state) => {
    const { lock, isSent } = STEPS[step]
    const name = `/${crypto.randomUUID()}`
    const answer = Promise.withResolvers<{ status: number }>()
    receiver.script(name, () => answer.promise)
    const countRequests = () => receiver.received.filter(({ path }) => path === name).length

    const webhook = await webhooks.create(`${receiver.url}${name}`)
    const projectId = webhook.organization.project.uuid
    const eventId = parseId('evt', await webhook.newEvent()) ?? null
    await server.sql`
    insert into outbox (project_id, event_id, kind, target_id)
    values (${projectId}, ${eventId}, 'webhook', ${webhook.uuid})
  `
    // The dispatcher of this test would make the delivery again after its end.
    await server.sql`insert into delivery_kinds (kind) values ('webhook') on conflict do nothing`
    await server.sql`
      insert into delivery_cursors (project_id, kind, seq)
      select project_id, 'webhook', last_seq from event_logs where project_id = ${projectId}
      on conflict (project_id, kind) do update set seq = excluded.seq
    `
    const states = new Set<string | undefined>()
    const limits = { lock_timeout: state === '55P03' ? 300 : 60_000, statement_timeout: 60_000 }
    const settings = { ...WORKER_SETTINGS, ...limits }
    const own = createPool(server.databaseUrl, { name: 'worker', max: 4, settings })
    const pool = watch(own, states)
    const lockNow = () => hold(server.sql, tx => tx.unsafe(`lock table ${lock}`))

    let held = isSent ? undefined : await lockNow()
    // Without the outbox, registering would wait for the lock as well.
    const outbox = await startOutbox({
      pool,
      kinds: [createWebhookKind({ ...webhooks.parts, pool })],
    })
    if (isSent) {
      await until(() => countRequests() === 1)
      held = await lockNow()
      answer.resolve({ status: 200 })
    }
    await held?.untilBlocked()
    // The first one that waits can be of another program.
    await until(async () => {
      await ENDINGS[state]?.(server.sql)
      return states.has(state)
    })
    expect(countRequests()).toBe(isSent ? 1 : 0)
    await held?.release()
    answer.resolve({ status: 200 })
    const ended = () => server.sql`
    select state, attempts from deliveries where project_id = ${projectId}
  `
    await until(async () => (await ended()).length > 0)
    expect([...(await ended())]).toEqual([{ state: 'delivered', attempts: 1 }])
    expect(await server.sql`select from outbox where project_id = ${projectId}`).toHaveLength(0)
    expect(countRequests()).toBe(1)
    await outbox.stop()
    await own.end()
  },
)

test('delivery: a lock that meets the outcomes of a refused batch loses none of them', async () => {
  const { organization } = await webhooks.create(receiver.url)
  const projectId = organization.project.uuid
  const token = crypto.randomUUID()
  const rows = await server.sql<{ id: string }[]>`
    insert into outbox (project_id, event_id, kind, target_id, token, available_at)
    select ${projectId}, gen_random_uuid(), 'webhook', gen_random_uuid(), ${token}, now() + interval '10 minutes'
    from generate_series(1, 2)
    returning id
  `
  const [refused = '', locked = ''] = rows.map(({ id }) => id)
  const own = createPool(server.databaseUrl, {
    ...{ name: 'worker', max: 1, settings: { ...WORKER_SETTINGS, lock_timeout: 300 } },
  })
  const states = new Set<string | undefined>()
  let held: DatabaseLock | undefined
  const pool = Object.create(own, {
    run: {
      value: (work: Parameters<Pool['run']>[0]) =>
        own.run(work).catch(async (error: unknown) => {
          states.add(toCode(error))
          held ??= await hold(
            server.sql,
            tx => tx`select from outbox where id = ${locked} for update`,
          )
          throw error
        }),
    },
  }) as Pool
  const stored: string[] = []
  const lost: string[] = []
  const settler = createSettler({
    pool,
    onSettled(batch, gone) {
      for (const { id } of batch) (gone.has(id) ? lost : stored).push(id)
    },
  })
  const done = {
    attempts: 1,
    delayMs: null,
    reason: null,
    latencyMs: 1,
    keepsPlace: false,
  } as const
  // A state that the table does not have.
  const state = 'unknown' as 'failed'
  settler.add({ id: refused, token }, { ...done, state })
  settler.add({ id: locked, token }, { ...done, state: 'delivered' })
  await until(() => states.has('55P03'))
  expect([...states]).toEqual(['23514', '55P03'])
  await held?.release()
  await until(() => stored.length > 0)
  expect({ stored, lost }).toEqual({ stored: [locked], lost: [refused] })
  await settler.drain(performance.now() + 1_000)
  await own.end()
})
