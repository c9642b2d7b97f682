import type { Pool } from '../db/pool.ts'
import type { Tx } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import {
  ensureCursors,
  findProjectsWithNewEvents,
  advanceCursors,
  lockRanges,
  limitRanges,
  type LockedRange,
} from './cursors.ts'
import type { DeliveryKind, KindName } from './kind.ts'
import { createWakeUpSignal } from '../wake-up.ts'

const POLL_MS = 1_000
/** Events and projects of one transaction. */
const MAX_EVENTS = 500
const MAX_PROJECTS = 200
/** After this time another dispatcher has committed what it saw of a project. */
const CONTENDED_MS = 25
/** Projects without targets are dispatched at this interval: more often would cost as much as their appends. */
const NO_TARGETS_MS = 250
const MAX_PAUSE_MS = 30_000
const MAX_KNOWN = 100_000
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

const log = logger('outbox')

interface DispatcherOptions {
  pool: Pool
  kinds: readonly DeliveryKind[]
  /** Called when a kind has new deliveries, or another process has surely written some. */
  onDispatched(kind: KindName): void
}

/** The projects that a kind has to dispatch. Times are of performance.now. */
interface Backlog {
  kind: DeliveryKind
  waiting: Set<string>
  /** Projects that have a cursor. */
  known: Set<string>
  /** When projects are looked at again whose cursor another dispatcher may hold, and those without targets. */
  contended: Map<string, number>
  withoutTargets: Map<string, number>
  /** Projects that have failed. Each is dispatched alone, fewer events at a time, after a pause. */
  failing: Map<string, { maxEvents: number; failures: number; atMs: number }>
  /** Where the poll goes on. */
  after: string
}

