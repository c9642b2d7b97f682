import type { Pool } from '../../database/pool.ts'
import { NIL_UUID } from '../../base/ids.ts'
import { findWaitingTargets, MAX_TARGETS_PER_SCAN } from './claims.ts'
import type { FairQueue, WaitingTarget } from './fair-queue.ts'
import type { DeliveryKind } from './kind.ts'

const POLL_MS = 1_000
/**
 * Scans that take longer may use at most a tenth of the time, but there is one at least every
 * second.
 */
const SHORT_SCAN_MS = 25
const SCAN_PAUSE_FACTOR = 9
/** At this interval a scan starts without a lower bound. */
const FULL_SCAN_MS = 30_000

interface TargetScanOptions {
  pool: Pool
  kind: DeliveryKind
  queue: FairQueue
}

/**
 * Finds the targets with due deliveries for the queue, and when the next delivery is due. All times
 * are those of `performance.now()`.
 */
export function createTargetScan({ pool, kind, queue }: TargetScanOptions) {
  let dueMs = 0
  let allowedMs = 0
  let oldestDueMs = Infinity
  let after = NIL_UUID
  // Scans skip deliveries that were due before this time. Null lets a scan see all of them.
  let floor: string | null = null
  let fullScanMs = -Infinity
  let isComplete = false

  return {
    /** When the next scan may start. */
    get nextMs() {
      return Math.max(dueMs, allowedMs)
    },
    /** True once a scan has found all targets that are due. */
    get isComplete() {
      return isComplete
    },
    /**
     * How long the oldest due delivery has been overdue, in ms. Deliveries of targets that wait, or
     * get one attempt at a time, are left out.
     */
    get oldestMs() {
      return Math.max(0, performance.now() - oldestDueMs)
    },
    /** Makes a scan due. */
    request(): void {
      dueMs = 0
    },
    /** Allows no scan for a while, after a failure. Returns for how many ms. */
    pause(): number {
      allowedMs = performance.now() + POLL_MS
      return POLL_MS
    },
    async run(startedMs: number): Promise<void> {
      dueMs = startedMs + POLL_MS
      const isFromStart = after === NIL_UUID
      if (isFromStart && startedMs - fullScanMs > FULL_SCAN_MS) {
        floor = null
        fullScanMs = startedMs
      }
      const found = await pool.run(sql =>
        findWaitingTargets(sql, { kind: kind.name, after, floor }),
      )
      const endedMs = performance.now()
      queue.update(found, endedMs)
      const isPartial = found.length === MAX_TARGETS_PER_SCAN
      isComplete = !isPartial && isFromStart
      after = (isPartial && found.at(-1)?.targetId) || NIL_UUID
      const earliest = found.reduce<WaitingTarget | undefined>(
        (one, other) => (one && one.dueInMs <= other.dueInMs ? one : other),
        undefined,
      )
      // An incomplete scan says nothing about the remaining targets.
      if (isPartial || !isFromStart) floor = null
      else if (earliest) floor = earliest.floor
      const isOverdue = ({ targetId, dueInMs, isSingle }: WaitingTarget) =>
        dueInMs <= 0 && !isSingle && !queue.isPaused(targetId, endedMs)
      oldestDueMs = endedMs + Math.min(Infinity, ...found.filter(isOverdue).map(one => one.dueInMs))
      const next = Math.min(...found.map(({ dueInMs }) => (dueInMs > 0 ? dueInMs : Infinity)))
      dueMs = isPartial ? endedMs : Math.min(dueMs, endedMs + next)
      const tookMs = endedMs - startedMs
      allowedMs =
        endedMs + (tookMs > SHORT_SCAN_MS ? Math.min(POLL_MS, SCAN_PAUSE_FACTOR * tookMs) : 0)
    },
  }
}
