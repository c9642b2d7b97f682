import type { Pool } from '../../database/pool.ts'
import { toReason } from '../../base/errors.ts'
import { NIL_UUID } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { claimDeliveries, findWaitingTargets, MAX_TARGETS_PER_SCAN, POLL_MS } from './claims.ts'
import { createFairQueue, type FairQueue, type WaitingTarget } from './fair-queue.ts'
import { createInFlightDeliveries } from './in-flight.ts'
import type { ClaimedDelivery, DeliveryKind, NewLease } from './delivery-kind.ts'
import { createWakeUpSignal } from '../../base/wake-up.ts'

/** The most concurrent attempts, not counting those that hang. */
const CONCURRENCY = 256
/** With more unsettled deliveries than this, the worker claims no more. */
const MAX_UNSETTLED = 2_000
/**
 * With few free slots, the worker waits this long for more of them. Claims become fewer and larger.
 */
const GATHER_MS = 5

/**
 * Scans that take longer may use at most a tenth of the time, but there is one at least every
 * second.
 */
const SHORT_SCAN_MS = 25
const SCAN_PAUSE_FACTOR = 9
/** At this interval a scan starts without a lower bound. */
const FULL_SCAN_MS = 30_000

const log = logger('outbox')

/** A reservation of a worker's free slots. Until its end the worker claims nothing. */
export interface Reservation {
  lease: NewLease
  /** Ends the reservation, and begins the deliveries that were committed with the lease. */
  end(leased: readonly ClaimedDelivery[]): void
}

/** Starts the worker that sends the deliveries of one kind. */
export function startDeliveryWorker({ pool, kind }: { pool: Pool; kind: DeliveryKind }) {
  const wakeUp = createWakeUpSignal()
  const queue = createFairQueue(kind.perTarget)
  const inFlight = createInFlightDeliveries({ pool, kind, queue, onFree: wakeUp.send })
  const scan = createTargetScan({ pool, kind, queue })
  let isStopped = false
  let claimedMs = 0
  let isClaiming = false
  let reserved: PromiseWithResolvers<void> | undefined

  async function run(): Promise<void> {
    while (!isStopped) {
      try {
        isClaiming = true
        if (await claim()) continue
      } catch (error) {
        log.warning('Deliveries could not be claimed. The next try is in a second: {reason}', {
          kind: kind.name,
          reason: toReason(error),
        })
        wakeUp.sendIn(scan.pause())
      } finally {
        isClaiming = false
      }
      await wakeUp.sleep()
    }
  }

  /**
   * Claims as many deliveries as there are free slots. Returns true if the next claim can follow at
   * once.
   */
  async function claim(): Promise<boolean> {
    // The free slots are reserved. The end of the reservation wakes this loop.
    if (reserved) return false
    const nowMs = performance.now()
    if (nowMs >= scan.nextMs) await scan.run(nowMs)
    wakeUp.sendIn(scan.nextMs - performance.now())
    const free = CONCURRENCY - inFlight.slotsInUse
    if (free <= 0 || inFlight.unsettled > MAX_UNSETTLED || !queue.hasDue) return false
    const requests = queue.next(free, performance.now())
    if (requests.length === 0) return false
    const room = Math.min(
      free,
      requests.reduce((sum, request) => sum + request.room, 0),
    )
    const leftMs = claimedMs + GATHER_MS - performance.now()
    if (room < inFlight.slotsInUse / 2 && leftMs > 0) {
      wakeUp.sendIn(leftMs)
      return false
    }
    const { name, leaseMs } = kind
    const leasedMs = performance.now()
    const claimed = await pool.run(sql =>
      claimDeliveries(sql, { kind: name, requests, maxDeliveries: free, leaseMs }),
    )
    claimedMs = performance.now()
    const counts = new Map<string, number>()
    for (const { targetId } of claimed) counts.set(targetId, (counts.get(targetId) ?? 0) + 1)
    queue.claimed(requests, { counts, isAll: claimed.length < free })
    inFlight.add(claimed, leasedMs)
    return true
  }

  function reserve(): Reservation | undefined {
    const free = CONCURRENCY - inFlight.slotsInUse
    // A scan that is due goes first. Otherwise dispatches in a row would hold up retries.
    const isScanDue = performance.now() >= scan.nextMs
    const isIdle =
      scan.isComplete && !isScanDue && !isClaiming && !reserved && !queue.hasDue && free > 0
    if (!isIdle || isStopped || inFlight.unsettled > MAX_UNSETTLED) return undefined
    const { resolve } = (reserved = Promise.withResolvers<void>())
    const leasedMs = performance.now()
    return {
      lease: {
        token: crypto.randomUUID(),
        leaseMs: kind.leaseMs,
        free,
        perTarget: kind.perTarget,
        rooms: queue.listRooms(performance.now()),
      },
      end(leased) {
        reserved = undefined
        inFlight.add(leased, leasedMs)
        wakeUp.send()
        resolve()
      },
    }
  }

  const running = run()
  return {
    /**
     * Reserves the free slots for deliveries that are about to be inserted. Returns undefined if
     * there are none, or if other deliveries are due, which then go first.
     */
    reserve,
    /** Announces new deliveries. Without this call the poll finds them within a second. */
    wake(): void {
      scan.request()
      wakeUp.send()
    },
    /**
     * How long the oldest due delivery has been overdue, in ms. Deliveries of targets that wait, or
     * get one attempt at a time, are left out.
     */
    get oldestMs() {
      return scan.oldestMs
    },
    /** The number of running attempts. */
    get running() {
      return inFlight.running
    },
    /**
     * Stops claiming, waits up to `graceMs` for running attempts, and releases the other
     * deliveries.
     */
    async stop(graceMs: number): Promise<void> {
      isStopped = true
      wakeUp.send()
      await running
      await reserved?.promise
      await inFlight.stop(graceMs)
    },
  }
}

interface TargetScanOptions {
  pool: Pool
  kind: DeliveryKind
  queue: FairQueue
}

/**
 * Finds the targets with due deliveries for the queue, and when the next delivery is due. All times
 * are those of `performance.now()`.
 */
function createTargetScan({ pool, kind, queue }: TargetScanOptions) {
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
