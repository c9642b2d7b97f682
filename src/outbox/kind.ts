import type { Fragment, Queryable, Sql, Tx } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'

export const KIND_NAMES = ['webhook', 'push'] as const
export type KindName = (typeof KIND_NAMES)[number]

/** The prefixes of the public ids of targets. */
export const TARGET_PREFIX = { webhook: 'whk', push: 'psh' } as const

const log = logger('outbox')

/** A way to deliver events: which targets there are, and how a delivery is sent. Ids are uuids. */
export interface DeliveryKind {
  readonly name: KindName
  /**
   * Whether a project (`c.project_id` of the statement around it) has any target. Events of projects without one are
   * skipped unread. A target that was there when an event was committed must be seen.
   *
   *     sql`exists (select from webhooks w where w.project_id = c.project_id)`
   */
  hasTargets(sql: Queryable): Fragment
  /**
   * Writes the deliveries of some events, as one statement, and returns how many. It decides which targets an event is
   * for, by filters and by preferences. A target that is left out for a reason gets a record (`withheld`, in
   * `deliveries`) instead.
   *
   *     insert into outbox (project_id, event_id, kind, target_id)
   *     select e.project_id, e.id, 'webhook', w.id
   *     from unnest(${projectIds}::uuid[], ${fromSeqs}::bigint[], ${toSeqs}::bigint[]) as r (project_id, from_seq, to_seq)
   *       join events e on e.project_id = r.project_id and e.seq > r.from_seq and e.seq <= r.to_seq
   *       join webhooks w on …
   *     on conflict (project_id, event_id, kind, target_id) do nothing
   */
  dispatch(tx: Tx, runs: EventRanges): Promise<number>
  /**
   * Makes one attempt, outside of any transaction. Once something was sent it throws nothing (`recordAttempt`). An
   * unavailable database postpones the delivery; any other error is a bug, and counts as a failed attempt.
   */
  send(attempt: DeliveryAttempt, signal: AbortSignal): Promise<DeliveryOutcome>
  /** The names of targets for members who may read the project: never a secret. Deleted targets are left out. */
  getTargetNames(
    sql: Queryable,
    targets: { projectId: string; targetIds: readonly string[] },
  ): Promise<ReadonlyMap<string, string>>
  /** Why a dispatched event has neither delivery nor record, if that is known. */
  explainNoDelivery?(
    sql: Queryable,
    event: { projectId: string; eventId: string },
  ): Promise<{ reason: string; at: Date } | undefined>
  /**
   * Marks targets with a full backlog, and unmarks those with room again; called every ten seconds. `dispatch` records
   * what it leaves out for a marked target. `mayBeFull` is false while fewer than 100,000 deliveries of the kind wait.
   */
  markFullBacklogs?(sql: Sql, mayBeFull: boolean): Promise<void>
  /** The time before each attempt, in ms, give or take 20 %; the first is 0. */
  readonly schedule: readonly number[]
  /** Attempts at a time to one target. */
  readonly perTarget: number
  /** Attempts at a time, not counting those that hang. */
  readonly concurrency?: number
  /** How long an attempt may take before its signal is aborted. */
  readonly timeoutMs: number
  /** After this time another worker claims the delivery of one that has vanished. */
  readonly leaseMs: number
}

/** Events of a few projects, as array literals for `unnest`: of each project those after `fromSeq` up to `toSeq`. */
export interface EventRanges {
  readonly projectIds: string
  readonly fromSeqs: string
  readonly toSeqs: string
}

/** One attempt of a delivery. */
export interface DeliveryAttempt {
  /** Of the delivery: the same in every attempt. */
  readonly id: string
  readonly projectId: string
  readonly eventId: string
  readonly targetId: string
  /** 1 for the first. */
  readonly attempt: number
  readonly isLast: boolean
  /** Between the time when the delivery was due first and its claim, by the clock of the database. */
  readonly waitedMs: number
}

/**
 * What came of an attempt. Reasons are for people: no secrets, nothing of an event.
 * `gone` makes a dead letter at once, `failed` ends without one, and `withheld` was not wanted after all.
 */
export type DeliveryOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly afterMs?: number; readonly reason: string }
  | { readonly kind: 'gone' | 'failed' | 'cancelled' | 'withheld'; readonly reason: string }
  | Postponed

/**
 * Spends no attempt, and skips the target for `afterMs`. A delivery that has waited for more than `giveUpAfterMs` is given up
 * instead: nothing else would end it.
 */
export interface Postponed {
  readonly kind: 'postponed'
  readonly afterMs: number
  readonly giveUpAfterMs: number
  readonly reason: string
}

/**
 * Stores what is known of an attempt that was made. It never throws: sending again, because a row was locked or the
 * database was slow, would be worse than a missing record.
 */
export async function tryToRecord(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    log.error('An attempt was made and could not be recorded: {reason}', {
      reason: toReason(error),
    })
  }
}

/** How much longer than an attempt a lease must last, so that the attempt can be settled. */
const SETTLE_MS = 5_000

/** Throws when a kind cannot keep its promises. */
export function checkKinds(kinds: readonly DeliveryKind[]): void {
  for (const { name, leaseMs, timeoutMs, schedule, perTarget } of kinds) {
    if (leaseMs <= timeoutMs + SETTLE_MS) {
      throw new Error(
        `The lease of a ${name} (${leaseMs} ms) must be longer than its time-out (${timeoutMs} ms) and ${SETTLE_MS} ms`,
      )
    }
    if (schedule[0] !== 0) throw new Error(`The first attempt of a ${name} must be due at once`)
    if (perTarget < 1) throw new Error(`A ${name} must be allowed one attempt at a time`)
  }
  if (new Set(kinds.map(({ name }) => name)).size < kinds.length) {
    throw new Error('There are two kinds of delivery with one name')
  }
}
