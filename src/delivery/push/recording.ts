import { SERVER, writeAudit } from '../../access/audit/audit.ts'
import { toArray } from '../../database/arrays.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import { toId } from '../../base/ids.ts'
import type { PushOutcome } from './outcome.ts'
import type { PushTarget } from './target.ts'

/** After this many refusals of a device alone, each event is pushed to it once, without retries. */
const MAX_REFUSALS = 5

/** A device, and the endpoint that was used. By now the device may have another endpoint. */
export type AttemptedDevice = Pick<PushTarget, 'id' | 'endpointHash'>

/** The consequences of a response. */
export interface StoredOutcome {
  isRemoved: boolean
  /** True if the device alone was refused so often that retries are of no use. */
  isHopeless: boolean
}

/**
 * Stores the response of a push service. A refusal counts against the device only if another device
 * of the same push service was accepted since the refusal before, because all devices share our
 * clock, contact and key. An acceptance of the device itself would have ended its refusals.
 */
export async function storePushOutcome(
  tx: Tx,
  attempted: AttemptedDevice,
  outcome: PushOutcome,
): Promise<StoredOutcome> {
  const { kind, reason } = outcome
  if (kind === 'unsent') return { isRemoved: false, isHopeless: false }
  if (kind === 'gone') return { isRemoved: await remove(tx, attempted, reason), isHopeless: false }
  const where = tx`d.id = ${attempted.id} and d.endpoint_hash = decode(${attempted.endpointHash}, 'hex')`
  if (kind === 'refused') {
    const { aheadMs } = outcome
    const aheadS = aheadMs === undefined ? null : Math.round(aheadMs / 1000)
    const [row] = await tx<{ refusals: number }[]>`
      update push_subscriptions d set
        last_push_at = now(), last_outcome = ${reason}, refused_at = now(), service_ahead_s = ${aheadS},
        refusals = least(d.refusals + r.is_own::int, 30000),
        flagged = case when d.refusals > 0 or r.is_own then ${reason} end
      from push_subscriptions o
        cross join lateral (
          select exists (
            select
            from push_subscriptions e
            where e.host = o.host and e.accepted_at > o.refused_at and e.accepted_at <= now()
          ) as is_own
        ) r
      where o.id = d.id and ${where}
      returning d.refusals
    `
    return { isRemoved: false, isHopeless: (row?.refusals ?? 0) >= MAX_REFUSALS }
  }
  await tx`
    update push_subscriptions d set
      last_push_at = now(), last_outcome = ${reason}
      ${kind === 'accepted' ? tx`, ${accepted(tx)}` : tx``}
    where ${where}
  `
  return { isRemoved: false, isHopeless: false }
}

/** The columns that an accepted push sets. */
function accepted(sql: Queryable): Fragment {
  return sql`
    accepted_at = now(), is_proven = true, refused_at = null, service_ahead_s = null, refusals = 0, flagged = null
  `
}

/**
 * Stores accepted pushes in one statement. It leaves out devices that are locked, because one
 * locked row would delay all others. Returns the ids of the devices; use `storePushOutcome` for the
 * others.
 */
export async function storeAcceptedPushes(
  sql: Queryable,
  pushes: readonly (AttemptedDevice & { reason: string })[],
): Promise<Set<string>> {
  const rows = await sql<{ id: string }[]>`
    with made as materialized (
      select a.id, a.hash, min(a.reason) as reason
      from unnest(
          ${toArray(pushes.map(({ id }) => id))}::uuid[],
          ${toArray(pushes.map(({ endpointHash }) => endpointHash))}::text[],
          ${toArray(pushes.map(({ reason }) => reason))}::text[]
        ) as a (id, hash, reason)
        -- After a crash, the lost work is done again.
        cross join set_config('synchronous_commit', 'off', true)
      group by a.id, a.hash
    ), free as materialized (
      select m.id, m.reason
      from made m
        cross join lateral (
          select d.id
          from push_subscriptions d
          where d.id = m.id and d.endpoint_hash = decode(m.hash, 'hex')
          for no key update skip locked
        ) d
    )
    update push_subscriptions d set
      last_push_at = now(), last_outcome = f.reason, ${accepted(sql)}
    from free f
    where d.id = f.id
    returning d.id
  `
  return new Set(rows.map(({ id }) => id))
}

async function remove(
  tx: Tx,
  { id, endpointHash }: AttemptedDevice,
  reason: string,
): Promise<boolean> {
  const removed = await tx`
    delete from push_subscriptions
    where id = ${id} and endpoint_hash = decode(${endpointHash}, 'hex')
  `
  if (removed.count === 0) return false
  const target = toId('psh', id)
  await writeAudit(tx, SERVER, { action: 'push.removed', target, details: { reason } })
  return true
}
