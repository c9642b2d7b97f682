import type { Pool } from '../../database/pool.ts'
import type { DeliveryAttempt, DeliveryOutcome } from '../outbox/delivery-kind.ts'

/** Makes the step that a silence's timer is due for. */
export async function stepSilence(
  _pool: Pool,
  _attempt: DeliveryAttempt,
): Promise<DeliveryOutcome> {
  return { kind: 'cancelled', reason: 'The silence has ended' }
}
