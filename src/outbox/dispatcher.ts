import type { Pool } from '../db/pool.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { createBell } from './bell.ts'
import { ensureCursors, findNews, moveCursors, takeRuns, toRuns, type TakenRun } from './cursors.ts'
import type { DeliveryKind, KindName } from './kind.ts'

const POLL_MS = 1_000
/** Events in one transaction, and projects. */
const MAX_EVENTS = 500
const MAX_PROJECTS = 200
/** How long until somebody else, who holds a project's cursor, is surely done with what they saw. */
const HELD_MS = 25
/** How often a project that has nobody to tell is looked at: more would cost its appends as much as they do themselves. */
const QUIET_MS = 250
const MAX_PAUSE_MS = 30_000
const MAX_KNOWN = 100_000
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

const log = logger('outbox')

/** Turns the logs of projects into deliveries, from where it, or another process, has left off. */
export interface Dispatcher {
  /** Says that these projects have new events; without it, the poll finds them within a second, or a second for every 5,000 projects. */
  wake(projectIds: Iterable<string>): void
  /** How long the oldest event of the last transaction had waited for it; 0 when nothing waits. */
  readonly lagMs: number
  stop(): Promise<void>
}

export interface DispatcherOptions {
  pool: Pool
  kinds: readonly DeliveryKind[]
  /** Told when a kind has new deliveries, or somebody else has surely written some. */
  onDispatched(kind: KindName): void
}

/** What is left to be done for a kind. */
interface Work {
  kind: DeliveryKind
  waiting: Set<string>
  /** Projects that had their cursor. */
  known: Set<string>
  /** Projects whose cursor somebody else may have held, and when they are looked at again. */
  held: Map<string, number>
  /** Projects that had nobody to tell, and when they are looked at again. */
  quiet: Map<string, number>
  /** Projects that have failed: they are dispatched alone, fewer events at a time, after a pause. */
  careful: Map<string, { maxEvents: number; failures: number; atMs: number }>
  /** Where the poll goes on. */
  after: string
}

