import { Kind, Type, type Static } from '@sinclair/typebox'
import { Name } from '../../access/guard/schema.ts'
import { defineRule, issue, NO_ISSUES, OneOf, Text } from '../../http/rules.ts'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'
import { IsoTimestamp } from '../../log/events/schema.ts'
import { PRESETS } from './presets.ts'
import { MAX_TEMPLATE } from '../../log/events/template.ts'

const Url = Text({
  minLength: 1,
  maxLength: 2048,
  description: 'The URL that receives events: https or http, at a public address.',
})
/** The types of webhooks. Those of the audit log are from before 0.4.0, and disabled. */
const WEBHOOK_TYPES = ['event.created', 'audit.entry'] as const
export type WebhookType = (typeof WEBHOOK_TYPES)[number]
export const AUDIT_WEBHOOKS_REMOVED =
  'Webhooks of the audit log were removed in 0.4.0. Read it at /api/organizations/{organizationId}/audit'

const NEW_TYPE = defineRule('NewWebhookType', value =>
  value === 'event.created'
    ? NO_ISSUES
    : issue(
        'invalid_value',
        value === 'audit.entry' ? AUDIT_WEBHOOKS_REMOVED : 'Must be event.created',
      ),
)

const ChannelIds = Nullable(
  Type.Array(Text({ minLength: 1, maxLength: 50 }), {
    maxItems: 100,
    description: 'The ids of the channels whose events it receives; null for all.',
  }),
)

const WebhookFields = Type.Object({
  url: Url,
  name: Type.Optional(Nullable(Name, 'Null for the host.')),
  channels: Type.Optional(ChannelIds),
  preset: Type.Optional(OneOf(PRESETS, 'The format of the body.')),
  body: Type.Optional(
    Nullable(
      Text({ minLength: 1, maxLength: MAX_TEMPLATE }),
      'JSON whose texts have places such as {{title}}; null for the body of the preset.',
    ),
  ),
  headers: Type.Optional(
    Type.Record(Type.String(), Nullable(Text({ maxLength: 2048 })), {
      description: 'All own headers, at most 10. Null keeps the value of one that is stored.',
    }),
  ),
  viewId: Type.Optional(
    Nullable(
      Text({ minLength: 1, maxLength: 50 }),
      'The shared view whose matches it receives; null for every event of its channels.',
    ),
  ),
})

export const NewWebhook = Type.Object(
  {
    ...WebhookFields.properties,
    type: Type.Optional(
      Type.Unsafe<'event.created'>({ [Kind]: NEW_TYPE, type: 'string', enum: ['event.created'] }),
    ),
  },
  { examples: [{ url: 'https://hooks.example.com/tidings', name: 'Billing' }] },
)
export type NewWebhook = Static<typeof NewWebhook>

export const WebhookChanges = Type.Partial(WebhookFields, {
  examples: [{ name: 'Billing', channels: null }],
})
export type WebhookChanges = Static<typeof WebhookChanges>

