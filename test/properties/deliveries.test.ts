import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { SERVER } from '../../src/access/audit/audit.ts'
import { moveWaits, tryToCheckClock } from '../../src/database/clock.ts'
import { WORKER_SETTINGS } from '../../src/database/session.ts'
import { createPool, transact, type Pool } from '../../src/database/pool.ts'
import { createEgress, type Egress } from '../../src/http/egress/egress.ts'
import { Fault } from '../../src/base/errors.ts'
import { newId, toId } from '../../src/base/ids.ts'
import type { DeliveryKind } from '../../src/delivery/outbox/delivery-kind.ts'
import { startOutbox } from '../../src/delivery/outbox/outbox.ts'
import { disableWebhook, editWebhook, enableWebhook } from '../../src/delivery/webhooks/editing.ts'
import { sweepWebhooks } from '../../src/delivery/webhooks/dispatch.ts'
import { WEBHOOK_SCHEDULE_MS } from '../../src/delivery/outbox/schedule.ts'
import { createWebhookKind } from '../../src/delivery/webhooks/sender.ts'
import { newSigningSecret } from '../../src/delivery/webhooks/signing.ts'
import { insertReceivingWebhook } from '../faults/webhook-receiver.ts'
import {
  prepareClockedDatabases,
  type ClockedDatabase,
} from '../support/worlds/clocked-database.ts'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { newProject } from '../support/worlds/project.ts'
import { startReceiver, type Receiver } from '../support/servers/receiver.ts'
import { testSecrets } from '../support/secret.ts'
import { until } from '../support/until.ts'
import { toFate, type Fate, type Obstacle } from './delivery-model.ts'

const HOUR_MS = 3_600_000
const AGAIN = {
  kind: 'postponed',
  afterMs: HOUR_MS,
  reason: 'Once in a step',
  isAlone: true,
} as const

let database: ClockedDatabase
let receiver: Receiver
let pool: Pool
let egress: Egress
let editor: { actor: typeof SERVER; organizationId: string; projectId: string }
beforeAll(async () => {
  const createDatabase = await prepareClockedDatabases()
  database = await createDatabase()
  receiver = await startReceiver()
  pool = createPool(database.url, { name: 'worker', max: 4, settings: WORKER_SETTINGS })
  egress = createEgress({ allowCidrs: ['127.0.0.0/8'] })
  const { id: projectId } = await newProject({ sql: database.sql, url: '' })
  const [row] = await database.sql<[{ organization_id: string }]>`
    select organization_id from projects where id = ${projectId}
  `
  editor = { actor: SERVER, organizationId: row.organization_id, projectId }
})
afterAll(async () => {
  egress.close()
  await pool.end()
  await receiver.close()
  await database[Symbol.asyncDispose]()
})

/** The circumstances of one webhook and its delivery in a step. */
interface Turn {
  act: 'disable' | 'enable' | null
  isPaused: boolean
  isHidden: boolean
  status: number
  isChanged: boolean
}

/** Time passes or jumps, an outbox is started, and every delivery is due. */
interface Step {
  passedHours: number
  jumpHours: number
  /** False if the outbox starts before the clock is checked. */
  isChecked: boolean
  obstacle: Obstacle | null
  turns: Turn[]
}

const HOOKS = 6
const arbitraryTurn: fc.Arbitrary<Turn> = fc.record({
  act: fc.constantFrom(null, null, null, 'disable', 'enable'),
  isPaused: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.boolean()),
  isHidden: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.boolean()),
  status: fc.constantFrom(200, 500, 500, 500, 503, 429, 410),
  isChanged: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.boolean()),
})
const arbitrarySteps = fc.array(
  fc.record<Step>({
    // No sum of these is within an hour of a limit, which a jump of the clock moves by an hour.
    passedHours: fc.constantFrom(0, 13, 26, 91, 390),
    jumpHours: fc.constantFrom(0, 0, 3, 24 * 40, 24 * 400),
    isChecked: fc.boolean(),
    obstacle: fc.oneof(
      { weight: 4, arbitrary: fc.constant(null) },
      fc.constantFrom<Obstacle>('database', 'busy', 'stop', 'proxy'),
    ),
    turns: fc.array(arbitraryTurn, { minLength: HOOKS, maxLength: HOOKS }),
  }),
  { minLength: 1, maxLength: 6 },
)
const arbitraryAttempts = fc.array(fc.integer({ min: 0, max: 9 }), {
  minLength: HOOKS,
  maxLength: HOOKS,
})

