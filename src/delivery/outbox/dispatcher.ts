import type { Pool } from '../../database/pool.ts'
import { toReason } from '../../base/errors.ts'
import { setNewest } from '../../base/functions.ts'
import { logger } from '../../base/log.ts'
import { NIL_UUID } from '../../base/ids.ts'
import type { ClaimedDelivery, DispatchingKind, KindName, TakenRange } from './delivery-kind.ts'
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
  kinds: readonly DispatchingKind[]
  /**
   * Called when a kind has new deliveries without a lease, or when another process must have
   * written some.
   */
  onDispatched(kind: KindName): void
  /** Reserves free slots of this process's worker; undefined if it has none to give. */
  reserve(kind: KindName): Reservation | undefined
}

/** Why a project is dispatched later, or differently. Times are of `performance.now()`. */
interface ProjectState {
  /** When it may be dispatched. */
  dueMs: number
  /** True if another dispatcher held its cursor the last time. */
  isContended: boolean
  /** The number of failures in a row, and the most events of the next dispatch. */
  failures: number
  maxEvents: number
}

const USUAL: ProjectState = { dueMs: 0, isContended: false, failures: 0, maxEvents: MAX_EVENTS }

/** The projects that a kind has to dispatch. */
interface DispatchQueue {
  kind: DispatchingKind
  waiting: Set<string>
  /** The states of projects other than the usual one. */
  states: Map<string, ProjectState>
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
    ...{ kind, waiting: new Set(), states: new Map(), after: NIL_UUID },
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
    const { kind } = queue
    const { maxEvents } = getState(queue, projectIds[0] ?? '')
    const reservation = kind.leasesNew ? reserve(kind.name) : undefined
    let leased: readonly ClaimedDelivery[] = []
    try {
      const dispatched = await pool.run(sql =>
        kind.dispatch(sql, { projectIds, maxEvents, lease: reservation?.lease }),
      )
      leased = dispatched.leased
      lagMs = Math.max(0, ...dispatched.ranges.map(range => range.lagMs))
      const wasMissedAgain = noteRanges(queue, projectIds, dispatched.ranges)
      if (dispatched.count > leased.length || wasMissedAgain) onDispatched(kind.name)
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
          if (getState(queue, projectId).isContended) queue.states.delete(projectId)
          dueMs = Math.min(dueMs, getState(queue, projectId).dueMs)
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

function getState({ states }: DispatchQueue, projectId: string): ProjectState {
  return states.get(projectId) ?? USUAL
}

/**
 * Notes when to dispatch these projects again. Returns true if one had nothing to take for the
 * second time in a row: by then another process has dispatched some events.
 */
function noteRanges(
  queue: DispatchQueue,
  projectIds: readonly string[],
  ranges: readonly TakenRange[],
): boolean {
  const { waiting, states } = queue
  const taken = new Map(ranges.map(range => [range.projectId, range]))
  let wasMissedAgain = false
  for (const projectId of projectIds) {
    const { isContended, maxEvents } = getState(queue, projectId)
    const range = taken.get(projectId)
    states.delete(projectId)
    if (range) {
      if (!range.isWhole) waiting.add(projectId)
      if (!range.hasTargets) defer(queue, projectId, { dueMs: soon(NO_TARGETS_MS) })
      // After failures, it is dispatched alone until it can have as many events as the others.
      else if (maxEvents < MAX_EVENTS) defer(queue, projectId, { maxEvents: maxEvents * 2 })
    } else if (isContended) {
      wasMissedAgain = true
    } else {
      // The holder of a cursor advances it only over the events that it saw.
      waiting.add(projectId)
      defer(queue, projectId, { maxEvents, isContended: true, dueMs: soon(CONTENDED_MS) })
    }
  }
  return wasMissedAgain
}

function defer({ states }: DispatchQueue, projectId: string, state: Partial<ProjectState>): void {
  setNewest(states, projectId, { ...USUAL, ...state }, MAX_REMEMBERED)
}

function soon(ms: number): number {
  return performance.now() + ms
}

/** Returns when the first waiting project is due; Infinity if none waits. */
function findDueMs(queue: DispatchQueue): number {
  let dueMs = Infinity
  for (const projectId of queue.waiting) {
    dueMs = Math.min(dueMs, getState(queue, projectId).dueMs)
  }
  return dueMs
}

/** Takes the projects to dispatch together. A project that has failed is taken alone. */
function takeWaiting(queue: DispatchQueue): string[] {
  const nowMs = performance.now()
  const chosen: string[] = []
  for (const projectId of queue.waiting) {
    const { dueMs, maxEvents } = getState(queue, projectId)
    if (dueMs > nowMs) continue
    const isAlone = maxEvents < MAX_EVENTS
    if (isAlone && chosen.length > 0) continue
    chosen.push(projectId)
    if (isAlone || chosen.length === MAX_PROJECTS) break
  }
  for (const projectId of chosen) queue.waiting.delete(projectId)
  return chosen
}

/** Halves the number of events that a failed project may dispatch, and doubles its pause. */
function fail(queue: DispatchQueue, projectId: string): void {
  const { failures, maxEvents } = getState(queue, projectId)
  queue.waiting.add(projectId)
  defer(queue, projectId, {
    failures: failures + 1,
    maxEvents: Math.max(1, maxEvents >> 1),
    dueMs: soon(Math.min(MAX_PAUSE_MS, 100 * 2 ** failures)),
  })
}