export function startDispatcher({ pool, kinds, onDispatched }: DispatcherOptions): Dispatcher {
  const bell = createBell()
  const works = kinds.map((kind): Work => ({
    kind,
    waiting: new Set(),
    known: new Set(),
    held: new Map(),
    quiet: new Map(),
    careful: new Map(),
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
        for (const work of works) await poll(work)
      }
      let isBusy = false
      for (const work of works) {
        const projectIds = takeWaiting(work)
        if (projectIds.length === 0 || isStopped) continue
        isBusy = true
        await dispatch(work, projectIds)
      }
      if (isBusy || isStopped) continue
      bell.ringIn(Math.min(pollDueMs, ...works.map(findDueMs)) - performance.now())
      await bell.sleep()
    }
  }

  async function poll(work: Work): Promise<void> {
    try {
      const { projectIds, last } = await pool.run(sql =>
        findNews(sql, { kind: work.kind.name, after: work.after }),
      )
      work.after = last ?? FIRST_ID
      for (const projectId of projectIds) work.waiting.add(projectId)
      if (work.waiting.size === 0) lagMs = 0
    } catch (error) {
      log.warning('New events are looked for again in a second: {reason}', {
        kind: work.kind.name,
        reason: toReason(error),
      })
    }
  }

  async function dispatch(work: Work, projectIds: string[]): Promise<void> {
    const { kind, known, held, quiet, waiting, careful } = work
    const maxEvents = careful.get(projectIds[0] ?? '')?.maxEvents ?? MAX_EVENTS
    try {
      const unknown = projectIds.filter(projectId => !known.has(projectId))
      const { heard, silent, events, deliveries } = await pool.run(async sql => {
        if (unknown.length > 0) {
          await ensureCursors(sql, { kind: kind.name, projectIds: unknown })
        }
        return sql.begin(async tx => {
          const [heard, silent] = partition(await takeRuns(tx, { kind, projectIds }))
          if (silent.length > 0) {
            await moveCursors(tx, kind.name, toRuns(silent, Number.MAX_SAFE_INTEGER))
          }
          const runs = toRuns(heard, maxEvents)
          if (runs.events === 0) return { heard, silent, events: 0, deliveries: 0 }
          const deliveries = await kind.dispatch(tx, runs)
          await moveCursors(tx, kind.name, runs)
          return { heard, silent, events: runs.events, deliveries }
        })
      })
      if (known.size > MAX_KNOWN) known.clear()
      for (const projectId of unknown) known.add(projectId)
      lagMs = Math.max(0, ...heard.map(run => run.lagMs))
      const behind = heard.reduce((sum, run) => sum + Number(run.toSeq - run.fromSeq), 0)
      // Whoever was not reached, and whoever has more, comes again.
      if (behind > events) for (const { projectId } of heard) waiting.add(projectId)
      for (const projectId of projectIds) recover(work, projectId)
      if (deliveries > 0) onDispatched(kind.name)
      if (quiet.size > MAX_KNOWN) quiet.clear()
      for (const { projectId } of heard) quiet.delete(projectId)
      for (const { projectId } of silent) quiet.set(projectId, soon(QUIET_MS))
      const seen = new Set([...heard, ...silent].map(({ projectId }) => projectId))
      for (const projectId of seen) held.delete(projectId)
      const missed = projectIds.filter(projectId => !seen.has(projectId))
      if (comeAgain(work, missed)) onDispatched(kind.name)
    } catch (error) {
      // No project, whatever its events or targets are, holds up the others.
      for (const projectId of projectIds) fail(work, projectId)
      log.warning('Events wait to be dispatched: {reason}', {
        kind: kind.name,
        projects: projectIds.length,
        reason: toReason(error),
      })
    }
  }

  /** A cursor that somebody else holds moves only as far as they saw: it is looked at once more. Returns whether one was. */
  function comeAgain({ waiting, held }: Work, missed: string[]): boolean {
    const rest = missed.filter(projectId => !held.delete(projectId))
    for (const projectId of rest) {
      held.set(projectId, soon(HELD_MS))
      waiting.add(projectId)
    }
    return rest.length < missed.length
  }

  function fail({ careful, waiting }: Work, projectId: string): void {
    const before = careful.get(projectId) ?? { maxEvents: MAX_EVENTS, failures: 0 }
    const pauseMs = Math.min(MAX_PAUSE_MS, 100 * 2 ** before.failures)
    careful.set(projectId, {
      maxEvents: Math.max(1, before.maxEvents >> 1),
      failures: before.failures + 1,
      atMs: soon(pauseMs),
    })
    waiting.add(projectId)
  }

  const running = run()
  return {
    wake(projectIds) {
      let dueMs = Infinity
      for (const work of works) {
        for (const projectId of projectIds) {
          work.waiting.add(projectId)
          work.held.delete(projectId)
          dueMs = Math.min(dueMs, toDueMs(work, projectId))
        }
      }
      const waitMs = dueMs - performance.now()
      if (waitMs <= 0) bell.ring()
      else bell.ringIn(waitMs)
    },
    get lagMs() {
      return lagMs
    },
    async stop() {
      isStopped = true
      bell.ring()
      await running
    },
  }
}

function soon(ms: number): number {
  return performance.now() + ms
}

/** Those that have somebody to tell, and those that have nobody. */
function partition(taken: readonly TakenRun[]): [heard: TakenRun[], silent: TakenRun[]] {
  return [
    taken.filter(({ hasTargets }) => hasTargets),
    taken.filter(({ hasTargets }) => !hasTargets),
  ]
}

/** From when on a project that waits may be dispatched. */
function toDueMs({ careful, held, quiet }: Work, projectId: string): number {
  return Math.max(
    careful.get(projectId)?.atMs ?? 0,
    held.get(projectId) ?? 0,
    quiet.get(projectId) ?? 0,
  )
}

/** When the first of those that wait is due. */
function findDueMs(work: Work): number {
  let dueMs = Infinity
  for (const projectId of work.waiting) dueMs = Math.min(dueMs, toDueMs(work, projectId))
  return dueMs
}

/** The next projects to dispatch together; one that has failed is on its own. */
function takeWaiting(work: Work): string[] {
  const { waiting, careful } = work
  const nowMs = performance.now()
  const chosen: string[] = []
  for (const projectId of waiting) {
    if (toDueMs(work, projectId) > nowMs) continue
    const trouble = careful.get(projectId)
    if (trouble && chosen.length > 0) continue
    chosen.push(projectId)
    if (trouble || chosen.length === MAX_PROJECTS) break
  }
  for (const projectId of chosen) waiting.delete(projectId)
  return chosen
}

/** After a success more events are tried at a time, until the project goes along with the others again. */
function recover({ careful }: Work, projectId: string): void {
  const trouble = careful.get(projectId)
  if (!trouble) return
  if (trouble.maxEvents >= MAX_EVENTS) careful.delete(projectId)
  else careful.set(projectId, { maxEvents: trouble.maxEvents * 2, failures: 0, atMs: 0 })
}
