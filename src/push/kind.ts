import { toArray } from '../db/arrays.ts'
import { createBatcher, type Batcher } from '../db/batch.ts'
import type { Queryable } from '../db/sql.ts'
import { transact } from '../db/transaction.ts'
import { GRACE_S } from '../events/deletion.ts'
import type { Site } from '../http/site.ts'
import { keepAttempted } from '../outbox/keeping.ts'
import type { DeliveryKind, Job, Outcome } from '../outbox/kind.ts'
import { dispatchPushes, hasDevices } from './dispatch.ts'
import { keepAccepted, keepVerdict, type Accepted } from './outcome.ts'
import { toCountMessage, toEventMessage, type Message } from './payload.ts'
import { DAY_S, PUSH_TIMEOUT_MS, type Pusher, type PushParts } from './pusher.ts'
import { findReceivers, takeCount, toReceiver, type Receiver } from './receiver.ts'
import { WITHHELD } from './reasons.ts'
import { explainSilence } from './silence.ts'
import type { Verdict } from './verdict.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** The time before each attempt, give or take 20 %: a day in all. */
export const PUSH_SCHEDULE_MS: readonly number[] = [
  0,
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
]
/** Two requests, where the first is too large, and the database before and after them. */
const ATTEMPT_MS = 2 * PUSH_TIMEOUT_MS + 5 * SECOND
const BUSY_MS = 5 * SECOND
const MAX_BATCH = 200
const MAX_WAITING = 5_000

export interface PushKindParts extends PushParts {
  pusher: Pusher
  /** Undefined until the server knows its own address. */
  findSite(): Site | undefined
}

interface SenderParts extends PushKindParts {
  /** Undefined where the device is gone. */
  reads: Batcher<Job, Receiver | undefined>
  /** Whether it was kept. */
  accepted: Batcher<Accepted, boolean>
}

/**
 * Web push as a kind of delivery: its targets are the subscriptions of members. Attempts share their statements: those of
 * the same moment read, and keep what was accepted, together.
 */
export function createPushKind(parts: PushKindParts): DeliveryKind {
  const { pool, secrets } = parts
  const limits = { maxJobs: MAX_BATCH, maxWaiting: MAX_WAITING }
  const reads = createBatcher({
    run: (jobs: Job[]) => pool.run(sql => findReceivers(sql, jobs)),
    toResult: (row, job) => row && toReceiver(row, job, secrets),
    ...limits,
  })
  const accepted = createBatcher({
    async run(all: Accepted[]) {
      const kept = await pool.run(sql => keepAccepted(sql, all))
      return all.map(({ id }) => kept.has(id))
    },
    toResult: isKept => isKept,
    ...limits,
  })
  const all = { ...parts, reads, accepted }
  return {
    name: 'push',
    hasTargets: hasDevices,
    dispatch: dispatchPushes,
    send: (job, signal) => sendPush(all, job, signal),
    nameTargets: nameDevices,
    explainSilence,
    schedule: PUSH_SCHEDULE_MS,
    perTarget: 4,
    timeoutMs: ATTEMPT_MS,
    leaseMs: 2 * ATTEMPT_MS,
  }
}

/** Makes one attempt. Who may be told, and who wants to be, is decided as of now. */
async function sendPush(parts: SenderParts, job: Job, signal: AbortSignal): Promise<Outcome> {
  const { pool, pusher, reads, accepted } = parts
  const site = parts.findSite()
  if (!site) return postponed(SECOND, 'The server is starting')
  const receiver = await reads.add(job)
  if (!receiver) return { kind: 'cancelled', reason: 'The device is signed out, or removed' }
  const { event, withheld, nowMs, address } = receiver
  if (!event) return { kind: 'cancelled', reason: 'The person is no member any more' }
  if (withheld !== undefined) return { kind: 'withheld', reason: withheld }
  // It was there when the job was claimed. Once it stays hidden the next claim ends the job.
  if (receiver.isHidden) return postponed(GRACE_S * SECOND, 'The event is hidden')
  const leftS = DAY_S - Math.floor(job.waitedMs / SECOND)
  if (leftS <= 0) return { kind: 'failed', reason: 'It was not accepted within a day' }

  const message = receiver.isCount
    ? await countBurst(parts, receiver, site)
    : toEventMessage(site.url, event)
  if (!message) return { kind: 'withheld', reason: WITHHELD.collapsed }
  const ttlS = job.attempt === 1 ? DAY_S : leftS
  const { verdict } = await pusher.push({ address, message, ttlS, nowMs, signal })
  await keepAttempted(async () => {
    const isAccepted = verdict.kind === 'accepted'
    if (isAccepted && (await accepted.add({ ...receiver, reason: verdict.reason }))) return
    await transact(pool, tx => keepVerdict(tx, receiver, verdict))
  })
  const outcome = toOutcome(verdict)
  // It has told of a number, not of this event.
  return receiver.isCount && outcome.kind === 'done'
    ? { kind: 'withheld', reason: WITHHELD.collapsed }
    : outcome
}

async function countBurst(
  { pool }: PushKindParts,
  { event, personId }: Receiver,
  site: Site,
): Promise<Message | undefined> {
  if (!event) return undefined
  const burst = await pool.run(sql => takeCount(sql, { ...event, personId }))
  return burst && toCountMessage(site.url, { ...event, ...burst })
}

function toOutcome(verdict: Verdict): Outcome {
  const { reason } = verdict
  switch (verdict.kind) {
    case 'accepted':
      return { kind: 'done' }
    case 'busy': {
      const { afterMs } = verdict
      return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) }
    }
    case 'unsent':
      return postponed(BUSY_MS, reason)
    default:
      return { kind: 'failed', reason }
  }
}

function postponed(afterMs: number, reason: string): Outcome {
  return { kind: 'postponed', afterMs, withinMs: DAY_S * SECOND, reason }
}

/** Whose device it is, and which: of people who are members still. */
async function nameDevices(
  sql: Queryable,
  { projectId, targetIds }: { projectId: string; targetIds: readonly string[] },
): Promise<ReadonlyMap<string, string>> {
  const rows = await sql<{ id: string; label: string; name: string }[]>`
    select d.id, d.label, r.name
    from projects p
      join memberships m on m.organization_id = p.organization_id
      join push_subscriptions d on d.person_id = m.person_id
      join people r on r.id = d.person_id
    where p.id = ${projectId} and d.id = any(${toArray(targetIds)}::uuid[])
  `
  return new Map(rows.map(({ id, label, name }) => [id, `${name}: ${label}`]))
}