interface Hook {
  uuid: string
  eventId: string
  path: string
  /** The state by the model. */
  fate: Fate
  ageMs: number
  disabledMs: number | null
}

test('delivery: ages, obstacles, jumps of the clock and restarts end a delivery only as promised', async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryAttempts, arbitrarySteps, async (attempts, steps) => {
      const hooks = await addHooks(attempts)
      for (const step of steps) {
        await advance(step)
        await prepare(hooks, step)
        const sent = await run(hooks, step)
        if (step.jumpHours > 0) await check()
        for (const [nth, hook] of hooks.entries()) await compare(hook, step, step.turns[nth]!, sent)
      }
    }),
    { numRuns: 12, endOnFailure: true },
  )
})

async function addHooks(attempts: readonly number[]): Promise<Hook[]> {
  const { sql } = database
  const { projectId } = editor
  await sql`delete from outbox`
  const events = await appendEvents(sql, projectId, attempts.length)
  // Nothing else is dispatched.
  await sql`
    insert into delivery_cursors (project_id, kind, seq)
    select project_id, 'webhook', last_seq from event_logs where project_id = ${projectId}
    on conflict (project_id, kind) do update set seq = excluded.seq
  `
  const hooks: Hook[] = []
  for (const [nth, made] of attempts.entries()) {
    const { uuid } = newId('whk')
    const path = `/${uuid}`
    const url = `${receiver.url}${path}`
    await insertReceivingWebhook(sql, testSecrets(), {
      projectId,
      uuid,
      url,
      secret: newSigningSecret(),
    })
    const eventId = events[nth] ?? ''
    await sql`
      insert into outbox (project_id, event_id, kind, target_id, attempts)
      values (${projectId}, ${eventId}, 'webhook', ${uuid}, ${made})
    `
    const fate: Fate = { state: 'waits', attempts: made, isSent: false }
    hooks.push({ uuid, eventId, path, fate, ageMs: 0, disabledMs: null })
  }
  return hooks
}

/** Lets time pass under a server that checks the clock, then moves the clock without one. */
async function advance({ passedHours, jumpHours, isChecked }: Step): Promise<void> {
  await database.moveClock(`${passedHours} hours`)
  await database.sql`
    insert into clock (checked_at) values (now())
    on conflict (singleton) do update set checked_at = excluded.checked_at
  `
  if (jumpHours === 0) return
  await database.moveClock(`${jumpHours} hours`)
  if (isChecked) await check()
}

async function check(): Promise<void> {
  await tryToCheckClock(pool)
  await moveWaits(pool, new AbortController().signal)
}

async function prepare(
  hooks: readonly Hook[],
  { passedHours, jumpHours, isChecked, turns }: Step,
): Promise<void> {
  const { sql } = database
  for (const [nth, hook] of hooks.entries()) {
    const { act: wanted, isPaused, status, isChanged } = turns[nth]!
    // A check extends the times of before a jump, and cannot tell them from those after it.
    const act = jumpHours > 0 && !isChecked && wanted === 'disable' ? null : wanted
    const ref = { id: toId('whk', hook.uuid) }
    hook.ageMs += passedHours * HOUR_MS
    if (hook.disabledMs !== null) hook.disabledMs += passedHours * HOUR_MS
    if (act === 'disable') {
      await transact(pool, tx => disableWebhook(tx, editor, { ...ref, reason: 'A test' }))
      hook.disabledMs ??= 0
    }
    if (act === 'enable') {
      await transact(pool, tx => enableWebhook(tx, editor, ref.id))
      hook.disabledMs = null
    }
    await sql`
      update webhooks set failures = ${isPaused ? 10 : 0}, failing_since = ${isPaused ? sql`now()` : null}, pauses = 0
      where id = ${hook.uuid}
    `
    await sql`delete from delivery_targets where id = ${hook.uuid} and paused_until < 'infinity'`
    if (isPaused) {
      await sql`
        insert into delivery_targets (kind, id, paused_until, single_until)
        values ('webhook', ${hook.uuid}, now() + interval '5 minutes', 'infinity')
        on conflict do nothing
      `
    }
    receiver.script(hook.path, async () => {
      if (isChanged) {
        const changes = { url: `${receiver.url}${hook.path}?${crypto.randomUUID()}` }
        await transact(pool, tx => editWebhook(tx, editor, { ...ref, changes }, testSecrets()))
      }
      return { status, headers: { 'Retry-After': '1' } }
    })
  }
  await sql`update outbox set available_at = now() where project_id = ${editor.projectId}`
}

