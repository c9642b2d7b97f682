import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import type { Sql } from '../../database/sql.ts'
import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import { NIL_UUID } from '../../base/ids.ts'
import type { ClaimedDelivery, DeliveryKind, KindName, TakenRange } from './delivery-kind.ts'
import type { Reservation } from './worker.ts'
import { createWakeUpSignal } from '../../base/wake-up.ts'
import { findLogsAhead } from '../../log/events/logs-ahead.ts'

const POLL_MS = 1_000
/** The most events and projects in one transaction. */
const MAX_EVENTS = 500
const MAX_PROJECTS = 200
/**
 * When a cursor is locked, the project is tried again after this time. By then the other dispatcher
 * has committed.
 */
const CONTENDED_MS = 25
/**
 * Projects without targets are dispatched at this interval. Dispatching them more often would cost
 * as much as appending their events.
 */
const NO_TARGETS_MS = 250
const MAX_PAUSE_MS = 30_000
const MAX_REMEMBERED = 100_000
const log = logger('outbox')

interface DispatcherOptions {
  pool: Pool
  kinds: readonly DeliveryKind[]
  /**
   * Called when a kind has new deliveries without a lease, or when another process must have
   * written some.
   */
  onDispatched(kind: KindName): void
  /** Reserves free slots of this process's worker; undefined if it has none to give. */
  reserve(kind: KindName): Reservation | undefined
}

/** The projects that a kind has to dispatch. Times are of `performance.now()`. */
interface DispatchQueue {
  kind: DeliveryKind
  waiting: Set<string>
  /** Projects that are known to have a cursor. */
  withCursor: Set<string>
  /**
   * When to try again: projects whose cursor another dispatcher held, and projects without targets.
   */
  contended: Map<string, number>
  withoutTargets: Map<string, number>
  /**
   * Projects whose dispatch failed. Each is dispatched alone, after a pause, with fewer events at a
   * time.
   */
  failing: Map<string, { maxEvents: number; failures: number; atMs: number }>
  /** The project id after which the next poll begins. */
  after: string
}

/**
 * Starts the dispatcher. It turns the logs of projects into deliveries, from cursors that all
 * processes share.
 */
export function startDispatcher({ pool, kinds, onDispatched, reserve }: DispatcherOptions) {
  const wakeUp = createWakeUpSignal()
  const queues = kinds.map((kind): DispatchQueue => ({
    kind,
    waiting: new Set(),
    withCursor: new Set(),
    contended: new Map(),
    withoutTargets: new Map(),
    failing: new Map(),
    after: NIL_UUID,
  }))
  let pollDueMs = 0
  let lagMs = 0
  let isStopped = false

  async function run(): Promise<void> {
    while (!isStopped) {
      const startedMs = performance.now()
      if (startedMs >= pollDueMs) {
        pollDueMs = startedMs + POLL_MS
        for (const queue of queues) await poll(queue)
      }
      let isBusy = false
      for (const queue of queues) {
        const projectIds = takeWaiting(queue)
        if (projectIds.length === 0 || isStopped) continue
        isBusy = true
        await dispatch(queue, projectIds)
      }
      if (isBusy || isStopped) continue
      wakeUp.sendIn(Math.min(pollDueMs, ...queues.map(findDueMs)) - performance.now())
      await wakeUp.sleep()
    }
  }

  async function poll(queue: DispatchQueue): Promise<void> {
    try {
      const { projectIds, last } = await pool.run(sql =>
        findLogsAhead(sql, queue.after, {
          cursors: sql`delivery_cursors c on c.project_id = l.project_id and c.kind = ${queue.kind.name}`,
          isAhead: sql`l.last_seq > coalesce(c.seq, 0)`,
        }),
      )
      queue.after = last ?? NIL_UUID
      for (const projectId of projectIds) queue.waiting.add(projectId)
      if (queue.waiting.size === 0) lagMs = 0
    } catch (error) {
      log.warning('The poll for new events failed, and runs again in a second: {reason}', {
        kind: queue.kind.name,
        reason: toReason(error),
      })
    }
  }

  async function dispatch(queue: DispatchQueue, projectIds: string[]): Promise<void> {
    const { kind, withCursor, withoutTargets, failing } = queue
    const maxEvents = failing.get(projectIds[0] ?? '')?.maxEvents ?? MAX_EVENTS
    const reservation = kind.leasesNew ? reserve(kind.name) : undefined
    let leased: readonly ClaimedDelivery[] = []
    try {
      const withoutCursor = projectIds.filter(projectId => !withCursor.has(projectId))
      const dispatched = await pool.run(async sql => {
        if (withoutCursor.length > 0) {
          await ensureCursors(sql, { kind: kind.name, projectIds: withoutCursor })
        }
        return kind.dispatch(sql, { projectIds, maxEvents, lease: reservation?.lease })
      })
      leased = dispatched.leased
      if (withCursor.size > MAX_REMEMBERED) withCursor.clear()
      if (withoutTargets.size > MAX_REMEMBERED) withoutTargets.clear()
      for (const projectId of withoutCursor) withCursor.add(projectId)
      for (const projectId of projectIds) recover(queue, projectId)
      lagMs = Math.max(0, ...dispatched.ranges.map(range => range.lagMs))
      const wasContended = scheduleRetries(queue, projectIds, dispatched.ranges)
      if (dispatched.count > leased.length || wasContended) onDispatched(kind.name)
    } catch (error) {
      // A failing project must not hold up others, so each is tried alone next time.
      for (const projectId of projectIds) fail(queue, projectId)
      log.warning('Events could not be dispatched, and are tried again: {reason}', {
        kind: kind.name,
        projects: projectIds.length,
        reason: toReason(error),
      })
    } finally {
      // If the outcome of the commit is unknown, leased deliveries wait for the end of their lease.
      reservation?.end(leased)
    }
  }

  const running = run()
  return {
    /**
     * Announces that these projects have new events. Without this call the poll finds them, at a
     * rate of 5,000 projects per second.
     */
    wake(projectIds: Iterable<string>): void {
      let dueMs = Infinity
      for (const queue of queues) {
        for (const projectId of projectIds) {
          queue.waiting.add(projectId)
          queue.contended.delete(projectId)
          dueMs = Math.min(dueMs, toDueMs(queue, projectId))
        }
      }
      const waitMs = dueMs - performance.now()
      if (waitMs <= 0) wakeUp.send()
      else wakeUp.sendIn(waitMs)
    },
    /**
     * How long the oldest event of the last transaction had waited, in ms; 0 when no event waits.
     */
    get lagMs() {
      return lagMs
    },
    async stop(): Promise<void> {
      isStopped = true
      wakeUp.send()
      await running
    },
  }
}

