import { Type, type Static } from '@sinclair/typebox'
import { OneOf, Text } from '../../http/rules.ts'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'
import { KIND_NAMES } from './delivery-kind.ts'
import { FINAL_STATES } from './settlement.ts'

/** A delivery of one event to one target. */
export const Delivery = Type.Object(
  {
    id: Type.String(),
    eventId: Type.String(),
    kind: OneOf(KIND_NAMES),
    target: Nullable(
      Type.Object(
        {
          id: Type.String(),
          name: Nullable(Type.String(), 'Null for a deleted target.'),
        },
        closed,
      ),
      'Null when there was no target.',
    ),
    state: OneOf(['pending', ...FINAL_STATES]),
    attempts: Type.Integer({ minimum: 0 }),
    latencyMs: Nullable(
      Type.Integer({ minimum: 0 }),
      'The time from the creation of the event to its delivery, in ms.',
    ),
    reason: Nullable(Type.String(), 'Why the last attempt failed, or why there was none.'),
    at: Nullable(Timestamp, 'When it ended; null while it is pending.'),
    nextAttemptAt: Nullable(
      Timestamp,
      'Null once it has ended, while an attempt is in flight, and while its webhook is disabled.',
    ),
  },
  closed,
)
export type Delivery = Static<typeof Delivery>

export const EventDeliveries = Type.Object(
  {
    items: Type.Array(Delivery),
    nextCursor: Nullable(Type.String()),
    /** True when every kind has dispatched the event, so the list is complete. */
    isDispatched: Type.Boolean(),
  },
  closed,
)
export type EventDeliveries = Static<typeof EventDeliveries>

const page = {
  cursor: Type.Optional(
    Text({ minLength: 1, maxLength: 200, description: 'The nextCursor of the previous page.' }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
}
export const EventDeliveriesQuery = Type.Object(page)
export type EventDeliveriesQuery = Static<typeof EventDeliveriesQuery>

export const DeliveryQuery = Type.Object({
  state: Type.Optional(
    OneOf(['pending', 'dead'], 'Pending deliveries, by default, or dead letters.'),
  ),
  ...page,
})
export type DeliveryQuery = Static<typeof DeliveryQuery>
