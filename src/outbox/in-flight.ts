import type { Pool } from '../db/pool.ts'
import { isUnavailable } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { deliveryAttempts, deliverySeconds, lostLeases } from '../metrics.ts'
import { withTimeout } from '../functions.ts'
import { extendLeases, type ClaimedDelivery } from './claims.ts'
import type { FairQueue } from './fair-queue.ts'
import type { DeliveryKind, DeliveryOutcome } from './kind.ts'
import { DATABASE_UNAVAILABLE, findEarlyOutcome, RELEASED, toSettlement } from './settlement.ts'
import { createSettler } from './settler.ts'

const TICK_MS = 250
/** A longer attempt hangs: another one may start in its place. */
const HANG_MS = 2_000
const MAX_HANGING = 1_024
/** How long an attempt may go on after its signal was aborted. */
const ABORT_MS = 2_000
/** How long a hidden event may be restored, and a little more. */
const RESTORE_MS = 15_000
const DRAIN_MS = 3_000

const log = logger('outbox')

interface InFlightOptions {
  pool: Pool
  kind: DeliveryKind
  queue: FairQueue
  /** Called when there is room for another attempt. */
  onFree(): void
}

interface Entry {
  delivery: ClaimedDelivery
  controller: AbortController
  startedMs: number
  /** When the lease was last extended. */
  leasedMs: number
  isHanging: boolean
  /** Whether its attempt has an outcome, or none is awaited any more. */
  isOver: boolean
}

