import { toReason } from '../../base/errors.ts'
import { limitLines, logger } from '../../base/log.ts'
import type { Queryable, Sql } from '../../database/sql.ts'

export const KIND_NAMES = ['webhook', 'push', 'timer'] as const
export type KindName = (typeof KIND_NAMES)[number]

/** The prefixes of targets' public ids. */
export const TARGET_PREFIX = { webhook: 'whk', push: 'psh', timer: 'tmr' } as const

const log = logger('outbox')
const reportUnrecorded = limitLines((reason, attempts) =>
  log.error('An attempt was made but could not be recorded: {reason}', { attempts, reason }),
)

/** A kind of delivery: which targets an event has, and how a delivery is sent. Ids are uuids. */
export interface DeliveryKind {
  readonly name: KindName
  /**
   * Takes the next events of some projects, and writes their deliveries, in one transaction.
   * `lock_event_ranges` finds the events, and `take_ranges` takes those that have targets. Filters
   * and preferences decide which targets an event has. A target that is left out for a reason worth
   * showing gets a `withheld` record in `deliveries` instead. See `dispatch_webhooks`. Undefined
   * for timers, which follow no log.
   */
  dispatch?(sql: Sql, request: DispatchRequest): Promise<Dispatched>
  /** True if `dispatch` leases deliveries. The worker then keeps its free slots for them. */
  readonly leasesNew?: boolean
  /**
   * Makes one attempt, outside of any transaction. If it throws before the attempt has begun, the
   * delivery is postponed. It must not throw afterwards: use `tryToRecord`. Such an error is a bug,
   * and counts as a failed attempt.
   */
  send(attempt: DeliveryAttempt, signal: AbortSignal): Promise<DeliveryOutcome>
  /**
   * Returns the names of targets, which every member of the project may see. They contain no
   * secrets. Deleted targets are left out.
   */
  getTargetNames(
    sql: Queryable,
    targets: { projectId: string; targetIds: readonly string[] },
  ): Promise<ReadonlyMap<string, string>>
  /** Explains why a dispatched event has neither a delivery nor a record; undefined if unknown. */
  explainNoDelivery?(
    sql: Queryable,
    event: { projectId: string; notify: boolean; level: string | null },
  ): string | undefined | Promise<string | undefined>
  /**
   * Corrects what is known of all targets: which backlogs are full, and which pauses are over. It
   * is called every 10 seconds. `mayBeFull` is false while the kind has fewer than 100,000 pending
   * deliveries. For a target with a full backlog, `dispatch` writes records instead of deliveries.
   */
  sweepTargets?(sql: Sql, mayBeFull: boolean): Promise<void>
  /** The delay before each attempt, in ms, ± 20 %. The first is 0. */
  readonly schedule: readonly number[]
  /** The most concurrent attempts to one target. */
  readonly perTarget: number
  /** The longest time that the requests of one attempt take. `send` ends them. */
  readonly timeoutMs: number
  /** The time after which another worker can claim the delivery of a worker that has died. */
  readonly leaseMs: number
}

/** A kind that follows the logs of projects. */
export type DispatchingKind = DeliveryKind & Required<Pick<DeliveryKind, 'dispatch'>>

export function isDispatching(kind: DeliveryKind): kind is DispatchingKind {
  return kind.dispatch !== undefined
}

/** The projects to dispatch, and the most events of those that have targets. */
export interface DispatchRequest {
  readonly projectIds: readonly string[]
  readonly maxEvents: number
  /** The lease for new deliveries; undefined if all of them are due at once. */
  readonly lease: NewLease | undefined
}

/**
 * A lease on one delivery. Only its holder can settle the delivery, until another claim changes the
 * token.
 */
export interface Lease {
  id: string
  token: string
}

/** A claimed delivery. No other worker can claim it until its lease ends. */
export interface ClaimedDelivery extends Lease {
  projectId: string
  eventId: string
  targetId: string
  /** The number of claims since the last outcome, including this one. */
  claimCount: number
  /** The number of failed attempts. */
  attempts: number
  /** The time since the event was created, and the time since the delivery was first due. */
  ageMs: number
  waitedMs: number
  /**
   * `isGone`: the event or its project no longer exists. `hiddenMs`: the time since the event was
   * deleted; null for an event that is not deleted.
   */
  isGone: boolean
  hiddenMs: number | null
}

/**
 * A lease for deliveries that are about to be inserted. The worker of this process begins them
 * right after the commit, without a scan and a claim.
 */
