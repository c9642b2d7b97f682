import { SERVER, writeAudit } from '../audit/audit.ts'
import { toArray } from '../db/arrays.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { toId } from '../ids.ts'
import { commitWithoutFsync } from '../db/delivery-settings.ts'
import type { PushOutcome } from './outcome.ts'
import type { PushTarget } from './target.ts'

/**
 * A subscription is removed after this many consecutive refusals. A single one may be caused by our
 * key or message.
 */
const MAX_REFUSALS = 5

/** A device, and the endpoint that was used. By now the device may have another endpoint. */
export type AttemptedDevice = Pick<PushTarget, 'id' | 'endpointHash'>

/**
 * Stores the response of a push service. Returns true if the subscription was removed because of
 * it.
 */
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
      is_proven = is_proven or ${kind} = 'accepted',
      refusals = case ${kind} when 'accepted' then 0 when 'refused' then refusals + 1 else refusals end,
      flagged = case ${kind} when 'accepted' then null when 'refused' then ${reason} else flagged end
    where id = ${attempted.id} and endpoint_hash = decode(${attempted.endpointHash}, 'hex')
    returning refusals
  `
  if (!row || row.refusals < MAX_REFUSALS) return false
  return remove(tx, attempted, reason)
}

/**
 * Stores accepted pushes in one statement. It leaves out devices that are locked, because one
 * locked row would delay all others. Returns the ids of the devices; use `storePushOutcome` for the
 * others.
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
      last_push_at = now(), last_outcome = f.reason, is_proven = true, refusals = 0, flagged = null
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
