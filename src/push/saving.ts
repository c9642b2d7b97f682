import { createHash } from 'node:crypto'
import { writeAudit } from '../audit/audit.ts'
import type { Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { newId, toId } from '../ids.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { toLabel } from '../user-agent.ts'
import type { NewSubscription } from './schema.ts'
import { openAddress, sealAddress, type Address, type Subscriber } from './subscriptions.ts'

interface Known {
  id: string
  person_id: string
  session_id: string
  address: string
  hash: string
}

/**
 * Remembers what the browser of this session has subscribed to, instead of what it had before; said again, it changes
 * nothing. A browser keeps its endpoint whoever signs in there: it goes to who is signed in now, and its keys tell that it is the
 * same browser. Returns the id.
 */
export async function saveSubscription(
  tx: Tx,
  subscriber: Subscriber,
  { endpoint, keys, label }: { endpoint: URL } & Pick<NewSubscription, 'keys' | 'label'>,
  secrets: Secrets,
): Promise<string> {
  const { personId, sessionId, actor } = subscriber
  const address: Address = {
    endpoint: endpoint.href,
    p256dh: keys.p256dh.replace(/=+$/, ''),
    auth: keys.auth.replace(/=+$/, ''),
  }
  const hash = createHash('sha256').update(address.endpoint).digest('hex')
  const known = await holdKnown(tx, sessionId, hash)
  const own = known.find(row => row.session_id === sessionId)
  const same = known.find(row => row.hash === hash)
  if (same && !isSame(openAddress(secrets, same.id, same.address), address)) {
    // Push services give no endpoint twice: whoever has one without its keys is not that browser.
    if (same.person_id !== personId) {
      throw new Fault('conflict', 'This endpoint belongs to another browser: subscribe anew')
    }
  } else if (same && same === own) {
    if (label !== undefined) {
      await tx`update push_subscriptions set label = ${label.trim()} where id = ${same.id}`
    }
    return toId('psh', same.id)
  }
  // What the browser had before keeps its name and its settings, unless it was another person's.
  const kept = own ?? (same?.person_id === personId ? same : undefined)
  for (const { id } of known.filter(row => row !== kept)) {
    await tx`delete from push_subscriptions where id = ${id}`
  }
  const uuid = kept?.id ?? newId('psh').uuid
  const name = label?.trim() ?? null
  await tx`
    insert into push_subscriptions as d (
      id, person_id, session_id, endpoint_hash, address, host, label
    )
    values (
      ${uuid}, ${personId}, ${sessionId}, decode(${hash}, 'hex'), ${sealAddress(secrets, uuid, address)},
      ${endpoint.host}, ${name ?? toLabel(actor.userAgent ?? '')}
    )
    on conflict (id) do update set
      session_id = excluded.session_id, endpoint_hash = excluded.endpoint_hash,
      address = excluded.address, host = excluded.host, label = coalesce(${name}, d.label),
      refusals = 0, flagged = null
  `
  const id = toId('psh', uuid)
  const action = kept ? 'push.renewed' : 'push.subscribed'
  await writeAudit(tx, actor, { action, target: id, details: { host: endpoint.host } })
  return id
}

/** What this session has, and who has this endpoint, locked: of two that come at once the second sees what the first did. */
async function holdKnown(tx: Tx, sessionId: string, hash: string): Promise<Known[]> {
  const session = await tx`select id from sessions where id = ${sessionId} for no key update`
  if (session.count === 0) throw new Fault('signed_out', 'Sign in first')
  await tx`select pg_advisory_xact_lock(hashtextextended(${`push ${hash}`}, 0))`
  return await tx<Known[]>`
    select d.id, d.person_id, d.session_id, d.address, encode(d.endpoint_hash, 'hex') as hash
    from push_subscriptions d
    where d.session_id = ${sessionId} or d.endpoint_hash = decode(${hash}, 'hex')
    order by d.id
    for update
  `
}

function isSame(one: Address, other: Address): boolean {
  return one.p256dh === other.p256dh && one.auth === other.auth
}
