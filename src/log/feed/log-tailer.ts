import type { Pool } from '../../database/pool.ts'
import { QUERY_CANCELED, sqlState } from '../../database/sql.ts'
import { feedLagSeconds } from '../../base/metrics.ts'
import type { Hub } from './hub.ts'
import { logFailure, readSlices } from './read-events.ts'

const POLL_MS = 1_000
const POLL_WITHOUT_HINTS_MS = 250
// Limits of one round, because all of its events are in memory.
const MAX_EVENTS = 500
const MAX_EVENTS_PER_LOG = 200
const MAX_BYTES = 4 * 1024 * 1024
const MAX_LOGS = 1_000
/** The names of users in filters. A project with more has a round of its own. */
const MAX_NAMES = 10_000
/** Changed events of one round. At their largest they stay below MAX_BYTES. */
const MAX_CHANGED = 8
const MAX_CHANGED_WAITING = 1_000
/** Characters to publish before the event loop may write to sockets. */
const YIELD_CHARACTERS = 128 * 1024

export interface LogTailerOptions {
  pool: Pick<Pool, 'run'>
  hub: Hub
  /** Returns true if hints from other processes arrive. */
  isListening(): boolean
  /** Returns true if access was checked recently enough to send events. */
  isAllowed(): boolean
}

export type LogTailer = ReturnType<typeof startLogTailer>

/**
 * Reads and publishes new and restored events of the followed projects. A hint starts a round,
 * which reads the logs with one statement. A poll every second makes up for lost hints. One round
 * runs at a time, and logs with a hint come before polled ones.
 */
export function startLogTailer({ pool, hub, isListening, isAllowed }: LogTailerOptions) {
  const hinted = new Set<string>()
  const polled = new Set<string>()
  /** The places of events that were deleted or restored. */
  const changed = new Map<string, { projectId: string; seq: number }>()
  let isAllHinted = false
  let running: Promise<void> | undefined
  let isStopped = false
  let polledMs = performance.now()
  let rounds = 0
  /** The most events of the next round. */
  let most = MAX_EVENTS

  function wake(projectIds: Iterable<string> | 'all'): void {
    if (projectIds === 'all') isAllHinted = true
    else for (const projectId of projectIds) hinted.add(projectId)
    running ??= run()
  }

  async function run(): Promise<void> {
    // `wake` must assign `running` before this ends.
    await Promise.resolve()
    try {
      while (
        !isStopped &&
        isAllowed() &&
        (isAllHinted || hinted.size + polled.size + changed.size > 0)
      ) {
        if (changed.size > 0) await publishRestored()
        await round()
      }
    } catch (error) {
      // The next poll retries. Fewer events take less time.
      if (sqlState(error) === QUERY_CANCELED) most = Math.ceil(most / 8)
      logFailure('Reading new events failed', error)
    } finally {
      running = undefined
    }
  }

  /**
   * Publishes the changed events that are not deleted. Hints of several servers come in any order,
   * so the database decides.
   */
  async function publishRestored(): Promise<void> {
    const chosen = [...changed].slice(0, MAX_CHANGED)
    const known = new Map(
      hub
        .listFollowed(new Set(chosen.map(([, { projectId }]) => projectId)))
        .map(one => [one.projectId, one]),
    )
    const slices = chosen.flatMap(([, { projectId, seq }]) => {
      const needs = known.get(projectId)
      return needs ? { ...needs, after: seq - 1, until: seq } : []
    })
    const bounds = { each: 1, most: MAX_CHANGED, maxBytes: MAX_BYTES }
    const { events } = await pool.run(sql => readSlices(sql, slices, bounds))
    const found = new Map(events.map(event => [toPlace(event), event]))
    for (const [place, one] of chosen) {
      // It has changed again since it was read.
      if (changed.get(place) !== one) continue
      const event = found.get(place)
      const needsVersion = known.get(one.projectId)?.needsVersion ?? 0
      if (!event || hub.restoreEvent(event, needsVersion)) changed.delete(place)
    }
  }

  async function round(): Promise<void> {
    if (isAllHinted) {
      isAllHinted = false
      polledMs = performance.now()
      for (const { projectId } of hub.listFollowed()) polled.add(projectId)
    }
    const chosen = new Set(takeFirst(hinted, MAX_LOGS))
    for (const projectId of takeFirst(polled, MAX_LOGS - chosen.size)) chosen.add(projectId)
    const followed = hub.listFollowed(chosen)
    if (followed.length === 0) return
    // Rotates the order, so that a busy project cannot fill every round.
    const first = rounds++ % followed.length
    let names = 0
    const taken = [...followed.slice(first), ...followed.slice(0, first)].filter(
      ({ projectId, users: { length } }) => {
        const isTaken = length === 0 || names === 0 || names + length <= MAX_NAMES
        if (isTaken) names += length
        else hinted.add(projectId)
        return isTaken
      },
    )
    const slices = taken.map(({ projectId, position, users, wantsText }) => ({
      projectId,
      after: position,
      until: Number.MAX_SAFE_INTEGER,
      users,
      wantsText,
    }))
    const each = Math.min(MAX_EVENTS_PER_LOG, most)
    const bounds = { each, most, maxBytes: MAX_BYTES }
    const { events, isCut } = await pool.run(sql => readSlices(sql, slices, bounds))
    most = Math.min(2 * most, MAX_EVENTS)
    const needsVersions = new Map(followed.map(one => [one.projectId, one.needsVersion]))
    const counts = new Map<string, number>()
    let characters = 0
    for (const event of events) {
      const { projectId } = event
      const isPublished = hub.publish(event, needsVersions.get(projectId) ?? 0)
      if (!isPublished) hinted.add(projectId)
      else feedLagSeconds.observe(Math.max(0, Date.now() - event.createdAtMs) / 1000)
      const count = (counts.get(projectId) ?? 0) + 1
      counts.set(projectId, count)
      if (count === each) hinted.add(projectId)
      characters += event.text.length
      if (characters > YIELD_CHARACTERS) {
        characters = 0
        await new Promise<void>(resolve => setImmediate(resolve))
      }
    }
    if (isCut) for (const { projectId } of taken) hinted.add(projectId)
  }

  const timer = setInterval(() => {
    const everyMs = isListening() ? POLL_MS : POLL_WITHOUT_HINTS_MS
    if (performance.now() - polledMs >= everyMs - POLL_WITHOUT_HINTS_MS / 2) wake('all')
  }, POLL_WITHOUT_HINTS_MS)

  return {
    /** Reads the logs of these projects, or of all followed projects. */
    wake,
    /** Reads an event that was deleted or restored, and publishes it if it is not deleted. */
    reread(projectId: string, seq: number): void {
      const place = toPlace({ projectId, seq })
      if (!hub.isFollowed(projectId) || changed.size >= MAX_CHANGED_WAITING) return
      changed.delete(place)
      changed.set(place, { projectId, seq })
      running ??= run()
    },
    async stop(): Promise<void> {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
}

function toPlace({ projectId, seq }: { projectId: string; seq: number }): string {
  return `${projectId} ${seq}`
}

/** Removes up to `count` members from a set and returns them. */
function takeFirst(from: Set<string>, count: number): string[] {
  const taken: string[] = []
  for (const one of from) {
    if (taken.length >= count) break
    taken.push(one)
    from.delete(one)
  }
  return taken
}
