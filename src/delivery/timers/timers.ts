import type { Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import { transact } from '../../database/pool.ts'
import type { DeliveryKind } from '../outbox/delivery-kind.ts'
import { stepSilence } from '../silences/silence-end.ts'
import { stepAlarm } from './alarm-step.ts'

const SECOND = 1_000

/**
 * Creates the kind of timers. They are due at a time, and each attempt is a step: a transaction
 * that reads the present state and enqueues pushes. A step that is made again tells nobody twice.
 */
export function createTimerKind(pool: Pool): DeliveryKind {
  return {
    name: 'timer',
    send: attempt =>
      attempt.eventId === attempt.targetId
        ? stepSilence(pool, attempt)
        : transact(pool, tx => stepAlarm(tx, attempt)),
    getTargetNames,
    schedule: [0],
    perTarget: 4,
    timeoutMs: 10 * SECOND,
    leaseMs: 30 * SECOND,
  }
}

/** Returns the names of timers, which are in the last digits of their targets. */
async function getTargetNames(_: Queryable, { targetIds }: { targetIds: readonly string[] }) {
  return new Map(
    targetIds.map(id => [id, id.endsWith('0000') ? 'Repetition' : `Stage ${id.at(-1)}`]),
  )
}
