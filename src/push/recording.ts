import { SERVER, writeAudit } from '../audit/audit.ts'
import { toArray } from '../db/arrays.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { toId } from '../ids.ts'
import { commitWithoutFsync } from '../db/delivery-settings.ts'
import type { PushOutcome } from './outcome.ts'
import type { PushTarget } from './target.ts'

/** Consecutive refusals after which a subscription is removed. A single one may be the fault of our key or message. */
const MAX_REFUSALS = 5

/** A device, and the endpoint that an attempt was made to: the device may have another one by now. */
export type AttemptedDevice = Pick<PushTarget, 'id' | 'endpointHash'>

/** Stores what a push service answered. Returns whether the subscription was removed for it. */
export async function storePushOutcome(
  tx: Tx,
  attempted: AttemptedDevice,
  { kind, reason }: PushOutcome,
): Promise<boolean> {
  if (kind === 'unsent') return false
  if (kind === 'gone') return remove(tx, attempted, reason)
  const [row] = await tx<{ refusals: number }[]>`
    update push_subscriptions set
      last_push_at = now(),
      last_outcome = ${reason},
      refusals = case ${kind} when 'accepted' then 0 when 'refused' then refusals + 1 else refusals end,
      flagged = case ${kind} when 'accepted' then null when 'refused' then ${reason} else flagged end
    where id = ${attempted.id} and endpoint_hash = decode(${attempted.endpointHash}, 'hex')
    returning refusals
  `
  if (!row || row.refusals < MAX_REFUSALS) return false
  return remove(tx, attempted, reason)
}

/**
 * Stores accepted pushes, of devices that are not locked: one locked row would delay all others. Returns the ids of
 * those that were stored; `storeOutcome` is for the rest.
 */
export async function storeAcceptedPushes(
  sql: Queryable,
  accepted: readonly (AttemptedDevice & { reason: string })[],
): Promise<Set<string>> {
  const rows = await sql<{ id: string }[]>`
    with made as materialized (
      select a.id, a.hash, min(a.reason) as reason
      from unnest(
          ${toArray(accepted.map(({ id }) => id))}::uuid[],
          ${toArray(accepted.map(({ endpointHash }) => endpointHash))}::text[],
          ${toArray(accepted.map(({ reason }) => reason))}::text[]
        ) as a (id, hash, reason)
        cross join ${commitWithoutFsync(sql)}
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
      last_push_at = now(), last_outcome = f.reason, refusals = 0, flagged = null
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
