import { isExpired } from '../../access/guard/sessions.ts'
import { writeAudit } from '../../access/audit/audit.ts'
import type { Tx } from '../../database/sql.ts'
import { transact } from '../../database/pool.ts'
import { toBodyText } from '../../http/egress/egress.ts'
import { Fault } from '../../base/errors.ts'
import type { Site } from '../../http/site.ts'
import { toId } from '../../base/ids.ts'
import { openAddress } from './address.ts'
import { toTestMessage } from './payload.ts'
import type { PushResult, PushClient, PushParts } from './encrypt-and-send.ts'
import { storePushOutcome } from './recording.ts'
import type { PushTestResult } from './subscription-schema.ts'
import { subscriptionNotFound, toSubscriptionUuid, type Subscriber } from './subscriptions.ts'

/** The shortest time between two tests of a device. */
const TEST_INTERVAL_S = 3
const TTL_S = 60

/**
 * Sends a test notification now, to this browser or to another device of the account. Returns the
 * response of the push service.
 */
export async function sendTestPush(
  {
    pool,
    secrets,
    pushClient,
    site,
  }: Pick<PushParts, 'pool' | 'secrets'> & {
    pushClient: PushClient
    site: Site
  },
  subscriber: Subscriber,
  subscriptionId: string | undefined,
): Promise<PushTestResult> {
  const device = await transact(pool, tx => reserveTest(tx, subscriber, subscriptionId))
  const pushed = await pushClient.push({
    address: openAddress(secrets, device.id, device.address),
    message: toTestMessage(site.url),
    ttlS: TTL_S,
    nowMs: device.nowMs,
    share: subscriber.accountId,
    isAwaited: true,
  })
  const { isRemoved } = await transact(pool, tx => storePushOutcome(tx, device, pushed.outcome))
  return { subscriptionId: toId('psh', device.id), isRemoved, ...toTestResult(pushed) }
}

/** Records that a test is sent now. Throws `rate_limited` within three seconds of the last test. */
async function reserveTest(
  tx: Tx,
  { accountId, sessionId, actor }: Subscriber,
  subscriptionId: string | undefined,
): Promise<{ id: string; address: string; endpointHash: string; nowMs: number }> {
  const [row] = await tx<{ id: string; address: string; hash: string; may: boolean; now: Date }[]>`
    select
      d.id, d.address, encode(d.endpoint_hash, 'hex') as hash, clock_timestamp() as now,
      coalesce(abs(extract(epoch from now() - d.tested_at)) > ${TEST_INTERVAL_S}, true) as may
    from push_subscriptions d
      join sessions s on s.id = d.session_id and not ${isExpired(tx)}
    where d.account_id = ${accountId} and ${
      subscriptionId === undefined
        ? tx`d.session_id = ${sessionId}`
        : tx`d.id = ${toSubscriptionUuid(subscriptionId)}`
    }
    for no key update of d
  `
  if (!row) throw subscriptionNotFound()
  if (!row.may) {
    throw new Fault(
      'rate_limited',
      `A device can be tested every ${TEST_INTERVAL_S} seconds. Try again shortly`,
      {
        'Retry-After': String(TEST_INTERVAL_S),
      },
    )
  }
  await tx`update push_subscriptions set tested_at = now() where id = ${row.id}`
  await writeAudit(tx, actor, { action: 'push.tested', target: toId('psh', row.id) })
  return { id: row.id, address: row.address, endpointHash: row.hash, nowMs: row.now.getTime() }
}

function toTestResult({
  outcome,
  response,
}: PushResult): Omit<PushTestResult, 'subscriptionId' | 'isRemoved'> {
  const { kind, reason } = outcome
  const result = { isAccepted: kind === 'accepted', reason, latencyMs: response?.latencyMs ?? null }
  if (!response || 'error' in response) return { ...result, status: null, body: null }
  return { ...result, status: response.status, body: toBodyText(response.body) }
}
