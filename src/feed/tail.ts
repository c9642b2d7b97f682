import type { Pool } from '../db/pool.ts'
import { feedLagSeconds } from '../metrics.ts'
import { logFailure } from './failure.ts'
import type { Hub } from './hub.ts'
import { readStretches } from './read.ts'

const EVERY_MS = 1_000
const DOWN_EVERY_MS = 250
// Of one round; an event may be 100 KB, and all of them are in memory at once.
const MOST = 500
const EACH = 200
const MOST_LOGS = 1_000
/** So much is handed to sockets in one turn of the event loop: what is sent must get its chance to leave. */
const TURN_CHARACTERS = 128 * 1024

export interface TailOptions {
  pool: Pool
  hub: Hub
  /** Whether hints of other processes arrive. */
  isListening(): boolean
  /** Whether it was seen within seconds that those who follow may do so. */
  isAllowed(): boolean
}

export interface Tail {
  /** Some projects may have news, or all of them. */
  wake(projectIds: Iterable<string> | 'all'): void
  stop(): Promise<void>
}

/**
 * Follows the logs of all projects that somebody of this process follows: by one statement on every hint, and every
 * second for the hints that were lost. One is under way at a time; what is hinted meanwhile makes the next, ahead of
 * logs that nobody has hinted at.
 */
export function startTail({ pool, hub, isListening, isAllowed }: TailOptions): Tail {
  const hinted = new Set<string>()
  const polled = new Set<string>()
  let isAllHinted = false
  let running: Promise<void> | undefined
  let isStopped = false
  let polledMs = performance.now()
  let turn = 0

  function wake(projectIds: Iterable<string> | 'all'): void {
    if (projectIds === 'all') isAllHinted = true
    else for (const projectId of projectIds) hinted.add(projectId)
    running ??= run()
  }

  async function run(): Promise<void> {
    // `running` is set before anything ends.
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
    const chosen = new Set(take(hinted, MOST_LOGS))
    for (const projectId of take(polled, MOST_LOGS - chosen.size)) chosen.add(projectId)
    const followed = hub.listFollowed(chosen)
    if (followed.length === 0) return
    // Another one is first each time, so that no project takes all the room of a round for good.
    const first = turn++ % followed.length
    const stretches = [...followed.slice(first), ...followed.slice(0, first)].map(
      ({ projectId, position, userNames, wantsWords }) => ({
        projectId,
        after: position,
        until: Number.MAX_SAFE_INTEGER,
        userNames,
        wantsWords,
      }),
    )
    const events = await pool.run(sql => readStretches(sql, stretches, { each: EACH, most: MOST }))
    const needs = new Map(followed.map(one => [one.projectId, one.needs]))
    const counts = new Map<string, number>()
    let characters = 0
    for (const event of events) {
      const { projectId } = event
      const isPublished = hub.publish(event, needs.get(projectId) ?? 0)
      if (!isPublished) hinted.add(projectId)
      else feedLagSeconds.observe(Math.max(0, Date.now() - event.createdAtMs) / 1000)
      const count = (counts.get(projectId) ?? 0) + 1
      counts.set(projectId, count)
      if (count === EACH) hinted.add(projectId)
      characters += event.text.length
      if (characters > TURN_CHARACTERS) {
        characters = 0
        await new Promise<void>(resolve => setImmediate(resolve))
      }
    }
    if (events.length >= MOST) for (const { projectId } of followed) hinted.add(projectId)
  }

  const timer = setInterval(() => {
    const everyMs = isListening() ? EVERY_MS : DOWN_EVERY_MS
    if (performance.now() - polledMs >= everyMs - DOWN_EVERY_MS / 2) wake('all')
  }, DOWN_EVERY_MS)

  return {
    wake,
    async stop() {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
}

/** Takes the first so many out of a set. */
function take(from: Set<string>, most: number): string[] {
  const taken: string[] = []
  for (const one of from) {
    if (taken.length >= most) break
    taken.push(one)
    from.delete(one)
  }
  return taken
}
