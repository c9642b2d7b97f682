import type { Pool } from '../db/pool.ts'
import { feedLagSeconds } from '../metrics.ts'
import type { KnownEvent } from '../events/fail-over-check.ts'
import type { Hub } from './hub.ts'
import { logFailure, readSlices } from './read-events.ts'

const POLL_MS = 1_000
const POLL_WITHOUT_HINTS_MS = 250
// Limits of one round, because all of its events are in memory.
const MAX_EVENTS = 500
const MAX_EVENTS_PER_LOG = 200
const MAX_BYTES = 4 * 1024 * 1024
const MAX_LOGS = 1_000
/** Characters to publish before the event loop may write to sockets. */
const YIELD_CHARACTERS = 128 * 1024

export interface LogTailerOptions {
  pool: Pool
  hub: Hub
  /** Returns true if hints from other processes arrive. */
  isListening(): boolean
  /** Returns true if access was checked recently enough to send events. */
  isAllowed(): boolean
  /** Called with each published event. */
  onPublished(event: KnownEvent): void
}

/**
 * Reads and publishes new events of the followed projects. A hint starts a round, which reads the
 * logs with one statement. A poll every second makes up for lost hints. One round runs at a time,
 * and logs with a hint come before polled ones.
 */
export function startLogTailer({
  pool,
  hub,
  isListening,
  isAllowed,
  onPublished,
}: LogTailerOptions) {
  const hinted = new Set<string>()
  const polled = new Set<string>()
  let isAllHinted = false
  let running: Promise<void> | undefined
  let isStopped = false
  let polledMs = performance.now()
  let rounds = 0

  function wake(projectIds: Iterable<string> | 'all'): void {
    if (projectIds === 'all') isAllHinted = true
    else for (const projectId of projectIds) hinted.add(projectId)
    running ??= run()
  }

  async function run(): Promise<void> {
    // `wake` must assign `running` before this ends.
    await Promise.resolve()
    try {
      while (!isStopped && isAllowed() && (isAllHinted || hinted.size + polled.size > 0))
        await round()
    } catch (error) {
      // The next poll retries.
      logFailure('Reading new events failed', error)
    } finally {
      running = undefined
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
    const slices = [...followed.slice(first), ...followed.slice(0, first)].map(
      ({ projectId, position, userNames, wantsLexemes }) => ({
        projectId,
        after: position,
        until: Number.MAX_SAFE_INTEGER,
        userNames,
        wantsLexemes,
      }),
    )
    const bounds = { each: MAX_EVENTS_PER_LOG, most: MAX_EVENTS, maxBytes: MAX_BYTES }
    const { events, isCut } = await pool.run(sql => readSlices(sql, slices, bounds))
    const needsVersions = new Map(followed.map(one => [one.projectId, one.needsVersion]))
    const counts = new Map<string, number>()
    let characters = 0
    for (const event of events) {
      const { projectId } = event
      const isPublished = hub.publish(event, needsVersions.get(projectId) ?? 0)
      if (!isPublished) hinted.add(projectId)
      else {
        feedLagSeconds.observe(Math.max(0, Date.now() - event.createdAtMs) / 1000)
        onPublished(event)
      }
      const count = (counts.get(projectId) ?? 0) + 1
      counts.set(projectId, count)
      if (count === MAX_EVENTS_PER_LOG) hinted.add(projectId)
      characters += event.text.length
      if (characters > YIELD_CHARACTERS) {
        characters = 0
        await new Promise<void>(resolve => setImmediate(resolve))
      }
    }
    if (isCut) for (const { projectId } of followed) hinted.add(projectId)
  }

  const timer = setInterval(() => {
    const everyMs = isListening() ? POLL_MS : POLL_WITHOUT_HINTS_MS
    if (performance.now() - polledMs >= everyMs - POLL_WITHOUT_HINTS_MS / 2) wake('all')
  }, POLL_WITHOUT_HINTS_MS)

  return {
    /** Reads the logs of these projects, or of all followed projects. */
    wake,
    async stop(): Promise<void> {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
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
