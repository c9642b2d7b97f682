import { SERVER, writeAudit } from '../audit/audit.ts'
import type { Tx } from '../db/sql.ts'
import { toId } from '../ids.ts'
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