export interface NewLease {
  token: string
  leaseMs: number
  /** The most deliveries that can be leased, in all and to one target. */
  free: number
  perTarget: number
  /** The targets for which fewer can be leased. */
  rooms: readonly { targetId: string; room: number }[]
}

/** The range of a project's log that a dispatch has taken. */
export interface TakenRange {
  projectId: string
  /** The range begins after `fromSeq` and ends with `toSeq`. */
  fromSeq: number
  toSeq: number
  hasTargets: boolean
  /** True if the range reaches the end of the log. */
  isWhole: boolean
  /** How long its oldest event has waited, in ms; 0 for a project without targets. */
  lagMs: number
}

/**
 * The result of a dispatch. Projects without new events, or whose cursor another dispatcher holds,
 * have no range.
 */
export interface Dispatched {
  ranges: readonly TakenRange[]
  /** The number of inserted deliveries, and those that are leased. */
  count: number
  leased: readonly ClaimedDelivery[]
}

/** The row of a function such as `dispatch_webhooks`. */
export interface DispatchedRow {
  ranges: readonly {
    project_id: string
    from_seq: number
    to_seq: number
    has_targets: boolean
    is_whole: boolean
    lag_ms: number
    has_views?: boolean
  }[]
  count: string
  leased?:
    | readonly Pick<ClaimedDelivery, 'id' | 'projectId' | 'eventId' | 'targetId' | 'ageMs'>[]
    | null
}

/** Returns the result of a dispatch from its row. */
export function toDispatched(
  { ranges, count, leased }: DispatchedRow,
  { lease }: DispatchRequest,
): Dispatched {
  const token = lease?.token ?? ''
  const fresh = { token, claimCount: 1, attempts: 0, waitedMs: 0, isGone: false, hiddenMs: null }
  return {
    ranges: ranges.map(range => ({
      projectId: range.project_id,
      fromSeq: range.from_seq,
      toSeq: range.to_seq,
      hasTargets: range.has_targets,
      isWhole: range.is_whole,
      lagMs: range.lag_ms,
    })),
    count: Number(count),
    leased: (leased ?? []).map(row => ({ ...fresh, ...row })),
  }
}

/** One attempt of a delivery. */
export interface DeliveryAttempt {
  /** The id of the delivery, the same in every attempt. */
  readonly id: string
  readonly projectId: string
  readonly eventId: string
  readonly targetId: string
  /** The number of this attempt, from 1. */
  readonly attempt: number
  readonly isLast: boolean
  /**
   * The time from when the delivery was first due until its claim, by the clock of the database.
   */
  readonly waitedMs: number
  /**
   * Called when a request begins, and before each first byte. The attempt has begun then. Returns
   * false if the lease could end before the request: it must not be made.
   */
  readonly begin: () => boolean
}

/**
 * The outcome of an attempt. Members see the reason, so it must contain no secret and nothing of
 * the event.
 * - `done` is settled once its attempt is `recorded`, which never rejects. The slot is free before.
 * - `gone` writes a dead letter without further attempts.
 * - `failed` ends the delivery without a dead letter.
 * - `withheld` means that the target should not get the event after all.
 */
export type DeliveryOutcome =
  | { readonly kind: 'done'; readonly recorded?: Promise<void> }
  | { readonly kind: 'retry'; readonly afterMs?: number; readonly reason: string }
  | { readonly kind: 'gone' | 'failed' | 'cancelled' | 'withheld'; readonly reason: string }
  | Postponed

/**
 * Postpones a delivery by `afterMs` without using up an attempt, and skips the target meanwhile.
 * However old a delivery is, it is not given up for that: only attempts end it.
 */
export interface Postponed {
  readonly kind: 'postponed'
  readonly afterMs: number
  readonly reason: string
  /** True if the reason is about this delivery, so that the target gets others meanwhile. */
  readonly isAlone?: boolean
}

/**
 * Runs `work`, which stores the result of an attempt, and logs its error. It never throws, because
 * the delivery would be sent again. A missing record is better than that.
 */
export async function tryToRecord(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    reportUnrecorded(toReason(error))
  }
}

/** A lease must last this much longer than an attempt, so that the attempt can be settled. */
const SETTLE_MS = 5_000

/** Throws if the lease of a kind could end before an attempt is settled. */
export function checkLeases(kinds: readonly DeliveryKind[]): void {
  for (const { name, leaseMs, timeoutMs } of kinds) {
    if (leaseMs > timeoutMs + SETTLE_MS) continue
    throw new Error(
      `The lease of a ${name} (${leaseMs} ms) must be more than ${SETTLE_MS} ms longer than its timeout (${timeoutMs} ms)`,
    )
  }
}
