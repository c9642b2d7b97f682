import { transact, type Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import type { DeliveryKind } from '../outbox/delivery-kind.ts'
import { stepSilence } from '../silences/silence-end.ts'
import { stepAlarm } from './alarm-step.ts'

/**
 * Creates the kind of timers. They are due at a time, and each attempt is a step: a transaction
 * that reads the present state and enqueues pushes. A step that is made again tells nobody twice.
 */
export function createTimerKind(pool: Pool): DeliveryKind {
  return {
    name: 'timer',
    send: attempt =>
      transact(pool, tx =>
        attempt.eventId === attempt.targetId ? stepSilence(tx, attempt) : stepAlarm(tx, attempt),
      ),
    getTargetNames,
    schedule: [0],
    perTarget: 4,
    timeoutMs: 10_000,
    leaseMs: 30_000,
  }
}

/** Returns the names of timers. Those of alarms are in the last digits of their targets. */
async function getTargetNames(
  _: Queryable,
  { projectId, targetIds }: { projectId: string; targetIds: readonly string[] },
) {
  const toName = (id: string) => {
    if (id.slice(0, -4) !== projectId.slice(0, -4)) return 'End of a silence'
    return id.endsWith('0000') ? 'Repetition' : `Stage ${id.at(-1)}`
  }
  return new Map(targetIds.map(id => [id, toName(id)]))
}
