import type { Delivery } from '../../../src/delivery/outbox/delivery-schema.ts'
import { WITHHELD_REASONS } from '../../../src/delivery/push/dispatch.ts'

/** A page that asks again gets the same times. */
const STARTED_MS = Date.now()
const ago = (minutes: number) => new Date(STARTED_MS - minutes * 60_000).toISOString()

/** A delivery as a server returns it. */
export function toDelivery(some: Partial<Delivery>): Delivery {
  return {
    id: 'dlv_1',
    eventId: 'evt_7',
    kind: 'push',
    target: { id: 'psh_1', name: 'Ada Lovelace: Firefox on Android' },
    state: 'delivered',
    attempts: 1,
    latencyMs: 380,
    reason: null,
    at: ago(12),
    nextAttemptAt: null,
    ...some,
  }
}

/** A delivery in each possible state. */
export function listDeliveries(): Delivery[] {
  const hook = (name: string) => ({ id: `whk_${name}`, name })
  const none = { attempts: 0, latencyMs: null }
  return [
    toDelivery({ id: 'dlv_1' }),
    toDelivery({
      ...{ id: 'dlv_2', ...none, state: 'withheld', reason: WITHHELD_REASONS.muted },
      target: { id: 'psh_2', name: 'Charles Babbage: Safari on iPhone' },
    }),
    toDelivery({
      id: 'dlv_3',
      ...none,
      state: 'withheld',
      reason: WITHHELD_REASONS.quiet,
      target: null,
    }),
    toDelivery({
      ...{ id: 'dlv_4', kind: 'webhook', attempts: 3, latencyMs: 65_200 },
      target: hook('Order archive'),
    }),
    toDelivery({
      ...{ id: 'dlv_5', kind: 'webhook', state: 'pending', attempts: 2, latencyMs: null, at: null },
      ...{ reason: 'The receiver answered 503', nextAttemptAt: ago(-25), target: hook('Billing') },
    }),
    toDelivery({
      ...{ id: 'dlv_6', kind: 'webhook', state: 'dead', attempts: 10, latencyMs: null },
      ...{ reason: 'No connection could be made to this address', target: hook('x'.repeat(200)) },
    }),
    toDelivery({
      ...{
        id: 'dlv_7',
        state: 'cancelled',
        ...none,
        reason: 'The device was signed out or removed',
      },
      target: { id: 'psh_3', name: null },
    }),
    toDelivery({
      ...{ id: 'dlv_8', state: 'failed', latencyMs: null, reason: 'The push service answered 403' },
      target: { id: 'psh_4', name: 'Ada Lovelace: Chrome on Linux' },
    }),
  ]
}