/**
 * Runs an outbox until it has handled every delivery once whose target does not wait. Returns the
 * paths that were called.
 */
async function run(hooks: readonly Hook[], step: Step): Promise<ReadonlySet<string>> {
  const { sql } = database
  const { obstacle, turns } = step
  const before = receiver.received.length
  const handled = new Set<string>()
  const kind = createWebhookKind({
    secrets: testSecrets(),
    pool: obstacle === 'database' ? toFailing(pool) : pool,
    egress: obstacle === null || obstacle === 'database' ? egress : toHindered(egress, obstacle),
  })
  const send: DeliveryKind['send'] = async (attempt, signal) => {
    if (handled.has(attempt.id)) return AGAIN
    handled.add(attempt.id)
    const turn = turns[hooks.findIndex(({ uuid }) => uuid === attempt.targetId)]
    if (!turn?.isHidden) return kind.send(attempt, signal)
    await sql`update events set deleted_at = now() where id = ${attempt.eventId}`
    try {
      return await kind.send(attempt, signal)
    } finally {
      await sql`update events set deleted_at = null where id = ${attempt.eventId}`
    }
  }
  await pool.run(sql => sweepWebhooks(sql, false))
  const outbox = await startOutbox({ pool, kinds: [{ ...kind, send }], graceMs: 5_000 })
  await until(async () => {
    const rows = await sql<{ id: string }[]>`
      select o.id from outbox o
      where o.project_id = ${editor.projectId}
        and not exists (select from delivery_targets t where t.id = o.target_id and t.paused_until > now())
    `
    return rows.every(({ id }) => handled.has(id))
  })
  await outbox.stop()
  return new Set(receiver.received.slice(before).map(({ path }) => path.split('?')[0] ?? ''))
}

/** Fails like a pool whose database does not answer. */
function toFailing(real: Pool): Pool {
  const run = () => Promise.reject(new Fault('unavailable', 'The database did not answer in time'))
  return Object.assign(Object.create(real) as Pool, { run })
}

/** Sends nothing; with `stop`, aborts like a server that stops after it has sent. */
function toHindered(real: Egress, obstacle: 'busy' | 'proxy' | 'stop'): Egress {
  const send: Egress['send'] = async request => {
    if (obstacle === 'stop') await real.send(request)
    const error = obstacle === 'stop' ? 'cancelled' : obstacle
    return { error, message: `It is ${error}`, latencyMs: 0 }
  }
  return Object.assign(Object.create(real) as Egress, { send })
}

async function compare(
  hook: Hook,
  { obstacle }: Step,
  turn: Turn,
  sent: ReadonlySet<string>,
): Promise<void> {
  const { sql } = database
  const before = hook.fate
  if (before.state !== 'waits') return
  const { attempts } = before
  hook.fate = toFate({ ...turn, ...hook, attempts, obstacle })
  const [row] = await sql<{ state: Fate['state']; attempts: number; due_in_ms: number }[]>`
    select 'waits' as state, attempts, (extract(epoch from available_at - now()) * 1000)::float8 as due_in_ms
    from outbox
    where event_id = ${hook.eventId} and target_id = ${hook.uuid} and token is null
    union all
    select state, attempts, 0 from deliveries
    where event_id = ${hook.eventId} and target_id = ${hook.uuid}
  `
  const isSent = sent.has(hook.path)
  expect({ state: row?.state, attempts: row?.attempts, isSent }).toEqual({ ...hook.fate })
  const [dead] =
    await sql`select id from dead_letters where event_id = ${hook.eventId} and target_id = ${hook.uuid}`
  expect(dead !== undefined).toBe(hook.fate.state === 'dead')
  // Enabling a webhook makes its deliveries due.
  if (hook.fate.state !== 'waits' || hook.fate.attempts === attempts || turn.act === 'enable')
    return
  const waitMs = WEBHOOK_SCHEDULE_MS[hook.fate.attempts] ?? 0
  expect(row?.due_in_ms).toBeWithin(0.8 * waitMs - 60_000, 1.2 * waitMs + 1)
}