/** The deliveries that a worker has claimed and not yet settled. */
export function createInFlightDeliveries({ pool, kind, queue, onFree }: InFlightOptions) {
  const entries = new Map<string, Entry>()
  let running = 0
  let hanging = 0
  let onIdle: (() => void) | undefined
  let isExtending = false

  const settler = createSettler({
    pool,
    onSettled(batch, held) {
      for (const { id, token } of batch) {
        if (!held.has(id)) lostLeases.inc({ kind: kind.name })
        if (entries.get(id)?.delivery.token === token) entries.delete(id)
      }
      onFree()
    },
  })
  const ticking = setInterval(tick, TICK_MS)
  ticking.unref()

  function add(delivery: ClaimedDelivery): void {
    const nowMs = performance.now()
    const before = entries.get(delivery.id)
    if (before) lose(before)
    const controller = new AbortController()
    const times = { startedMs: nowMs, leasedMs: nowMs }
    const entry: Entry = { delivery, controller, ...times, isHanging: false, isOver: false }
    entries.set(delivery.id, entry)
    running++
    queue.start(delivery.targetId)
    const { hiddenMs, isGone } = delivery
    if (hiddenMs !== null && hiddenMs < RESTORE_MS && !isGone) {
      end(entry)
      settler.add(delivery, { ...RELEASED, delayMs: RESTORE_MS - hiddenMs })
      return
    }
    const outcome = findEarlyOutcome(delivery)
    if (outcome) finish(entry, outcome)
    else void attempt(entry)
  }

  async function attempt(entry: Entry): Promise<void> {
    const { id, projectId, eventId, targetId, attempts, waitedMs } = entry.delivery
    const isLast = attempts + 1 >= kind.schedule.length
    const delivery = { id, projectId, eventId, targetId, attempt: attempts + 1, isLast, waitedMs }
    try {
      finish(entry, await kind.send(delivery, entry.controller.signal))
    } catch (error) {
      if (entry.isOver) return
      if (entry.controller.signal.aborted) return expire(entry)
      // Kinds promise that nothing was sent then.
      if (isUnavailable(error)) {
        log.warning('A delivery waits for the database: {reason}', { reason: toReason(error) })
        return finish(entry, DATABASE_UNAVAILABLE)
      }
      log.error('A delivery met a bug: {reason}', { kind: kind.name, ...toBug(error) })
      finish(entry, { kind: 'retry', reason: "The attempt met an error of the server's own" })
    }
  }

  function finish(entry: Entry, outcome: DeliveryOutcome): void {
    if (entry.isOver) return
    end(entry)
    const { targetId, attempts, ageMs, waitedMs } = entry.delivery
    const nowMs = performance.now()
    const tookMs = nowMs - entry.startedMs
    const latencyMs = ageMs + tookMs
    deliveryAttempts.inc({ kind: kind.name, outcome: outcome.kind })
    if (outcome.kind === 'done') deliverySeconds.observe({ kind: kind.name }, latencyMs / 1000)
    if (outcome.kind === 'postponed') queue.pause(targetId, outcome.afterMs, nowMs)
    const settlement = toSettlement({
      outcome,
      attempt: attempts + 1,
      schedule: kind.schedule,
      latencyMs,
      waitedMs: waitedMs + tookMs,
      random: Math.random(),
    })
    settler.add(entry.delivery, settlement)
  }

  function expire(entry: Entry): void {
    finish(entry, { kind: 'retry', reason: `No outcome within ${kind.timeoutMs} ms` })
  }

  /** Ends an attempt, whatever came of it, and makes room for another. */
  function end(entry: Entry): void {
    entry.isOver = true
    running--
    queue.end(entry.delivery.targetId)
    if (entry.isHanging) {
      hanging--
      queue.unhang(entry.delivery.targetId)
    }
    onFree()
    if (running === 0) onIdle?.()
  }

  /** Drops a delivery whose lease is over: the outcome of our attempt changes nothing any more. */
  function lose(entry: Entry): void {
    const { id } = entry.delivery
    if (entries.get(id) === entry) entries.delete(id)
    if (entry.isOver) return
    lostLeases.inc({ kind: kind.name })
    end(entry)
    entry.controller.abort(new Error('The lease of this delivery is over'))
  }

  function tick(): void {
    const nowMs = performance.now()
    for (const entry of entries.values()) {
      if (entry.isOver) continue
      const tookMs = nowMs - entry.startedMs
      if (!entry.isHanging && tookMs > HANG_MS && hanging < MAX_HANGING) {
        entry.isHanging = true
        hanging++
        queue.hang(entry.delivery.targetId)
        onFree()
      }
      if (tookMs > kind.timeoutMs) entry.controller.abort(new Error('The attempt took too long'))
      if (tookMs > kind.timeoutMs + ABORT_MS) expire(entry)
    }
    if (!isExtending) void extend(nowMs)
  }

  /** Extends the leases of which a third is over. */
  async function extend(nowMs: number): Promise<void> {
    const old = [...entries.values()].filter(({ leasedMs }) => nowMs - leasedMs > kind.leaseMs / 3)
    if (old.length === 0) return
    isExtending = true
    try {
      const leases = old.map(({ delivery }) => delivery)
      const { leaseMs } = kind
      const kept = new Set(await pool.run(sql => extendLeases(sql, { leases, leaseMs })))
      for (const entry of old) {
        if (kept.has(entry.delivery.id)) entry.leasedMs = nowMs
        else if (!entry.isOver) lose(entry)
      }
    } catch (error) {
      log.warning('Leases could not be extended: {reason}', { reason: toReason(error) })
    } finally {
      isExtending = false
    }
  }

  return {
    /** Starts an attempt of each delivery, and settles it. */
    add: (claimed: readonly ClaimedDelivery[]) => claimed.forEach(add),
    /** Attempts that run, without those that hang. */
    get slotsInUse() {
      return running - hanging
    },
    /** Attempts that run. */
    get running() {
      return running
    },
    /** Deliveries with an outcome that is not stored. */
    get unsettled() {
      return entries.size - running
    },
    /** Waits up to `graceMs` for the attempts that run, aborts the rest and hands their deliveries back. */
    async stop(graceMs: number): Promise<void> {
      if (running > 0) {
        const idle = new Promise<void>(resolve => (onIdle = resolve))
        await withTimeout(graceMs, idle, () => {})
      }
      for (const entry of entries.values()) {
        if (entry.isOver) continue
        end(entry)
        entry.controller.abort(new Error('The server is stopping'))
        settler.add(entry.delivery, RELEASED)
      }
      await settler.drain(performance.now() + DRAIN_MS)
      clearInterval(ticking)
    },
  }
}

/** The name of a bug, and where it happened. Its message may name the target, which can be a secret. */
function toBug(error: unknown): { reason: string; stack?: string } {
  if (!(error instanceof Error)) return { reason: typeof error }
  const frames = error.stack?.split('\n').filter(line => /^\s+at /.test(line))
  return { reason: error.name, stack: frames?.slice(0, 8).join('\n') ?? '' }
}
