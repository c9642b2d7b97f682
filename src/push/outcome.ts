import { SERVER, writeAudit } from '../audit/audit.ts'
import { toArray } from '../db/arrays.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { toId } from '../ids.ts'
import { committedSoon } from '../outbox/settings.ts'
import type { Receiver } from './receiver.ts'
import type { Verdict } from './verdict.ts'

/** Refusals in a row after which a subscription is removed: no single one proves that it is of no use. */
const MAX_REFUSALS = 5

/**
 * Remembers what a push service said, of a device that still has the endpoint to which it was said. Returns whether the
 * subscription was removed for it.
 */
export async function keepVerdict(
  tx: Tx,
  { id, endpointHash }: Pick<Receiver, 'id' | 'endpointHash'>,
  { kind, reason }: Verdict,
): Promise<boolean> {
  if (kind === 'unsent') return false
  if (kind === 'gone') return remove(tx, { id, endpointHash }, reason)
  const [row] = await tx<{ refusals: number }[]>`
    update push_subscriptions set
      last_push_at = now(),
      last_outcome = ${reason},
      refusals = case ${kind} when 'accepted' then 0 when 'refused' then refusals + 1 else refusals end,
      flagged = case ${kind} when 'accepted' then null when 'refused' then ${reason} else flagged end
    where id = ${id} and endpoint_hash = decode(${endpointHash}, 'hex')
    returning refusals
  `
  if (!row || row.refusals < MAX_REFUSALS) return false
  return remove(tx, { id, endpointHash }, reason)
}

/** That a push service took something for a device. */
export interface Accepted extends Pick<Receiver, 'id' | 'endpointHash'> {
  reason: string
}

/**
 * Remembers what was accepted, for devices that nobody holds: of one that is locked the others know nothing. Returns the
 * ids of those for which it was kept; `keepVerdict` is for the rest.
 */
export async function keepAccepted(
  sql: Queryable,
  accepted: readonly Accepted[],
): Promise<Set<string>> {
  const rows = await sql<{ id: string }[]>`
    with told as materialized (
      select a.id, a.hash, min(a.reason) as reason
      from unnest(
          ${toArray(accepted.map(({ id }) => id))}::uuid[],
          ${toArray(accepted.map(({ endpointHash }) => endpointHash))}::text[],
          ${toArray(accepted.map(({ reason }) => reason))}::text[]
        ) as a (id, hash, reason)
        cross join ${committedSoon(sql)}
      group by a.id, a.hash
    ), free as materialized (
      select t.id, t.reason
      from told t
        cross join lateral (
          select d.id
          from push_subscriptions d
          where d.id = t.id and d.endpoint_hash = decode(t.hash, 'hex')
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
  { id, endpointHash }: Pick<Receiver, 'id' | 'endpointHash'>,
  reason: string,
): Promise<boolean> {
  const removed = await tx`
    delete from push_subscriptions
    where id = ${id} and endpoint_hash = decode(${endpointHash}, 'hex')
  `
  if (removed.count === 0) return false
  await writeAudit(tx, SERVER, {
    action: 'push.removed',
    target: toId('psh', id),
    details: { reason },
  })
  return true
}
