import { writeAudit, SERVER } from '../audit/audit.ts'
import type { Tx } from '../db/sql.ts'
import { toId } from '../ids.ts'
import { FAILED_FOR_DAYS, isHopeless, toFailed, type Breaker } from './breaker.ts'
import type { Receiver } from './receiver.ts'
import type { Verdict } from './verdict.ts'

/** Counts a failure against a webhook: many in a row pause it, and one that is gone or hopeless is disabled. */
export async function keepFailure(tx: Tx, receiver: Receiver, verdict: Verdict): Promise<void> {
  const { projectId, id } = receiver
  const [row] = await tx<
    {
      failures: number
      failing_since: Date | null
      pauses: number
      paused_until: Date | null
      is_enabled: boolean
      now: Date
    }[]
  >`
    select failures, failing_since, pauses, paused_until, disabled_at is null as is_enabled,
      clock_timestamp() as now
    from webhooks
    where project_id = ${projectId} and id = ${id} and deleted_at is null
    for no key update
  `
  if (!row) return
  const nowMs = row.now.getTime()
  const before: Breaker = {
    failures: row.failures,
    failingSinceMs: row.failing_since?.getTime() ?? null,
    pauses: row.pauses,
    pausedUntilMs: row.paused_until?.getTime() ?? null,
  }
  const breaker = toFailed(before, receiver.isProbe, nowMs)
  const hopeless = isHopeless(breaker, nowMs) ? FAILED_FOR_DAYS : undefined
  const reason = row.is_enabled ? (verdict.kind === 'gone' ? verdict.reason : hopeless) : undefined
  await tx`
    update webhooks set
      failures = ${breaker.failures},
      failing_since = ${toDate(breaker.failingSinceMs)},
      pauses = ${breaker.pauses},
      paused_until = ${toDate(breaker.pausedUntilMs)},
      disabled_at = case when ${reason ?? null}::text is null then disabled_at else now() end,
      disabled_reason = coalesce(${reason ?? null}, disabled_reason)
    where project_id = ${projectId} and id = ${id}
  `
  if (reason === undefined) return
  await writeAudit(tx, SERVER, {
    action: 'webhook.disabled',
    organizationId: receiver.origin.organization.id,
    projectId,
    target: toId('whk', id),
    details: { reason },
  })
}

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms)
}
