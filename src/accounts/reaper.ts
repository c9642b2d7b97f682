import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../db/pool.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'

const EVERY_MS = 20_000
const BATCH = 1_000
const MAX_PAUSE_MS = 5_000

const log = logger('accounts')

/**
 * Clears away what is left of deleted projects and organizations, in batches of a thousand rows.
 * Between two it rests for as long as the last one took, so that others get at least half of the database.
 */
export function startReaper(pool: Pool): { stop(): Promise<void> } {
  const stopped = new AbortController()
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    try {
      await reap(pool, stopped.signal)
    } catch (error) {
      if (stopped.signal.aborted) return
      log.warning('Clearing away failed, it is tried again: {reason}', { reason: toReason(error) })
    } finally {
      running = undefined
    }
  }

  // At once, too: another process may have been stopped half-way.
  running = run()
  const timer = setInterval(() => (running ??= run()), EVERY_MS)
  timer.unref()
  return {
    async stop() {
      stopped.abort()
      clearInterval(timer)
      await running
    },
  }
}

/** Clears away everything that is deleted, unless another process is at it; when it is stopped, the rest stays for later. */
export async function reap(pool: Pool, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted) {
    const startedMs = performance.now()
    const [step] = await pool.run(sql => sql<[{ found: boolean }]>`select reap(${BATCH}) as found`)
    if (!step.found) return
    const pauseMs = Math.min(performance.now() - startedMs, MAX_PAUSE_MS)
    await sleep(pauseMs, undefined, { ...(signal && { signal }) })
  }
}
