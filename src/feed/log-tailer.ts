import type { Pool } from '../db/pool.ts'
import { feedLagSeconds } from '../metrics.ts'
import type { Hub } from './hub.ts'
import { logFailure, readSlices } from './read-events.ts'

const POLL_MS = 1_000
const POLL_WITHOUT_HINTS_MS = 250
// Bounds of one round: an event may have 256 KiB, and all events of a round are in memory.
const MAX_EVENTS = 500
const MAX_EVENTS_PER_LOG = 200
const MAX_LOGS = 1_000
/** Characters that are published before the event loop gets its turn to write to sockets. */
const YIELD_CHARACTERS = 128 * 1024

export interface LogTailerOptions {
  pool: Pool
  hub: Hub
  /** Whether hints of other processes arrive. */
  isListening(): boolean
  /** Whether access was checked within the last seconds. */
  isAllowed(): boolean
}

/**
 * Reads and publishes the new events of all followed projects. A hint starts a round of one statement, and a poll every
 * second replaces lost hints. One round runs at a time, and hinted logs come before polled ones.
 */
export function startLogTailer({ pool, hub, isListening, isAllowed }: LogTailerOptions) {
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
    // The caller sets `running` first.
    await Promise.resolve()
    try {
      while (!isStopped && isAllowed() && (isAllHinted || hinted.size + polled.size > 0))
        await round()
    } catch (error) {
      // The next poll tries again.
      logFailure('The feed could not read on', error)
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
    // Another project is first in each round, so that none fills every round.
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
    const bounds = { each: MAX_EVENTS_PER_LOG, most: MAX_EVENTS }
    const events = await pool.run(sql => readSlices(sql, slices, bounds))
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
      if (count === MAX_EVENTS_PER_LOG) hinted.add(projectId)
      characters += event.text.length
      if (characters > YIELD_CHARACTERS) {
        characters = 0
        await new Promise<void>(resolve => setImmediate(resolve))
      }
    }
    if (events.length >= MAX_EVENTS) for (const { projectId } of followed) hinted.add(projectId)
  }

  const timer = setInterval(() => {
    const everyMs = isListening() ? POLL_MS : POLL_WITHOUT_HINTS_MS
    if (performance.now() - polledMs >= everyMs - POLL_WITHOUT_HINTS_MS / 2) wake('all')
  }, POLL_WITHOUT_HINTS_MS)

  return {
    /** Reads the logs of these projects, or of all that are followed. */
    wake,
    async stop(): Promise<void> {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
}

/** Removes the first `most` members of a set, and returns them. */
function takeFirst(from: Set<string>, most: number): string[] {
  const taken: string[] = []
  for (const one of from) {
    if (taken.length >= most) break
    taken.push(one)
    from.delete(one)
  }
  return taken
}
