import type { Tx } from '../db/sql.ts'
import type { DeliveryKind, Job, Runs } from '../outbox/kind.ts'
import { checksPlannedOnce } from '../outbox/settings.ts'
import { BACKLOG_FULL, markBacklogs } from './backlog.ts'
import { createSender, WEBHOOK_TIMEOUT_MS, type DeliveryParts } from './delivery.ts'
import { isWanted } from './filter.ts'
import { RETRY_SCHEDULE_MS } from './retry.ts'
import { explainSilence } from './silence.ts'
import { nameWebhooks } from './webhooks.ts'

/** What an attempt needs to know of its job. */
export type Attempted = Pick<Job, 'projectId' | 'eventId' | 'targetId' | 'attempt' | 'waitedMs'>

/** For the database before and after an attempt. */
const AROUND_MS = 5_000

/** Webhooks as a kind of delivery. */
export function createWebhookKind(parts: DeliveryParts): DeliveryKind {
  return {
    name: 'webhook',
    hasTargets: sql => sql`exists (
      select from webhooks w
      where w.project_id = c.project_id and w.deleted_at is null and w.disabled_at is null
    )`,
    dispatch: dispatchWebhooks,
    send: createSender(parts),
    nameTargets: nameWebhooks,
    explainSilence,
    markBacklogs,
    schedule: RETRY_SCHEDULE_MS,
    perTarget: 8,
    timeoutMs: WEBHOOK_TIMEOUT_MS + AROUND_MS,
    leaseMs: 2 * WEBHOOK_TIMEOUT_MS,
  }
}

/**
 * Writes a delivery for each webhook that is for an event, and was there when it was created; returns how many. Hidden events
 * are among them: whoever hid them may bring them back, and what is not there is not sent. Where too many wait already
 * there is a record instead.
 */
async function dispatchWebhooks(tx: Tx, { projectIds, fromSeqs, toSeqs }: Runs): Promise<number> {
  const [{ count }] = await tx<[{ count: number }]>`
    with wanted as materialized (
      select e.project_id, e.id as event_id, w.id as target_id, w.backlog_full_at is not null as is_full
      from unnest(${projectIds}::uuid[], ${fromSeqs}::bigint[], ${toSeqs}::bigint[])
          as r (project_id, from_seq, to_seq)
        join events e on e.project_id = r.project_id and e.seq > r.from_seq and e.seq <= r.to_seq
        join webhooks w on w.project_id = e.project_id
          and w.deleted_at is null and w.disabled_at is null
          -- Events know their milliseconds alone.
          -- Whoever was made in the future was made before the clock went back.
          and (
            date_trunc('milliseconds', w.created_at) <= e.created_at
            or w.created_at > now() + interval '5 s'
          )
        cross join ${checksPlannedOnce(tx)}
      where ${isWanted(tx)}
    ), queued as (
      insert into outbox (project_id, event_id, kind, target_id)
      select project_id, event_id, 'webhook', target_id
      from wanted
      where not is_full
      on conflict (project_id, event_id, kind, target_id) do nothing
      returning 1
    ), refused as (
      insert into deliveries (project_id, event_id, kind, target_id, state, reason)
      select project_id, event_id, 'webhook', target_id, 'failed', ${BACKLOG_FULL}
      from wanted
      where is_full
      on conflict (project_id, event_id, kind, target_id) do nothing
    )
    select count(*)::int as count from queued
  `
  return count
}