/**
 * Schedules when these projects are tried again. Returns true if a cursor was locked for the second
 * time in a row: by then its holder has dispatched some events.
 */
function scheduleRetries(
  { waiting, contended, withoutTargets }: DispatchQueue,
  projectIds: readonly string[],
  ranges: readonly TakenRange[],
): boolean {
  for (const { projectId, hasTargets, isWhole } of ranges) {
    contended.delete(projectId)
    if (!hasTargets) withoutTargets.set(projectId, soon(NO_TARGETS_MS))
    else withoutTargets.delete(projectId)
    if (!isWhole) waiting.add(projectId)
  }
  const taken = new Set(ranges.map(({ projectId }) => projectId))
  const missed = projectIds.filter(projectId => !taken.has(projectId))
  // The holder of a cursor advances it only over the events that it saw.
  const firstMissed = missed.filter(projectId => !contended.delete(projectId))
  for (const projectId of firstMissed) {
    contended.set(projectId, soon(CONTENDED_MS))
    waiting.add(projectId)
  }
  return firstMissed.length < missed.length
}

function soon(ms: number): number {
  return performance.now() + ms
}

/** Returns when a waiting project may be dispatched. */
function toDueMs({ failing, contended, withoutTargets }: DispatchQueue, projectId: string): number {
  return Math.max(
    failing.get(projectId)?.atMs ?? 0,
    contended.get(projectId) ?? 0,
    withoutTargets.get(projectId) ?? 0,
  )
}

/** Returns when the first waiting project is due; Infinity if none waits. */
function findDueMs(queue: DispatchQueue): number {
  let dueMs = Infinity
  for (const projectId of queue.waiting) dueMs = Math.min(dueMs, toDueMs(queue, projectId))
  return dueMs
}

/** Takes the projects to dispatch together. A project that has failed is locked alone. */
function takeWaiting(queue: DispatchQueue): string[] {
  const { waiting, failing } = queue
  const nowMs = performance.now()
  const chosen: string[] = []
  for (const projectId of waiting) {
    if (toDueMs(queue, projectId) > nowMs) continue
    const isFailing = failing.has(projectId)
    if (isFailing && chosen.length > 0) continue
    chosen.push(projectId)
    if (isFailing || chosen.length === MAX_PROJECTS) break
  }
  for (const projectId of chosen) waiting.delete(projectId)
  return chosen
}

/** Halves the number of events that a failed project may dispatch, and doubles its pause. */
function fail({ failing, waiting }: DispatchQueue, projectId: string): void {
  const before = failing.get(projectId) ?? { maxEvents: MAX_EVENTS, failures: 0 }
  failing.set(projectId, {
    maxEvents: Math.max(1, before.maxEvents >> 1),
    failures: before.failures + 1,
    atMs: soon(Math.min(MAX_PAUSE_MS, 100 * 2 ** before.failures)),
  })
  waiting.add(projectId)
}

/**
 * Doubles the number of events of a project that had failed, until it is dispatched together with
 * the others again.
 */
function recover({ failing }: DispatchQueue, projectId: string): void {
  const before = failing.get(projectId)
  if (!before) return
  if (before.maxEvents >= MAX_EVENTS) failing.delete(projectId)
  else failing.set(projectId, { maxEvents: before.maxEvents * 2, failures: 0, atMs: 0 })
}

/**
 * Registers a kind of delivery. If it is new to this installation, its cursors begin at the present
 * end of each log.
 */
export async function registerKind(sql: Sql, kind: KindName): Promise<void> {
  await sql.begin(async tx => {
    const made = await tx`
      insert into delivery_kinds (kind) values (${kind}) on conflict (kind) do nothing
    `
    if (made.count === 0) return
    // A project that is created meanwhile has no cursor, so its log is dispatched from the first
    // event.
    await tx`
      with logs as materialized (select l.project_id, l.last_seq from event_logs l)
      insert into delivery_cursors (project_id, kind, seq)
      select l.project_id, ${kind}, l.last_seq from logs l
      on conflict (project_id, kind) do nothing
    `
  })
}

/** Creates missing cursors, at the beginning of each log. */
export async function ensureCursors(
  sql: Sql,
  { kind, projectIds }: { kind: KindName; projectIds: readonly string[] },
): Promise<void> {
  await sql`
    insert into delivery_cursors (project_id, kind, seq)
    select l.project_id, ${kind}, 0
    from unnest(${toArray(projectIds)}::uuid[]) as w (project_id)
      cross join lateral log_of(w.project_id) l
    order by l.project_id
    on conflict (project_id, kind) do nothing
  `
}