/** A webhook as the API shows it. Only admins see the URL, and nobody sees the secret. */
export const Webhook = Type.Object(
  {
    id: Type.String(),
    name: Type.String({ description: 'The host, if no name was given.' }),
    host: Type.String(),
    url: Nullable(Type.String({ description: 'Null unless you are an admin.' })),
    type: OneOf(WEBHOOK_TYPES),
    preset: OneOf(PRESETS),
    channels: Nullable(Type.Array(Type.String())),
    body: Nullable(Type.String(), 'Null for that of the preset, and unless you are an admin.'),
    headers: Type.Array(Type.String(), {
      description: 'The names of its own headers. Empty unless you are an admin.',
    }),
    viewId: Nullable(Type.String(), 'The view whose matches it receives; null for all events.'),
    isEnabled: Type.Boolean(),
    disabledAt: Nullable(Timestamp),
    disabledReason: Nullable(Type.String()),
    breaker: Type.Object(
      {
        state: OneOf(['closed', 'limited', 'paused', 'probing']),
        failures: Type.Integer({ description: 'Consecutive failures.' }),
        failingSince: Nullable(Timestamp),
        pausedUntil: Nullable(Timestamp),
      },
      closed,
    ),
    backlogFullAt: Nullable(Timestamp),
    previousSecretUntil: Nullable(Timestamp),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  closed,
)
export type Webhook = Static<typeof Webhook>

export const CreatedWebhook = Type.Object(
  {
    ...Webhook.properties,
    secret: Type.String({ description: 'The signing secret. It cannot be read again.' }),
  },
  closed,
)
export type CreatedWebhook = Static<typeof CreatedWebhook>

/** The requests that a webhook with these fields would send about the latest matching events. */
export const WebhookPreview = Type.Object(
  {
    url: Type.String(),
    headers: Type.Record(Type.String(), Type.String(), {
      description:
        'Without webhook-id, webhook-timestamp and webhook-signature. Values are hidden.',
    }),
    items: Type.Array(Type.Object({ eventId: Type.String(), body: Type.String() }, closed), {
      description: 'The bodies for up to five events, newest first.',
    }),
  },
  closed,
)
export type WebhookPreview = Static<typeof WebhookPreview>

export const SecretRotation = Type.Object(
  {
    graceHours: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 168,
        default: 24,
        description: 'How long both secrets sign.',
      }),
    ),
  },
  { examples: [{ graceHours: 24 }] },
)
export type SecretRotation = Static<typeof SecretRotation>

export const RotatedSecret = Type.Object(
  { id: Type.String(), secret: Type.String(), previousSecretUntil: Nullable(Timestamp) },
  closed,
)
export type RotatedSecret = Static<typeof RotatedSecret>

export const DeletedWebhook = Type.Object({ id: Type.String() }, closed)

/** One attempt. `status` is null without a response. */
export const Attempt = Type.Object(
  {
    id: Type.String(),
    kind: OneOf([...WEBHOOK_TYPES, 'event.acknowledged', 'webhook.test']),
    eventId: Nullable(Type.String(), 'Null for a test.'),
    eventTitle: Nullable(Type.String(), 'Null for an event that was deleted, or a test.'),
    number: Type.Integer(),
    outcome: OneOf(['delivered', 'failed']),
    status: Nullable(Type.Integer()),
    error: Nullable(Type.String()),
    reason: Type.String(),
    response: Nullable(Type.String({ description: 'The first 1 KiB of the response, as text.' })),
    latencyMs: Type.Integer(),
    startedAt: Timestamp,
  },
  closed,
)
export type Attempt = Static<typeof Attempt>

/** A request without its signature, because with it anyone could replay the body in our name. */
const AttemptRequest = Type.Object(
  {
    method: Type.Literal('POST'),
    headers: Type.Record(Type.String(), Type.String(), {
      description: 'host, content-type, webhook-id and webhook-timestamp.',
    }),
    body: Nullable(Type.String({ description: 'Rebuilt from the event; null if it was deleted.' })),
    note: Nullable(
      Type.String({
        description: 'Why the body differs from what was sent; null if it is identical.',
      }),
    ),
  },
  closed,
)

export const AttemptDetail = Type.Object(
  { ...Attempt.properties, request: Nullable(AttemptRequest) },
  closed,
)
export type AttemptDetail = Static<typeof AttemptDetail>

export const RecoverInput = Type.Object(
  {
    since: IsoTimestamp(
      'Recovers events that were accepted at this time or later, at most 30 days ago.',
    ),
    until: Type.Optional(
      IsoTimestamp('Recovers events that were accepted before this time; now by default.'),
    ),
    cursor: Type.Optional(
      Text({
        minLength: 1,
        maxLength: 100,
        description: 'The nextCursor of the previous response.',
      }),
    ),
  },
  { examples: [{ since: '2026-11-20T09:30:00Z' }] },
)
export type RecoverInput = Static<typeof RecoverInput>

export const QueuedEvents = Type.Object(
  {
    events: Type.Integer({ description: 'The number of events that are delivered again.' }),
    nextCursor: Nullable(
      Type.String({
        description: 'Pass it as `cursor` to continue; null when all events are queued.',
      }),
    ),
  },
  closed,
)
export type QueuedEvents = Static<typeof QueuedEvents>
