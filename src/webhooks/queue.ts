import type { Tx } from '../db/sql.ts'
import { enqueue, resumeTarget } from '../outbox/enqueue.ts'

/** Events of one call to the outbox. */
const AT_ONCE = 1_000

/** What webhooks ask of the outbox; ids are uuids. */
export interface Queue {
  /** Has these events delivered, again if need be. One that is under way stays as it is. */
  enqueue(
    tx: Tx,
    deliveries: { projectId: string; targetId: string; eventIds: readonly string[] },
  ): Promise<void>
  /** Makes what waits for this webhook due now. */
  resume(tx: Tx, target: { projectId: string; targetId: string }): Promise<void>
}

/** The outbox, as webhooks use it. */
export const OUTBOX_QUEUE: Queue = {
  async enqueue(tx, { eventIds, ...target }) {
    for (let at = 0; at < eventIds.length; at += AT_ONCE) {
      const some = eventIds.slice(at, at + AT_ONCE)
      await enqueue(tx, { kind: 'webhook', ...target, eventIds: some })
    }
  },
  async resume(tx, target) {
    await resumeTarget(tx, { kind: 'webhook', ...target })
  },
}
