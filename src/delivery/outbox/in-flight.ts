import type { Pool } from '../../database/pool.ts'
import { isUnavailable } from '../../database/sql.ts'
import { toReason } from '../../base/errors.ts'
import { limitLines, logger } from '../../base/log.ts'
import { deliveryAttempts, deliverySeconds, lostLeases } from '../../base/metrics.ts'
import { withTimeout } from '../../base/functions.ts'
import { extendLeases } from './claims.ts'
import type { FairQueue } from './fair-queue.ts'
import type { ClaimedDelivery, DeliveryKind, DeliveryOutcome } from './delivery-kind.ts'
import {
  DATABASE_UNAVAILABLE,
  findEarlyOutcome,
  PREVENTED,
  RELEASED,
  RESTORE_MS,
  toSettlement,
} from './settlement.ts'
import { createSettler } from './settler.ts'

const TICK_MS = 250
/**
 * An attempt hangs when its request, or its wait for one, takes longer. It frees its slot, but its
 * target gets no other attempt meanwhile.
 */
const HANG_MS = 2_000
/** The most slots that hanging attempts free. */
const MAX_FREED = 1_024
const DRAIN_MS = 3_000

const log = logger('outbox')

// Each event of a project can cause a line for each of its targets.
const warnOfPostponed = limitLines((reason, deliveries) =>
  log.warning('A delivery is postponed, because the database is unavailable: {reason}', {
    deliveries,
    reason,
  }),
)
const warnOfLeases = limitLines((reason, times) =>
  log.warning('Leases could not be extended: {reason}', { reason, times }),
)
const reportBug = limitLines<{ kind: string; stack: string | undefined }>(
  (reason, attempts, details) =>
    log.error('A bug ended an attempt: {reason}', { attempts, reason, ...details }),
)

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
  claimedMs: number
  /** When its request began; undefined before. */
  begunMs: number | undefined
  /** When the lease was last taken or extended. */
  leasedMs: number
  isHanging: boolean
  /** True when the attempt has an outcome, or its outcome no longer matters. */
  hasEnded: boolean
}

