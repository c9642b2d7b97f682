import type { Pool } from '../db/pool.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { createBell } from './bell.ts'
import { claimJobs, findTargets, MAX_WALK, type WaitingTarget } from './claim.ts'
import { createHand } from './hand.ts'
import type { DeliveryKind } from './kind.ts'
import { createTurns } from './turns.ts'

const POLL_MS = 1_000
const CONCURRENCY = 256
/** Jobs that wait to be written down; beyond it no more are claimed. */
const MAX_UNSETTLED = 2_000
/** When few places are free, they wait this long for more: fewer and bigger claims. */
const GATHER_MS = 5
/** Walks that take longer than this take no more than a tenth of the time, as long as one comes within a second. */
const SHORT_WALK_MS = 25
const WALK_PAUSES = 9
/** After this time a walk passes over nothing. */
const FULL_WALK_MS = 30_000
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

const log = logger('outbox')

/** Makes the deliveries of one kind. */
export interface Worker {
  /** Says that there is something new; without it, the poll finds it within a second. */
  wake(): void
  /** How long the oldest delivery that is due has been waiting, those that wait for their target aside. */
  readonly oldestMs: number
  /** Attempts under way. */
  readonly running: number
  /** Claims nothing more, waits up to `graceMs` for the attempts under way, and hands back the rest. */
  stop(graceMs: number): Promise<void>
}

export function startWorker({ pool, kind }: { pool: Pool; kind: DeliveryKind }): Worker {
  const bell = createBell()
  const turns = createTurns(kind.perTarget)
  const hand = createHand({ pool, kind, turns, onFree: bell.ring })
  const concurrency = kind.concurrency ?? CONCURRENCY
  let isStopped = false
  // Of performance.now: when a walk is wanted, and when there may be one.
  let walkDueMs = 0
  let mayWalkMs = 0
  let claimedMs = 0
  let oldestDueMs = Infinity
  let after = FIRST_ID
  let low: string | null = null
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
        bell.ringIn(POLL_MS)
      }
      await bell.sleep()
    }
  }

  /** Claims what there is room for; returns whether there may be more to claim at once. */
  async function claim(): Promise<boolean> {
    const nowMs = performance.now()
    if (nowMs >= walkDueMs && nowMs >= mayWalkMs) await walk(nowMs)
    bell.ringIn(Math.max(walkDueMs, mayWalkMs) - performance.now())
    const free = concurrency - hand.quick
    if (free <= 0 || hand.unsettled > MAX_UNSETTLED || !turns.hasDue) return false
    const wishes = turns.next(free, performance.now())
    if (wishes.length === 0) return false
    const room = Math.min(
      free,
      wishes.reduce((sum, wish) => sum + wish.room, 0),
    )
    const leftMs = claimedMs + GATHER_MS - performance.now()
    if (room < hand.quick / 2 && leftMs > 0) {
      bell.ringIn(leftMs)
      return false
    }
    const { name, leaseMs } = kind
    const claimed = await pool.run(sql =>
      claimJobs(sql, { kind: name, wishes, most: free, leaseMs }),
    )
    claimedMs = performance.now()
    const counts = new Map<string, number>()
    for (const { targetId } of claimed) counts.set(targetId, (counts.get(targetId) ?? 0) + 1)
    turns.got(wishes, { counts, isAll: claimed.length < free })
    hand.take(claimed)
    return true
  }

  /** Finds out which targets have something due, and when the next one will. */
  async function walk(startedMs: number): Promise<void> {
    walkDueMs = startedMs + POLL_MS
    const isWhole = after === FIRST_ID
    if (isWhole && startedMs - fullWalkMs > FULL_WALK_MS) {
      low = null
      fullWalkMs = startedMs
    }
    const found = await pool.run(sql => findTargets(sql, { kind: kind.name, after, low }))
    const endedMs = performance.now()
    turns.see(found, endedMs)
    const isCut = found.length === MAX_WALK
    after = (isCut && found.at(-1)?.targetId) || FIRST_ID
    const first = found.reduce<WaitingTarget | undefined>(
      (one, other) => (one && one.dueInMs <= other.dueInMs ? one : other),
      undefined,
    )
    // Of many targets only some were seen: nothing may be concluded for the others.
    if (isCut || !isWhole) low = null
    else if (first) low = first.low
    const isLate = ({ targetId, dueInMs }: WaitingTarget) =>
      dueInMs <= 0 && !turns.isPaused(targetId, endedMs)
    oldestDueMs = endedMs + Math.min(Infinity, ...found.filter(isLate).map(one => one.dueInMs))
    const next = Math.min(...found.map(({ dueInMs }) => (dueInMs > 0 ? dueInMs : Infinity)))
    walkDueMs = isCut ? endedMs : Math.min(walkDueMs, endedMs + next)
    const tookMs = endedMs - startedMs
    mayWalkMs = endedMs + (tookMs > SHORT_WALK_MS ? Math.min(POLL_MS, WALK_PAUSES * tookMs) : 0)
  }

  const running = run()
  return {
    wake() {
      walkDueMs = 0
      bell.ring()
    },
    get oldestMs() {
      return Math.max(0, performance.now() - oldestDueMs)
    },
    get running() {
      return hand.running
    },
    async stop(graceMs) {
      isStopped = true
      bell.ring()
      await running
      await hand.stop(graceMs)
    },
  }
}
