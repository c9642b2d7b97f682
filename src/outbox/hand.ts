import type { Pool } from '../db/pool.ts'
import { isUnavailable } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { deliveryAttempts, deliverySeconds, lostLeases } from '../metrics.ts'
import type { Claimed } from './claim.ts'
import type { DeliveryKind, Outcome } from './kind.ts'
import { judge, toBug, toLater } from './judging.ts'
import { extendLeases } from './settle.ts'
import { HANDED_BACK, toSettlement } from './settlement.ts'
import { createSettler } from './settler.ts'
import { toPauseMs, type Turns } from './turns.ts'

const TICK_MS = 250
/** An attempt that takes longer than this hangs: it makes room for another. */
const HANG_MS = 2_000
const MAX_HANGING = 1_024
/** How long an attempt that was told to end may go on. */
const ABORT_MS = 2_000
/** How long an event that was hidden may still be restored, and a little more. */
const RESTORE_MS = 15_000
const DRAIN_MS = 3_000

const log = logger('outbox')

/** The jobs that a worker has in hand: claimed, and not yet written down. */
export interface Hand {
  /** Makes an attempt of each job, and sees to it that what comes of it is written down. */
  take(jobs: readonly Claimed[]): void
  /** Attempts under way, without those that hang and with them. */
  readonly quick: number
  readonly running: number
  /** Jobs whose outcome is not written down. */
  readonly unsettled: number
  /** Waits up to `graceMs` for the attempts under way, ends the rest and hands their jobs back. */
  stop(graceMs: number): Promise<void>
}

export interface HandOptions {
  pool: Pool
  kind: DeliveryKind
  turns: Turns
  /** Told when there is room for another attempt. */
  onFree(): void
}

interface Entry {
  job: Claimed
  controller: AbortController
  startedMs: number
  /** When the lease was last begun. */
  leasedMs: number
  isHanging: boolean
  /** Whether its attempt has an outcome, or none any more. */
  isOver: boolean
}

export function createHand({ pool, kind, turns, onFree }: HandOptions): Hand {
  const entries = new Map<string, Entry>()
  let running = 0
  let hanging = 0
  let onIdle: (() => void) | undefined
  let isExtending = false

  const settler = createSettler({
    pool,
    onSettled(jobs, kept) {
      for (const { id, token } of jobs) {
        if (!kept.has(id)) lostLeases.inc({ kind: kind.name })
        if (entries.get(id)?.job.token === token) entries.delete(id)
      }
      onFree()
    },
  })
  const ticking = setInterval(tick, TICK_MS)
  ticking.unref()

  function take(job: Claimed): void {
    const nowMs = performance.now()
    const before = entries.get(job.id)
    if (before) lose(before)
    const controller = new AbortController()
    const times = { startedMs: nowMs, leasedMs: nowMs }
    const entry: Entry = { job, controller, ...times, isHanging: false, isOver: false }
    entries.set(job.id, entry)
    running++
    turns.start(job.targetId)
    if (job.hiddenMs !== null && job.hiddenMs < RESTORE_MS && !job.isGone) {
      end(entry)
      settler.add({ ...toHeld(job), ...HANDED_BACK, delayMs: RESTORE_MS - job.hiddenMs })
      return
    }
    const verdict = judge(job)
    if (verdict) finish(entry, verdict)
    else void attempt(entry)
  }

  async function attempt(entry: Entry): Promise<void> {
    const { id, projectId, eventId, targetId, attempts, waitedMs } = entry.job
    const isLast = attempts + 1 >= kind.schedule.length
    const job = { id, projectId, eventId, targetId, attempt: attempts + 1, isLast, waitedMs }
    try {
      finish(entry, await kind.send(job, entry.controller.signal))
    } catch (error) {
      if (entry.isOver) return
      if (entry.controller.signal.aborted) return expire(entry)
      // Before anything was sent, as a kind promises.
      if (isUnavailable(error)) {
        log.warning('A delivery waits for the database: {reason}', { reason: toReason(error) })
        return finish(entry, toLater())
      }
      log.error('A delivery failed inside: {reason}', { kind: kind.name, ...toBug(error) })
      finish(entry, { kind: 'retry', reason: "The attempt met an error of the server's own" })
    }
  }

  function finish(entry: Entry, outcome: Outcome): void {
    if (entry.isOver) return
    end(entry)
    const { job } = entry
    const tookMs = performance.now() - entry.startedMs
    const [latencyMs, waitedMs] = [job.ageMs + tookMs, job.waitedMs + tookMs]
    deliveryAttempts.inc({ kind: kind.name, outcome: outcome.kind })
    if (outcome.kind === 'done') deliverySeconds.observe({ kind: kind.name }, latencyMs / 1000)
    if (outcome.kind === 'postponed') {
      turns.pause(job.targetId, performance.now() + toPauseMs(outcome.afterMs))
    }
    const { schedule } = kind
    const attempted = { outcome, attempt: job.attempts + 1, schedule, latencyMs, waitedMs }
    settler.add({ ...toHeld(job), ...toSettlement({ ...attempted, random: Math.random() }) })
  }

  function expire(entry: Entry): void {
    finish(entry, { kind: 'retry', reason: `No outcome within ${kind.timeoutMs} ms` })
  }

  /** The attempt is over, whatever came of it: its place is free. */
  function end(entry: Entry): void {
    entry.isOver = true
    running--
    turns.end(entry.job.targetId)
    if (entry.isHanging) {
      hanging--
      turns.unhang(entry.job.targetId)
    }
    onFree()
    if (running === 0) onIdle?.()
  }

  /** Somebody else has the job by now: what comes of our attempt changes nothing. */
  function lose(entry: Entry): void {
    const { id } = entry.job
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
        turns.hang(entry.job.targetId)
        onFree()
      }
      if (tookMs > kind.timeoutMs) entry.controller.abort(new Error('The attempt took too long'))
      if (tookMs > kind.timeoutMs + ABORT_MS) {
        expire(entry)
      }
    }
    if (!isExtending) void extend(nowMs)
  }

  /** Renews the leases of which a third is over. */
  async function extend(nowMs: number): Promise<void> {
    const old = [...entries.values()].filter(({ leasedMs }) => nowMs - leasedMs > kind.leaseMs / 3)
    if (old.length === 0) return
    isExtending = true
    try {
      const held = old.map(({ job }) => toHeld(job))
      const { leaseMs } = kind
      const kept = new Set(await pool.run(sql => extendLeases(sql, { held, leaseMs })))
      for (const entry of old) {
        if (kept.has(entry.job.id)) entry.leasedMs = nowMs
        else if (!entry.isOver) lose(entry)
      }
    } catch (error) {
      log.warning('Leases could not be renewed: {reason}', { reason: toReason(error) })
    } finally {
      isExtending = false
    }
  }

  return {
    take(jobs) {
      for (const job of jobs) take(job)
    },
    get quick() {
      return running - hanging
    },
    get running() {
      return running
    },
    get unsettled() {
      return entries.size - running
    },
    async stop(graceMs) {
      if (running > 0) {
        const idle = Promise.withResolvers<void>()
        onIdle = idle.resolve
        const late = setTimeout(idle.resolve, graceMs)
        await idle.promise
        clearTimeout(late)
      }
      for (const entry of entries.values()) {
        if (entry.isOver) continue
        end(entry)
        entry.controller.abort(new Error('The server is stopping'))
        settler.add({ ...toHeld(entry.job), ...HANDED_BACK })
      }
      await settler.drain(performance.now() + DRAIN_MS)
      clearInterval(ticking)
    },
  }
}

function toHeld({ id, token }: Claimed) {
  return { id, token }
}
