import type { Pool } from '../db/pool.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { claimDeliveries, findWaitingTargets, MAX_TARGETS_PER_SCAN } from './claims.ts'
import { createFairQueue, type WaitingTarget } from './fair-queue.ts'
import { createInFlightDeliveries } from './in-flight.ts'
import type { DeliveryKind } from './kind.ts'
import { createWakeUpSignal } from '../wake-up.ts'

const POLL_MS = 1_000
const CONCURRENCY = 256
/** Deliveries whose outcome is not stored. Beyond it no more are claimed. */
const MAX_UNSETTLED = 2_000
/** When there is little room, the worker waits this long for more: fewer and bigger claims. */
const GATHER_MS = 5
/** Longer walks take no more than a tenth of the time, but one comes within a second. */
const SHORT_WALK_MS = 25
const WALK_PAUSES = 9
/** After this time a walk skips nothing. */
const FULL_WALK_MS = 30_000
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

const log = logger('outbox')

/** Makes the deliveries of one kind. */
export function startDeliveryWorker({ pool, kind }: { pool: Pool; kind: DeliveryKind }) {
  const wakeUp = createWakeUpSignal()
  const queue = createFairQueue(kind.perTarget)
  const inFlight = createInFlightDeliveries({ pool, kind, queue, onFree: wakeUp.send })
  const concurrency = kind.concurrency ?? CONCURRENCY
  let isStopped = false
  // Of performance.now: when a walk is due, and when one is allowed.
  let walkDueMs = 0
  let mayWalkMs = 0
  let claimedMs = 0
  let oldestDueMs = Infinity
  let after = FIRST_ID
  let floor: string | null = null
  let fullWalkMs = -Infinity

  async function run(): Promise<void> {
    while (!isStopped) {
      try {
        if (await claim()) continue
      } catch (error) {
        log.warning('Deliveries wait for the database: {reason}', {
          kind: kind.name,
          reason: toReason(error),
        })
        mayWalkMs = performance.now() + POLL_MS
        wakeUp.sendIn(POLL_MS)
      }
      await wakeUp.sleep()
    }
  }

  /** Claims what there is room for; returns whether there may be more to claim at once. */
  async function claim(): Promise<boolean> {
    const nowMs = performance.now()
    if (nowMs >= walkDueMs && nowMs >= mayWalkMs) await walk(nowMs)
    wakeUp.sendIn(Math.max(walkDueMs, mayWalkMs) - performance.now())
    const free = concurrency - inFlight.slotsInUse
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
    const claimed = await pool.run(sql =>
      claimDeliveries(sql, { kind: name, requests, most: free, leaseMs }),
    )
    claimedMs = performance.now()
    const counts = new Map<string, number>()
    for (const { targetId } of claimed) counts.set(targetId, (counts.get(targetId) ?? 0) + 1)
    queue.claimed(requests, { counts, isAll: claimed.length < free })
    inFlight.add(claimed)
    return true
  }

  /** Finds the targets with due deliveries, and when the next one will be due. */
  async function walk(startedMs: number): Promise<void> {
    walkDueMs = startedMs + POLL_MS
    const isWhole = after === FIRST_ID
    if (isWhole && startedMs - fullWalkMs > FULL_WALK_MS) {
      floor = null
      fullWalkMs = startedMs
    }
    const found = await pool.run(sql => findWaitingTargets(sql, { kind: kind.name, after, floor }))
    const endedMs = performance.now()
    queue.update(found, endedMs)
    const isCut = found.length === MAX_TARGETS_PER_SCAN
    after = (isCut && found.at(-1)?.targetId) || FIRST_ID
    const first = found.reduce<WaitingTarget | undefined>(
      (one, other) => (one && one.dueInMs <= other.dueInMs ? one : other),
      undefined,
    )
    // A part of the targets says nothing about the others.
    if (isCut || !isWhole) floor = null
    else if (first) floor = first.floor
    const isLate = ({ targetId, dueInMs }: WaitingTarget) =>
      dueInMs <= 0 && !queue.isPaused(targetId, endedMs)
    oldestDueMs = endedMs + Math.min(Infinity, ...found.filter(isLate).map(one => one.dueInMs))
    const next = Math.min(...found.map(({ dueInMs }) => (dueInMs > 0 ? dueInMs : Infinity)))
    walkDueMs = isCut ? endedMs : Math.min(walkDueMs, endedMs + next)
    const tookMs = endedMs - startedMs
    mayWalkMs = endedMs + (tookMs > SHORT_WALK_MS ? Math.min(POLL_MS, WALK_PAUSES * tookMs) : 0)
  }

  const running = run()
  return {
    /** Says that there are new deliveries. Without it, the poll finds them within a second. */
    wake(): void {
      walkDueMs = 0
      wakeUp.send()
    },
    /** How long the oldest due delivery has been waiting, except for targets that are skipped. */
    get oldestMs() {
      return Math.max(0, performance.now() - oldestDueMs)
    },
    /** Attempts that run. */
    get running() {
      return inFlight.running
    },
    /** Claims nothing more, waits up to `graceMs` for the attempts that run, and hands back the rest. */
    async stop(graceMs: number): Promise<void> {
      isStopped = true
      wakeUp.send()
      await running
      await inFlight.stop(graceMs)
    },
  }
}
