import { toReason } from '../../base/errors.ts'
import { NIL_UUID, toId } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { createWakeUpSignal } from '../../base/wake-up.ts'
import type { Pool } from '../../database/pool.ts'
import {
  findUnindexed,
  indexNextEvents,
  listStaleSegments,
  listUnindexed,
  MAX_PART_BYTES,
  MAX_STALE,
  MIN_EVENTS,
  refreshSegment,
  SEGMENT_EVENTS,
  type StaleSegment,
} from './search-index.ts'

/** How long new events wait, so that many are indexed together. */
const WAIT_MS = 500
/** A project whose segments fill up faster than this is indexed in complete segments only. */
const FAST_SEGMENT_MS = 1_000
/** The interval of polls for events that another process appended before it stopped. */
const POLL_MS = 5_000
const STALE_MS = 60_000
/** The most projects that one query looks at. */
const MAX_PROJECTS = 1_000
const MIN_PART_BYTES = 50_000
const MAX_PAUSE_MS = 30_000

const log = logger('indexer')

export interface Indexer {
  /** Announces that these projects have new events. Without this call the poll finds them. */
  wake(projectIds: Iterable<string>): void
  stop(): Promise<void>
}

/** A project whose indexing failed. It is tried again after a pause, with less text at a time. */
interface Failure {
  failures: number
  maxBytes: number
}

/**
 * Starts the indexer. It follows the log of each project and adds its events to the search index.
 * Organizations take turns, and a turn is one part of the index. Several processes can run it: the
 * cursor of a project lets one of them work on it at a time.
 */
export function startIndexer({ pool }: { pool: Pool }): Indexer {
  const wakeUp = createWakeUpSignal()
  /** When to look at a project, as a time of `performance.now()`. */
  const due = new Map<string, number>()
  const turns = createTurns()
  const completedMs = new Map<string, number>()
  const failing = new Map<string, Failure>()
  let stale: StaleSegment[] = []
  let hasMoreStale = false
  let pollDueMs = 0
  let staleDueMs = performance.now() + STALE_MS
  let after = NIL_UUID
  let isStopped = false

  async function run(): Promise<void> {
    while (!isStopped) {
      if (performance.now() >= pollDueMs) await attempt(poll)
      if (performance.now() >= staleDueMs) await attempt(findStale)
      await attempt(lookAtDue)
      const projectId = turns.take()
      if (projectId !== undefined) await index(projectId)
      const segment = stale.shift()
      if (segment) await attempt(() => refresh(segment))
      if (projectId !== undefined || segment || isStopped) continue
      wakeUp.sendIn(findDueMs() - performance.now())
      await wakeUp.sleep()
    }
  }

  function findDueMs(): number {
    let firstMs = Math.min(pollDueMs, staleDueMs)
    for (const dueMs of due.values()) firstMs = Math.min(firstMs, dueMs)
    return firstMs
  }

  async function attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!isStopped) log.warning('Indexing is tried again: {reason}', { reason: toReason(error) })
    }
  }

  async function poll(): Promise<void> {
    pollDueMs = performance.now() + POLL_MS
    const { projectIds, last } = await pool.run(sql => findUnindexed(sql, after))
    after = last ?? NIL_UUID
    for (const projectId of projectIds) if (!due.has(projectId)) due.set(projectId, 0)
  }

  async function findStale(): Promise<void> {
    staleDueMs = performance.now() + STALE_MS
    if (stale.length > 0) return
    stale = await pool.run(listStaleSegments)
    hasMoreStale = stale.length === MAX_STALE
  }

  async function refresh(segment: StaleSegment): Promise<void> {
    const isDone = await pool.run(sql => refreshSegment(sql, segment))
    if (isDone && hasMoreStale && stale.length === 0) staleDueMs = 0
  }

  /** Gives a turn to the due projects that have enough events. */
  async function lookAtDue(): Promise<void> {
    const nowMs = performance.now()
    const projectIds: string[] = []
    for (const [projectId, dueMs] of due) {
      if (dueMs <= nowMs) projectIds.push(projectId)
      if (projectIds.length === MAX_PROJECTS) break
    }
    if (projectIds.length === 0) return
    for (const projectId of projectIds) due.delete(projectId)
    try {
      const found = await pool.run(sql => listUnindexed(sql, projectIds))
      for (const { projectId, organizationId } of found) turns.add(organizationId, projectId)
    } catch (error) {
      for (const projectId of projectIds) lookAgain(projectId, WAIT_MS)
      throw error
    }
  }

  async function index(projectId: string): Promise<void> {
    const { maxBytes = MAX_PART_BYTES, failures = 0 } = failing.get(projectId) ?? {}
    const isFast = performance.now() - (completedMs.get(projectId) ?? -Infinity) < FAST_SEGMENT_MS
    if (!isFast) completedMs.delete(projectId)
    try {
      const minEvents = isFast ? SEGMENT_EVENTS : MIN_EVENTS
      const result = await pool.run(sql => indexNextEvents(sql, projectId, { minEvents, maxBytes }))
      failing.delete(projectId)
      // Another process indexes the project, up to the end of the log that it saw.
      if (!result) return lookAgain(projectId, WAIT_MS)
      const { indexedSeq, indexed, lastSeq } = result
      const missing = Number(lastSeq - indexedSeq)
      const isComplete = (indexedSeq + 1n) % BigInt(SEGMENT_EVENTS) === 0n
      if (indexed > 0 && isComplete) completedMs.set(projectId, performance.now())
      if (missing > 0) lookAgain(projectId, missing >= SEGMENT_EVENTS ? 0 : WAIT_MS)
    } catch (error) {
      if (isStopped) return
      failing.set(projectId, {
        failures: failures + 1,
        maxBytes: Math.max(MIN_PART_BYTES, maxBytes >> 1),
      })
      lookAgain(projectId, Math.min(MAX_PAUSE_MS, 250 * 2 ** failures))
      log.warning('Events could not be indexed, and are tried again: {reason}', {
        project: toId('prj', projectId),
        reason: toReason(error),
      })
    }
  }

  function lookAgain(projectId: string, ms: number): void {
    due.set(projectId, performance.now() + ms)
  }

  const running = run()
  return {
    wake(projectIds) {
      const dueMs = performance.now() + WAIT_MS
      for (const projectId of projectIds) if (!due.has(projectId)) due.set(projectId, dueMs)
      wakeUp.sendIn(WAIT_MS)
    },
    async stop() {
      isStopped = true
      wakeUp.send()
      await running
    },
  }
}

/** The projects that wait for a turn. Organizations take turns, and so do the projects of each. */
function createTurns() {
  const organizations = new Map<string, Set<string>>()
  return {
    add(organizationId: string, projectId: string): void {
      const projects = organizations.get(organizationId)
      if (projects) projects.add(projectId)
      else organizations.set(organizationId, new Set([projectId]))
    },
    /** Takes the next project; undefined when none waits. */
    take(): string | undefined {
      for (const [organizationId, projects] of organizations) {
        organizations.delete(organizationId)
        for (const projectId of projects) {
          projects.delete(projectId)
          if (projects.size > 0) organizations.set(organizationId, projects)
          return projectId
        }
      }
      return undefined
    },
  }
}
