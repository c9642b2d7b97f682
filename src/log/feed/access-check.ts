import { createWakeUpSignal } from '../../base/wake-up.ts'
import type { Pool } from '../../database/pool.ts'
import { checkAccess, renewEpoch } from './access.ts'
import type { Hub } from './hub.ts'
import { logFailure } from './read-events.ts'
import type { Sockets } from './sockets.ts'

const CHECK_MS = 1_000
/** Events are sent only if access was checked within this time. */
const FRESH_MS = 5_000

interface AccessCheckOptions {
  pool: Pool
  hubs: readonly Hub[]
  sockets: Sockets
  epoch: string
  everyMs?: number | undefined
}

/**
 * Checks every second, and on request, and closes the sockets whose access has ended. A new epoch
 * closes all of them. A log that ends before the position of this process has lost events, and
 * begins an epoch.
 */
export function startAccessCheck({
  pool,
  hubs,
  sockets,
  epoch,
  everyMs = CHECK_MS,
}: AccessCheckOptions) {
  const wakeUp = createWakeUpSignal()
  let lag = 0
  let succeededMs = performance.now()
  let isStopped = false

  async function check(): Promise<void> {
    if (sockets.size === 0) return
    const { grants, revoke } = sockets.listGrants()
    const cursors = hubs
      .flatMap(hub => hub.listFollowed())
      .map(({ projectId, position }) => ({ projectId, after: position }))
    const found = await pool.run(sql => checkAccess(sql, grants, cursors))
    lag = found.lag
    for (const index of found.revoked) revoke(index)
    if (found.epoch !== epoch) {
      epoch = found.epoch
      sockets.renew()
    } else if (found.hasLost) await pool.run(sql => renewEpoch(sql, epoch))
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      const startedMs = performance.now()
      wakeUp.sendIn(everyMs)
      try {
        await check()
        succeededMs = startedMs
      } catch (error) {
        logFailure('Checking access failed', error)
      }
      await wakeUp.sleep()
    }
  }

  const running = run()
  return {
    /** Starts a check, after the running one if any. */
    checkNow: wakeUp.send,
    /** True if a check that succeeded began recently. */
    get isFresh() {
      return performance.now() - succeededMs < FRESH_MS
    },
    get epoch() {
      return epoch
    },
    /** The events that are not published yet in the log that is the furthest behind. */
    get lag() {
      return lag
    },
    async stop(): Promise<void> {
      isStopped = true
      wakeUp.send()
      await running
    },
  }
}