/** Turns the logs of projects into deliveries, going on from cursors that all processes share. */
export function startDispatcher({ pool, kinds, onDispatched }: DispatcherOptions) {
  const wakeUp = createWakeUpSignal()
  const backlogs = kinds.map((kind): Backlog => ({
    kind,
    waiting: new Set(),
    known: new Set(),
    contended: new Map(),
    withoutTargets: new Map(),
    failing: new Map(),
    after: FIRST_ID,
  }))
  let pollDueMs = 0
  let lagMs = 0
  let isStopped = false

  async function run(): Promise<void> {
    while (!isStopped) {
      const startedMs = performance.now()
      if (startedMs >= pollDueMs) {
        pollDueMs = startedMs + POLL_MS
        for (const backlog of backlogs) await poll(backlog)
      }
      let isBusy = false
      for (const backlog of backlogs) {
        const projectIds = takeWaiting(backlog)
        if (projectIds.length === 0 || isStopped) continue
        isBusy = true
        await dispatch(backlog, projectIds)
      }
      if (isBusy || isStopped) continue
      wakeUp.sendIn(Math.min(pollDueMs, ...backlogs.map(findDueMs)) - performance.now())
      await wakeUp.sleep()
    }
  }

  async function poll(backlog: Backlog): Promise<void> {
    try {
      const { projectIds, last } = await pool.run(sql =>
        findProjectsWithNewEvents(sql, { kind: backlog.kind.name, after: backlog.after }),
      )
      backlog.after = last ?? FIRST_ID
      for (const projectId of projectIds) backlog.waiting.add(projectId)
      if (backlog.waiting.size === 0) lagMs = 0
    } catch (error) {
      log.warning('The poll for new events runs again in a second: {reason}', {
        kind: backlog.kind.name,
        reason: toReason(error),
      })
    }
  }

  async function dispatch(backlog: Backlog, projectIds: string[]): Promise<void> {
    const { kind, known, withoutTargets, failing } = backlog
    const maxEvents = failing.get(projectIds[0] ?? '')?.maxEvents ?? MAX_EVENTS
    try {
      const unknown = projectIds.filter(projectId => !known.has(projectId))
      const { taken, events, deliveries } = await pool.run(async sql => {
        if (unknown.length > 0) {
          await ensureCursors(sql, { kind: kind.name, projectIds: unknown })
        }
        return sql.begin(tx => dispatchSome(tx, { kind, projectIds, maxEvents }))
      })
      if (known.size > MAX_KNOWN) known.clear()
      if (withoutTargets.size > MAX_KNOWN) withoutTargets.clear()
      for (const projectId of unknown) known.add(projectId)
      for (const projectId of projectIds) recover(backlog, projectId)
      lagMs = Math.max(0, ...taken.map(run => run.lagMs))
      const wasContended = scheduleNextLook(backlog, projectIds, taken, events)
      if (deliveries > 0 || wasContended) onDispatched(kind.name)
    } catch (error) {
      // The events or targets of one project must not hold up the others.
      for (const projectId of projectIds) fail(backlog, projectId)
      log.warning('Events wait to be dispatched: {reason}', {
        kind: kind.name,
        projects: projectIds.length,
        reason: toReason(error),
      })
    }
  }

  const running = run()
  return {
    /** Says that these projects have new events. Without it, the poll finds them, a second later for every 5,000 projects. */
    wake(projectIds: Iterable<string>): void {
      let dueMs = Infinity
      for (const backlog of backlogs) {
        for (const projectId of projectIds) {
          backlog.waiting.add(projectId)
          backlog.contended.delete(projectId)
          dueMs = Math.min(dueMs, toDueMs(backlog, projectId))
        }
      }
      const waitMs = dueMs - performance.now()
      if (waitMs <= 0) wakeUp.send()
      else wakeUp.sendIn(waitMs)
    },
    /** How long the oldest event of the last transaction had waited for it; 0 when nothing waits. */
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

/** Dispatches at most `maxEvents` events of these projects; skips those of projects without targets. */
async function dispatchSome(
  tx: Tx,
  options: { kind: DeliveryKind; projectIds: readonly string[]; maxEvents: number },
): Promise<{ taken: LockedRange[]; events: number; deliveries: number }> {
  const { kind, maxEvents } = options
  const taken = await lockRanges(tx, options)
  const skipped = taken.filter(({ hasTargets }) => !hasTargets)
  if (skipped.length > 0) {
    await advanceCursors(tx, kind.name, limitRanges(skipped, Number.MAX_SAFE_INTEGER))
  }
  const runs = limitRanges(
    taken.filter(({ hasTargets }) => hasTargets),
    maxEvents,
  )
  if (runs.events === 0) return { taken, events: 0, deliveries: 0 }
  const deliveries = await kind.dispatch(tx, runs)
  await advanceCursors(tx, kind.name, runs)
  return { taken, events: runs.events, deliveries }
}

/**
 * Decides when these projects are looked at again. Returns whether one whose cursor was held is looked at for the second
 * time: its holder has dispatched some events by now.
 */
function scheduleNextLook(
  { waiting, contended, withoutTargets }: Backlog,
  projectIds: readonly string[],
  taken: readonly LockedRange[],
  events: number,
): boolean {
  const heard = taken.filter(({ hasTargets }) => hasTargets)
  const behind = heard.reduce((sum, run) => sum + Number(run.toSeq - run.fromSeq), 0)
  for (const { projectId, hasTargets } of taken) {
    contended.delete(projectId)
    if (!hasTargets) withoutTargets.set(projectId, soon(NO_TARGETS_MS))
    else withoutTargets.delete(projectId)
    // Projects that were not reached, or have more events, come again.
    if (hasTargets && behind > events) waiting.add(projectId)
  }
  const seen = new Set(taken.map(({ projectId }) => projectId))
  const missed = projectIds.filter(projectId => !seen.has(projectId))
  // The holder moves a cursor only as far as it saw.
  const rest = missed.filter(projectId => !contended.delete(projectId))
  for (const projectId of rest) {
    contended.set(projectId, soon(CONTENDED_MS))
    waiting.add(projectId)
  }
  return rest.length < missed.length
}

function soon(ms: number): number {
  return performance.now() + ms
}

/** When a project that waits may be dispatched. */
function toDueMs({ failing, contended, withoutTargets }: Backlog, projectId: string): number {
  return Math.max(
    failing.get(projectId)?.atMs ?? 0,
    contended.get(projectId) ?? 0,
    withoutTargets.get(projectId) ?? 0,
  )
}

/** When the first of the projects that wait is due. */
function findDueMs(backlog: Backlog): number {
  let dueMs = Infinity
  for (const projectId of backlog.waiting) dueMs = Math.min(dueMs, toDueMs(backlog, projectId))
  return dueMs
}

/** The next projects to dispatch together; one that has failed is on its own. */
function takeWaiting(backlog: Backlog): string[] {
  const { waiting, failing } = backlog
  const nowMs = performance.now()
  const chosen: string[] = []
  for (const projectId of waiting) {
    if (toDueMs(backlog, projectId) > nowMs) continue
    const isFailing = failing.has(projectId)
    if (isFailing && chosen.length > 0) continue
    chosen.push(projectId)
    if (isFailing || chosen.length === MAX_PROJECTS) break
  }
  for (const projectId of chosen) waiting.delete(projectId)
  return chosen
}

/** Halves the events of a project that has failed, and doubles its pause. */
function fail({ failing, waiting }: Backlog, projectId: string): void {
  const before = failing.get(projectId) ?? { maxEvents: MAX_EVENTS, failures: 0 }
  failing.set(projectId, {
    maxEvents: Math.max(1, before.maxEvents >> 1),
    failures: before.failures + 1,
    atMs: soon(Math.min(MAX_PAUSE_MS, 100 * 2 ** before.failures)),
  })
  waiting.add(projectId)
}

/** Doubles the events of a project after a success, until it is dispatched together with the others again. */
function recover({ failing }: Backlog, projectId: string): void {
  const before = failing.get(projectId)
  if (!before) return
  if (before.maxEvents >= MAX_EVENTS) failing.delete(projectId)
  else failing.set(projectId, { maxEvents: before.maxEvents * 2, failures: 0, atMs: 0 })
}
