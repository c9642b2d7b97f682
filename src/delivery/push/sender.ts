import { toArray } from '../../database/arrays.ts'
import { createBatcher } from '../../database/batch.ts'
import type { Queryable } from '../../database/sql.ts'
import { transact } from '../../database/pool.ts'
import type { Site } from '../../http/site.ts'
import { rememberOpened } from '../../database/secrets/secrets.ts'
import { PUSH_SCHEDULE_MS } from '../outbox/schedule.ts'
import { HIDDEN } from '../outbox/settlement.ts'
import {
  tryToRecord,
  type DeliveryAttempt,
  type DispatchingKind,
  type DeliveryOutcome,
} from '../outbox/delivery-kind.ts'
import { dispatchPushes, explainNoPush, WITHHELD_REASONS } from './dispatch.ts'
import { DAY_S, toDeliveryOutcome } from './outcome.ts'
import { toSummaryMessage, toEventMessage, type PushMessage, type Unread } from './payload.ts'
import { PUSH_TIMEOUT_MS, type PushClient, type PushParts } from './encrypt-and-send.ts'
import { addToQuietSummary, isOfEvent, isQuietSummary, toQuietSummary } from './quiet-summary.ts'
import { createRefusalLog } from './refusing-services.ts'
import { toSilenceWarning } from './silence-warning.ts'
import { keepShownPushes, type ShownPush } from './shown-pushes.ts'
import { storeAcceptedPushes, storePushOutcome, type AttemptedDevice } from './recording.ts'
import { findPushTargets, openPushTarget, takeBurstCount, type PushTarget } from './target.ts'

const SECOND = 1_000
/** The time for two requests, because the first can be too large. */
const ATTEMPT_MS = 2 * PUSH_TIMEOUT_MS
const LEASE_MS = 50 * SECOND
/** The most attempts that share a statement. */
const MAX_BATCH = 200
const WAITING = {
  kind: 'postponed',
  reason: 'It waits for another notification of its thread or storm',
  isAlone: true,
} as const
const COLLAPSED = { kind: 'withheld', reason: WITHHELD_REASONS.collapsed } as const

export interface PushKindParts extends PushParts {
  pushClient: PushClient
  site: Site
  /** Called when events are to be matched with views that have a bell. */
  onViews?(): void
}

/**
 * Creates the delivery kind for web push. Its targets are the push subscriptions of members.
 * Concurrent attempts share the statements that read targets and store accepted pushes.
 */
