import { setTimeout as sleep } from 'node:timers/promises'
import { toArray } from '../../src/database/arrays.ts'
import { createPool, type Pool } from '../../src/database/pool.ts'
import { connect, type Sql } from '../../src/database/sql.ts'
import type { DeliveryKind, KindName } from '../../src/delivery/outbox/delivery-kind.ts'
import { WORKER_SETTINGS } from '../../src/database/session.ts'
import { startDeliveryWorker } from '../../src/delivery/outbox/worker.ts'
import { createEgress, type Egress } from '../../src/http/egress/egress.ts'
import type { Secrets } from '../../src/database/secrets/secrets.ts'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { testSecrets } from '../support/secret.ts'

/**
 * The delivery parts of a server without the server: its pools, and a client that may reach
 * loopback.
 */
export interface OutboxWorld {
  sql: Sql
  pool: Pool
  secrets: Secrets
  egress: Egress
  /** Appends `count` events to a project, and writes a delivery of each to every target. */
  enqueue(
    kind: KindName,
    to: { projectId: string; targetIds: readonly string[]; events: number },
  ): Promise<void>
  /** Sends every pending delivery. */
  deliver(kind: DeliveryKind): Promise<void>
}

export function openOutbox(databaseUrl: string, ca?: string): OutboxWorld {
  const sql = connect(databaseUrl, { name: 'bench', max: 2, settings: { statement_timeout: 0 } })
  const open = (name: string) =>
    createPool(databaseUrl, { name, max: 4, settings: WORKER_SETTINGS })
  const worker = open('worker')
  return {
    sql,
    pool: open('deliver'),
    secrets: testSecrets(),
    egress: createEgress({ allowCidrs: ['127.0.0.0/8'], ca }),
    async enqueue(kind, { projectId, targetIds, events }) {
      const eventIds = await appendEvents(sql, projectId, events)
      await sql`
        insert into outbox (project_id, event_id, kind, target_id)
        select ${projectId}, e.id, ${kind}, t.id
        from unnest(${toArray(eventIds)}::uuid[]) as e (id)
          cross join unnest(${toArray(targetIds)}::uuid[]) as t (id)
      `
    },
    async deliver(kind) {
      const running = startDeliveryWorker({ pool: worker, kind })
      while ((await sql`select from outbox limit 1`).count > 0) await sleep(25)
      await running.stop(0)
    },
  }
}