/** Creates the set of in-flight deliveries: those that a worker has claimed and not yet settled. */
export function createInFlightDeliveries({ pool, kind, queue, onFree }: InFlightOptions) {
  const entries = new Map<string, Entry>()
  const slots = createSlots(queue, onFree)
  let isExtending = false
  /** Timers lose leases on purpose: they are woken. */
  const countLost = () => kind.name !== 'timer' && lostLeases.inc({ kind: kind.name })

  const settler = createSettler({
    pool,
    onSettled(batch, lost) {
      for (const { id, token } of batch) {
        if (lost.has(id)) countLost()
        if (entries.get(id)?.delivery.token === token) entries.delete(id)
      }
      onFree()
    },
  })
  const ticking = setInterval(tick, TICK_MS)
  ticking.unref()

  function add(delivery: ClaimedDelivery, leasedMs: number): void {
    // If this worker claims a delivery again, the lease of the previous attempt was lost.
    const previous = entries.get(delivery.id)
    if (previous) lose(previous)
    const controller = new AbortController()
    const entry: Entry = {
      ...{ delivery, controller, leasedMs, claimedMs: performance.now(), begunMs: undefined },
      ...{ isHanging: false, hasEnded: false },
    }
    entries.set(delivery.id, entry)
    slots.take(entry)
    const { hiddenMs, isGone } = delivery
    if (hiddenMs !== null && hiddenMs < RESTORE_MS && !isGone) {
      slots.free(entry)
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
    const ids = { id, projectId, eventId, targetId }
    const begin = () => mayBegin(entry)
    const delivery = { ...ids, attempt: attempts + 1, isLast, waitedMs, begin }
    try {
      finish(entry, await kind.send(delivery, entry.controller.signal))
    } catch (error) {
      if (!entry.hasEnded) finish(entry, toErrorOutcome(error, kind, entry.begunMs !== undefined))
    }
  }

  /**
   * Returns whether the lease outlasts a request that begins now. Another worker could claim the
   * delivery otherwise, and send it a second time.
   */
  function mayBegin(entry: Entry): boolean {
    const nowMs = performance.now()
    if (entry.hasEnded || nowMs - entry.leasedMs > kind.leaseMs - kind.timeoutMs) return false
    entry.begunMs ??= nowMs
    return true
  }

  function finish(entry: Entry, outcome: DeliveryOutcome): void {
    if (entry.hasEnded) return
    slots.free(entry)
    const { targetId, attempts, claimCount, ageMs } = entry.delivery
    const nowMs = performance.now()
    const latencyMs = ageMs + nowMs - entry.claimedMs
    deliveryAttempts.inc({ kind: kind.name, outcome: outcome.kind })
    if (outcome.kind === 'done') deliverySeconds.observe({ kind: kind.name }, latencyMs / 1000)
    if (outcome.kind === 'postponed' && !outcome.isAlone)
      queue.pause(targetId, outcome.afterMs, nowMs)
    const settlement = toSettlement({
      outcome,
      hasBegun: entry.begunMs !== undefined,
      attempt: attempts + 1,
      // The end of a server undoes the step of a timer.
      claimCount: kind.name === 'timer' ? 1 : claimCount,
      schedule: kind.schedule,
      latencyMs,
      random: Math.random(),
    })
    const recorded = outcome.kind === 'done' ? outcome.recorded : undefined
    settler.add(entry.delivery, settlement, recorded)
  }

  /** Drops a delivery whose lease was lost. The outcome of its attempt can no longer be stored. */
  function lose(entry: Entry): void {
    const { id } = entry.delivery
    if (entries.get(id) === entry) entries.delete(id)
    if (entry.hasEnded) return
    countLost()
    slots.free(entry)
    entry.controller.abort(new Error('The lease of this delivery was lost'))
  }

  function tick(): void {
    const nowMs = performance.now()
    for (const entry of entries.values()) {
      if (entry.hasEnded) continue
      const isLong = nowMs - (entry.begunMs ?? entry.claimedMs) > HANG_MS
      if (isLong && !entry.isHanging) slots.hang(entry)
    }
    if (isExtending) return
    isExtending = true
    void extendOld(pool, kind, [...entries.values()]).then(lost => {
      isExtending = false
      for (const entry of lost) if (!entry.hasEnded) lose(entry)
    })
  }

  return {
    /** Attempts and settles each delivery. They were leased after `leasedMs`. */
    add: (claimed: readonly ClaimedDelivery[], leasedMs: number) =>
      claimed.forEach(delivery => add(delivery, leasedMs)),
    /** The number of running attempts, without those that hang and have freed their slot. */
    get slotsInUse() {
      return slots.inUse
    },
    /** The number of running attempts. */
    get running() {
      return slots.running
    },
    /** The number of deliveries whose outcome is not stored yet. */
    get unsettled() {
      return entries.size - slots.running
    },
    /**
     * Waits up to `graceMs` for running attempts, aborts the others, and releases their deliveries.
     */
    async stop(graceMs: number): Promise<void> {
      await withTimeout(graceMs, slots.whenIdle(), () => {})
      for (const entry of entries.values()) {
        if (entry.hasEnded) continue
        slots.free(entry)
        entry.controller.abort(new Error('The server is stopping'))
        settler.add(entry.delivery, RELEASED)
      }
      await settler.drain(performance.now() + DRAIN_MS)
      clearInterval(ticking)
    },
  }
}

/** Counts the slots of attempts, in total and for each target. */
function createSlots(queue: FairQueue, onFree: () => void) {
  let running = 0
  let hanging = 0
  let onIdle: (() => void) | undefined
  return {
    take({ delivery }: Entry): void {
      running++
      queue.start(delivery.targetId)
    },
    /** Lets an attempt that hangs free its slot. */
    hang(entry: Entry): void {
      entry.isHanging = true
      hanging++
      queue.hang(entry.delivery.targetId)
      onFree()
    },
    /** Ends an attempt, with or without an outcome. */
    free(entry: Entry): void {
      entry.hasEnded = true
      running--
      queue.end(entry.delivery.targetId)
      if (entry.isHanging) {
        hanging--
        queue.unhang(entry.delivery.targetId)
      }
      onFree()
      if (running === 0) onIdle?.()
    },
    get inUse() {
      return running - Math.min(hanging, MAX_FREED)
    },
    get running() {
      return running
    },
    whenIdle: () =>
      running === 0 ? Promise.resolve() : new Promise<void>(resolve => (onIdle = resolve)),
  }
}

/**
 * Extends the leases that are older than a third of their duration. Returns those that were lost. A
 * lease that is neither extended nor lost is tried again.
 */
async function extendOld(pool: Pool, { leaseMs }: DeliveryKind, entries: Entry[]) {
  const nowMs = performance.now()
  const old = entries.filter(({ leasedMs }) => nowMs - leasedMs > leaseMs / 3)
  if (old.length === 0) return []
  try {
    const leases = old.map(({ delivery }) => delivery)
    const found = await pool.run(sql => extendLeases(sql, { leases, leaseMs }))
    const [extended, lost] = [new Set(found.extended), new Set(found.lost)]
    for (const entry of old) if (extended.has(entry.delivery.id)) entry.leasedMs = nowMs
    return old.filter(({ delivery }) => lost.has(delivery.id))
  } catch (error) {
    warnOfLeases(toReason(error))
    return []
  }
}

/** Returns the outcome of an attempt that threw. */
function toErrorOutcome(
  error: unknown,
  { name }: DeliveryKind,
  hasBegun: boolean,
): DeliveryOutcome {
  if (!hasBegun && isUnavailable(error)) {
    warnOfPostponed(toReason(error))
    return DATABASE_UNAVAILABLE
  }
  const { reason, stack } = toBugReport(error)
  reportBug(reason, { kind: name, stack })
  if (!hasBegun) return PREVENTED
  return { kind: 'retry', reason: 'The attempt failed with an error of this server' }
}

/**
 * Returns the name of an error and its stack. The message is left out, because it may contain the
 * URL of a target, which is a secret.
 */
function toBugReport(error: unknown): { reason: string; stack?: string } {
  if (!(error instanceof Error)) return { reason: typeof error }
  const frames = error.stack?.split('\n').filter(line => /^\s+at /.test(line))
  return { reason: error.name, stack: frames?.slice(0, 8).join('\n') ?? '' }
}