export function createPushKind(parts: PushKindParts): DispatchingKind {
  const { pool, pushClient, site } = parts
  const secrets = { open: rememberOpened(parts.secrets) }
  const reads = createBatcher({
    run: (attempts: DeliveryAttempt[]) => pool.run(sql => findPushTargets(sql, attempts)),
    // Undefined for a device that was removed.
    toResult: (row, attempt) => row && openPushTarget(row, attempt, secrets),
    maxJobs: MAX_BATCH,
  })
  const accepted = createBatcher({
    async run(all: (AttemptedDevice & { reason: string })[]) {
      const stored = await pool.run(sql => storeAcceptedPushes(sql, all))
      return all.map(({ id }) => stored.has(id))
    },
    toResult: isStored => isStored,
    maxJobs: MAX_BATCH,
  })
  const shown = createBatcher({
    run: (pushes: ShownPush[]) => pool.run(sql => keepShownPushes(sql, pushes)),
    toResult: unread => unread,
    maxJobs: MAX_BATCH,
  })
  const checkRefusals = createRefusalLog(pool, parts.vapidSubject)

  /** Makes one attempt. It checks membership and settings at this time, not at dispatch. */
  async function send(attempt: DeliveryAttempt, signal: AbortSignal): Promise<DeliveryOutcome> {
    const target = await reads.add(attempt)
    if (!target) return { kind: 'cancelled', reason: 'The device was signed out or removed' }
    const { nowMs, address } = target
    const leftS = DAY_S - Math.floor(attempt.waitedMs / SECOND)
    const toOther = isQuietSummary(attempt) ? toQuietSummary : toSilenceWarning
    const message = isOfEvent(attempt)
      ? await toMessage(target, leftS)
      : await toOther(pool, attempt, { target, siteUrl: site.url })
    if ('kind' in message) return message
    const { repeatMinutes } = target
    const fullS = message.ttlS ?? (repeatMinutes === null ? DAY_S : repeatMinutes * 60)
    const ttlS = attempt.attempt === 1 || !isOfEvent(attempt) ? fullS : Math.min(fullS, leftS)
    const { outcome: made } = await pushClient.push({
      ...{ address, message, ttlS, nowMs, signal },
      ...{ share: target.organizationId ?? target.accountId, begin: attempt.begin },
    })
    let isHopeless = false
    await tryToRecord(async () => {
      const { kind, reason } = made
      if (kind === 'accepted' && (await accepted.add({ ...target, reason }))) return
      ;({ isHopeless } = await transact(pool, tx => storePushOutcome(tx, target, made)))
      if (kind === 'refused') await checkRefusals()
    })
    if (isHopeless) return { kind: 'failed', reason: made.reason }
    const outcome = toDeliveryOutcome(made)
    // A summary counts the events of a burst, but does not deliver this event.
    return target.isSummary && outcome.kind === 'done' ? COLLAPSED : outcome
  }

  /** Returns the message about an event or a burst, or why there is none. */
  async function toMessage(
    target: PushTarget,
    leftS: number,
  ): Promise<PushMessage | DeliveryOutcome> {
    const { event, withheld, accountId } = target
    if (!event) return { kind: 'cancelled', reason: 'The account is no longer a member' }
    if (withheld === WITHHELD_REASONS.quiet && target.hasQuietSummary && !event.isRepeated)
      await addToQuietSummary(pool, target)
    if (withheld !== undefined) return { kind: 'withheld', reason: withheld }
    if (target.isHidden) return HIDDEN
    const afterMs = event.thread?.waitMs ?? 0
    if (afterMs > 0) return { ...WAITING, afterMs }
    if (leftS <= 0) return { kind: 'failed', reason: 'The push was not accepted within a day' }
    const burst =
      target.isSummary && (await pool.run(sql => takeBurstCount(sql, { ...event, accountId })))
    if (burst === undefined) return COLLAPSED
    const write = (unread?: Unread) =>
      burst
        ? toSummaryMessage(site.url, { ...event, ...burst }, unread)
        : toEventMessage(site.url, event, unread)
    const isAboutEvent = !burst && !event.thread?.storm
    return write(await shown.add({ id: target.id, tag: write().tag, event, isAboutEvent }))
  }

  return {
    name: 'push',
    dispatch: (sql, request) => dispatchPushes(sql, request, parts.onViews),
    send,
    getTargetNames: getDeviceNames,
    explainNoDelivery: explainNoPush,
    schedule: PUSH_SCHEDULE_MS,
    perTarget: 4,
    timeoutMs: ATTEMPT_MS,
    leaseMs: LEASE_MS,
  }
}

/** Returns the names of members' devices, as `account: device`. */
async function getDeviceNames(
  sql: Queryable,
  { projectId, targetIds }: { projectId: string; targetIds: readonly string[] },
): Promise<ReadonlyMap<string, string>> {
  const rows = await sql<{ id: string; label: string; name: string }[]>`
    select d.id, d.label, r.name
    from projects p
      join memberships m on m.organization_id = p.organization_id
      join push_subscriptions d on d.account_id = m.account_id
      join accounts r on r.id = d.account_id
    where p.id = ${projectId} and d.id = any(${toArray(targetIds)}::uuid[])
  `
  return new Map(rows.map(({ id, label, name }) => [id, `${name}: ${label}`]))
}
