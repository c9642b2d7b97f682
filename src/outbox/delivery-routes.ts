import { apiEndpoint, type ApiEndpoint } from '../accounts/endpoint.ts'
import { writeAudit } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import type { Queryable } from '../db/sql.ts'
import { transact } from '../db/transaction.ts'
import { Fault } from '../errors.ts'
import { PageOf } from '../http/envelope.ts'
import { parseId, toId } from '../ids.ts'
import { replay } from './dead-letters.ts'
import type { DeliveryKind } from './kind.ts'
import { listDead, listOfEvent, listPending, listSilence, toDeliveries } from './listing.ts'
import type { Outbox } from './outbox.ts'
import { Delivery, DeliveryQuery, EventDeliveries, PageQuery } from './schema.ts'

export interface DeliveryParts {
  pool: Pool
  outbox: Pick<Outbox, 'kinds' | 'wakeWorkers'>
}

/** Who was told of an event, what still waits, and what was given up. */
export function deliveryRoutes({ pool, outbox }: DeliveryParts): ApiEndpoint[] {
  return [
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/deliveries',
      action: 'deliveries.read',
      query: DeliveryQuery,
      success: { status: 200, data: PageOf(Delivery) },
      handle: ({ projectId, query }) =>
        pool.run(async sql => {
          const list = query.state === 'dead' ? listDead : listPending
          return JSON.stringify(await list(sql, { projectId, kinds: outbox.kinds, query }))
        }),
    }),
    apiEndpoint({
      method: 'POST',
      path: '/api/projects/:projectId/deliveries/:deliveryId/replay',
      action: 'deliveries.replay',
      success: { status: 200, data: Delivery },
      async handle({ organizationId, projectId, actor, params: { deliveryId = '' } }) {
        const delivery = await transact(pool, async tx => {
          const row = await replay(tx, { projectId, id: parseId('dlv', deliveryId) })
          await writeAudit(tx, actor, {
            action: 'delivery.replayed',
            organizationId,
            projectId,
            target: toId('dlv', row.id),
            details: { kind: row.kind },
          })
          const { kinds } = outbox
          const [delivery] = await toDeliveries(tx, { rows: [row], projectId, kinds })
          return delivery
        })
        outbox.wakeWorkers()
        return JSON.stringify(delivery)
      },
    }),
    apiEndpoint({
      method: 'GET',
      path: '/api/projects/:projectId/events/:eventId/deliveries',
      action: 'events.read',
      query: PageQuery,
      success: { status: 200, data: EventDeliveries },
      handle: ({ projectId, query, params }) =>
        pool.run(async sql => {
          const { kinds } = outbox
          const eventId = parseId('evt', params['eventId'] ?? '')
          const isDispatched = await checkDispatched(sql, { projectId, eventId, kinds })
          const event = { projectId, eventId: eventId ?? '' }
          const page = await listOfEvent(sql, { ...event, kinds, query })
          const isFirst = query.cursor === undefined
          const silent = kinds.filter(({ name }) => page.items.every(({ kind }) => kind !== name))
          // Of a kind that is not on a first page that has an end there is nothing.
          const silence =
            isDispatched && isFirst && page.nextCursor === null
              ? await listSilence(sql, { ...event, kinds: silent })
              : []
          return JSON.stringify({ ...page, items: [...silence, ...page.items], isDispatched })
        }),
    }),
  ]
}

/** Whether every kind has come to an event. Throws `not_found` for one of which nothing is left, not even a record. */
async function checkDispatched(
  sql: Queryable,
  event: { projectId: string; eventId: string | undefined; kinds: readonly DeliveryKind[] },
): Promise<boolean> {
  const { projectId, eventId, kinds } = event
  const [row] = eventId
    ? await sql<{ is_known: boolean; cursors: number }[]>`
        select
          e.id is not null or exists (
            select from delivery_records d where d.project_id = ${projectId} and d.event_id = ${eventId}
          ) as is_known,
          (
            select count(*)::int
            from delivery_cursors c
            where c.project_id = ${projectId} and (e.id is null or c.seq >= e.seq)
          ) as cursors
        from (values (true)) as one
          left join events e on e.project_id = ${projectId} and e.id = ${eventId}
      `
    : []
  if (!row?.is_known) throw new Fault('not_found', 'No event has this id')
  return row.cursors >= kinds.length
}
