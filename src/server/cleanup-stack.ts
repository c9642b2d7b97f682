import { toReason } from '../base/errors.ts'
import { untilAborted, withTimeout } from '../base/functions.ts'
import { logger } from '../base/log.ts'
import { retryWhileUnavailable } from '../database/reachable.ts'

const log = logger('server')
/** How long a start that failed or was aborted waits for what it has opened. */
const CLOSE_MS = 20_000
/** How long each resource gets after the time of all has passed. */
const LEAST_MS = 250

/** Functions that close opened resources, the last opened first. */
export interface CleanupStack {
  /**
   * Adds a resource. `name` is a noun, such as `the feed`. `close` resolves to false if it leaves
   * something unfinished. It gets at least `leastMs`, even if the others have used up the time.
   */
  push(name: string, close: () => Promise<boolean | void>, leastMs?: number): void
  /** Closes everything within `ms`. Returns the names of what was not closed. */
  runAll(ms: number): Promise<string[]>
}

/** A stop in which something was not closed. */
export class IncompleteStop extends Error {
  override readonly name = 'IncompleteStop'

  constructor(unfinished: readonly string[]) {
    super(`The stop is incomplete. Not finished: ${unfinished.join(', ')}.`)
  }
}

function createCleanupStack(): CleanupStack {
  const cleanups: { name: string; close(): Promise<boolean | void>; leastMs: number }[] = []
  let hasRun = false
  return {
    push(name, close, leastMs = LEAST_MS) {
      cleanups.push({ name, close, leastMs })
      // An aborted start can still open something.
      if (hasRun) void close().catch(() => {})
    },
    async runAll(ms) {
      hasRun = true
      const deadline = performance.now() + ms
      const unfinished: string[] = []
      for (const { name, close, leastMs } of cleanups.toReversed()) {
        const leftMs = Math.max(deadline - performance.now(), leastMs)
        // After a failure, the other resources are still closed.
        const isClosed = await withTimeout(leftMs, close(), () => false).catch((error: unknown) => {
          log.error('Could not close {name}: {reason}', { name, reason: toReason(error) })
          return false
        })
        if (isClosed === false) unfinished.push(name)
      }
      return unfinished
    },
  }
}

/**
 * Runs a start. If it fails, or the signal aborts it, closes what it has opened, and rejects; after
 * a failure of the database it begins anew. Rejects with an `IncompleteStop` if an aborted start
 * could not close everything.
 */
export function startOrClose<Started>(
  signal: AbortSignal | undefined,
  start: (cleanup: CleanupStack) => Promise<Started>,
): Promise<Started> {
  return retryWhileUnavailable(async () => {
    const cleanup = createCleanupStack()
    try {
      return await untilAborted(signal, start(cleanup))
    } catch (error) {
      if (signal?.aborted) log.info('Stopping during the start')
      const unfinished = await cleanup.runAll(CLOSE_MS)
      if (unfinished.length === 0) throw error
      const incomplete = new IncompleteStop(unfinished)
      log.error(incomplete.message)
      throw signal?.aborted ? incomplete : error
    }
  }, signal)
}
