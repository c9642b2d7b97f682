import type { Fragment, Queryable, Sql, Tx } from '../db/sql.ts'

/** The ways in which targets are told of events. */
export const KIND_NAMES = ['webhook', 'push'] as const
export type KindName = (typeof KIND_NAMES)[number]

/** What the public ids of a kind's targets begin with. */
export const TARGET_PREFIX = { webhook: 'whk', push: 'psh' } as const

/** A way to tell targets of events: who is to be told, and how. Ids are uuids. */
export interface DeliveryKind {
  readonly name: KindName
  /**
   * Whether a project (`c.project_id` of the statement around it) has anybody who may be told. Where nobody is, events are
   * passed over without a look at them. Whoever is there when an event is committed must be seen.
   *
   *     sql`exists (select from webhooks w where w.project_id = c.project_id)`
   */
  hasTargets(sql: Queryable): Fragment
  /**
   * Writes the deliveries of some events, as one statement, and returns how many. Whom an event is for is decided here:
   * filters, and what people want. Whoever is left out for a reason gets a record instead (`withheld`, in `deliveries`).
   *
   *     insert into outbox (project_id, event_id, kind, target_id)
   *     select e.project_id, e.id, 'webhook', w.id
   *     from unnest(${projectIds}::uuid[], ${fromSeqs}::bigint[], ${toSeqs}::bigint[]) as r (project_id, from_seq, to_seq)
   *       join events e on e.project_id = r.project_id and e.seq > r.from_seq and e.seq <= r.to_seq
   *       join webhooks w on …
   *     on conflict (project_id, event_id, kind, target_id) do nothing
   */
  dispatch(tx: Tx, runs: Runs): Promise<number>
  /**
   * Makes one attempt, outside of any transaction. It throws nothing once something was sent (`keepAttempted`); that the
   * database is unavailable postpones the job, anything else that is thrown is a bug, and counts as a failed attempt.
   */
  send(job: Job, signal: AbortSignal): Promise<Outcome>
  /** The names of targets for whoever may see the project's events: never a secret. Those that are gone are left out. */
  nameTargets(
    sql: Queryable,
    targets: { projectId: string; targetIds: readonly string[] },
  ): Promise<ReadonlyMap<string, string>>
  /** Why nobody was told of an event that was dispatched and has neither delivery nor record, if that is known. */
  explainSilence?(
    sql: Queryable,
    event: { projectId: string; eventId: string },
  ): Promise<{ reason: string; at: Date } | undefined>
  /**
   * Called every ten seconds, to mark targets for which as many deliveries wait as may, and unmark those that have room:
   * `dispatch` records what it leaves out for them. `mayBeFull` unless there are less than 100,000 of the kind.
   */
  markBacklogs?(sql: Sql, mayBeFull: boolean): Promise<void>
  /** The time before each attempt, in ms, give or take 20 %; the first is 0. */
  readonly schedule: readonly number[]
  /** Attempts to one target at a time. */
  readonly perTarget: number
  /** Attempts at a time, not counting those that hang. */
  readonly concurrency?: number
  /** How long an attempt may take; its signal is aborted then. */
  readonly timeoutMs: number
  /** After this time a job whose worker has vanished is taken by another. */
  readonly leaseMs: number
}

/** Events of a few projects, as array literals for `unnest`: of each project those after `fromSeq` up to `toSeq`. */
export interface Runs {
  readonly projectIds: string
  readonly fromSeqs: string
  readonly toSeqs: string
}

/** One attempt of a delivery. */
export interface Job {
  /** Of the delivery: the same in every attempt. */
  readonly id: string
  readonly projectId: string
  readonly eventId: string
  readonly targetId: string
  /** 1 for the first. */
  readonly attempt: number
  readonly isLast: boolean
  /** Since it was to be made, by the clock of the database, when the job was claimed: that of an old event may be new. */
  readonly waitedMs: number
}

/**
 * What came of an attempt. Reasons are for people: no secrets, nothing of an event.
 * `gone` goes to the dead letters at once, `failed` is given up without one, and `withheld` was not wanted after all.
 * `postponed` spends no attempt, and leaves the target alone for so long; where the job has waited for more than
 * `withinMs` it is given up instead, for nothing else would ever end it.
 */
export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly afterMs?: number; readonly reason: string }
  | { readonly kind: 'gone' | 'failed' | 'cancelled' | 'withheld'; readonly reason: string }
  | Postponed

export interface Postponed {
  readonly kind: 'postponed'
  readonly afterMs: number
  readonly withinMs: number
  readonly reason: string
}

/** How much longer than an attempt a lease must last: what it takes to write down what came of it. */
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
