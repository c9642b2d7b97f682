import { Elysia } from 'elysia'
import { succeedRead, type SessionGuard } from '../../access/guard/guard.ts'
import { writeAudit } from '../../access/audit/audit.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { replayDeadLetter } from './enqueue.ts'
import {
  listDeadLetters,
  listEventDeliveries,
  listPendingDeliveries,
  toDeliveries,
} from './deliveries.ts'
import type { Outbox } from './outbox.ts'
import {
  Delivery,
  DeliveryQuery,
  EventDeliveries,
  EventDeliveriesQuery,
} from './delivery-schema.ts'

const tags = ['Events']

export interface DeliveryParts {
  guard: SessionGuard
  outbox: Pick<Outbox, 'kinds' | 'wakeWorkers'>
}

/**
 * Routes for the deliveries of an event, and for a project's pending deliveries and dead letters.
 */
export function deliveryRoutes({ guard, outbox }: DeliveryParts) {
  return new Elysia({ name: 'outbox' })
    .use(guard)
    .get(
      '/api/projects/:projectId/deliveries',
      async ({ call, query }) => {
        const { projectId } = call
        const { kinds } = outbox
        const list = query.state === 'dead' ? listDeadLetters : listPendingDeliveries
        return succeedRead(call, sql => list(sql, { projectId, kinds, query }))
      },
      {
        project: 'deliveries.read',
        query: DeliveryQuery,
        response: { 200: SuccessOf(PageOf(Delivery)) },
        detail: {
          operationId: 'listDeliveries',
          summary: 'List pending deliveries or dead letters',
          tags,
        },
      },
    )
    .post(
      '/api/projects/:projectId/deliveries/:deliveryId/replay',
      async ({ call, params: { deliveryId } }) => {
        const { organizationId, projectId, actor } = call
        const { kinds } = outbox
        const delivery = await transact(call.pool, async tx => {
          const row = await replayDeadLetter(tx, { projectId, id: parseId('dlv', deliveryId) })
          await writeAudit(tx, actor, {
            action: 'delivery.replayed',
            organizationId,
            projectId,
            target: toId('dlv', row.id),
            details: { kind: row.kind },
          })
          const [delivery] = await toDeliveries(tx, [row], { projectId, kinds })
          // One row becomes one delivery.
          return delivery as Delivery
        })
        outbox.wakeWorkers()
        return succeed(call, 200, delivery)
      },
      {
        project: 'deliveries.replay',
        response: { 200: SuccessOf(Delivery) },
        detail: {
          operationId: 'replayDelivery',
          summary: 'Replay a dead letter',
          tags,
        },
      },
    )
    .get(
      '/api/projects/:projectId/events/:eventId/deliveries',
      async ({ call, params, query }) => {
        const { projectId } = call
        const { kinds } = outbox
        const eventId = parseId('evt', params.eventId) ?? newId('evt').uuid
        const deliveries = await call.pool.run(sql =>
          listEventDeliveries(sql, { projectId, eventId, kinds, query }),
        )
        return succeed(call, 200, deliveries)
      },
      {
        project: 'events.read',
        query: EventDeliveriesQuery,
        response: { 200: SuccessOf(EventDeliveries) },
        detail: {
          operationId: 'listEventDeliveries',
          summary: 'List the deliveries of an event',
          tags,
        },
      },
    )
}
