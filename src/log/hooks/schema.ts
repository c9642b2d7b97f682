import { Type, type Static } from '@sinclair/typebox'
import { Name } from '../../access/guard/schema.ts'
import { OneOf, Text } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { ChannelName } from '../channels/name.ts'

/** The programs whose requests a hook understands. */
export const PRESETS = [
  'alertmanager',
  'grafana',
  'uptime-kuma',
  'github',
  'stripe',
  'generic',
] as const
export type PresetName = (typeof PRESETS)[number]

const Part = Type.Optional(Text({ maxLength: 1_000 }))
const Template = Type.Object(
  {
    ...{ title: Part, description: Part, channel: Part },
    ...{ level: Part, thread: Part, state: Part, url: Part },
  },
  {
    ...closed,
    description:
      'Texts with places such as {{order.id}}, which are fields of the body. For `generic` alone.',
  },
)
/** The texts of a template, by the fields of the event that they make. */
export type Template = Static<typeof Template>

/** An inbound hook. Nobody sees its address and its secret again. */
export const Hook = Type.Object(
  {
    id: Type.String({ examples: ['hok_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
    name: Type.String(),
    preset: OneOf(PRESETS),
    channel: Type.String({ description: 'The name of the channel that gets the events.' }),
    template: Nullable(Template),
    isOn: Type.Boolean({ description: 'False: requests are refused with 410.' }),
    isVerified: Type.Boolean({ description: 'True if requests without a signature are refused.' }),
    requests: Type.Integer({ description: 'The requests that it received.' }),
    refused: Type.Integer({ description: 'Those whose signature was wrong.' }),
    createdAt: Timestamp,
    lastRequestAt: Nullable(Timestamp, 'Null without a request in the last 30 days.'),
  },
  { $id: 'Hook', additionalProperties: false },
)
export type Hook = Static<typeof Hook>

/** The hooks of a project, newest first. */
export const Hooks = Type.Object({ items: Type.Array(Hook) }, closed)

export const HookAddress = Type.Object(
  {
    ...Hook.properties,
    url: Type.String({ description: 'The address with its token. It cannot be read again.' }),
  },
  closed,
)

const Secret = Nullable(
  Text({ minLength: 1, maxLength: 200 }),
  'The secret with which the program signs; null if requests are not verified.',
)

const fields = {
  name: Name,
  channel: ChannelName,
  secret: Type.Optional(Secret),
  template: Type.Optional(Nullable(Template)),
}
export const NewHook = Type.Object(
  { ...fields, preset: OneOf(PRESETS, 'The program that sends the requests.') },
  { examples: [{ name: 'Prometheus', preset: 'alertmanager', channel: 'ops' }] },
)
export type NewHook = Static<typeof NewHook>

export const HookChanges = Type.Partial(Type.Object({ ...fields, isOn: Type.Boolean() }), {
  examples: [{ isOn: false }],
})
export type HookChanges = Static<typeof HookChanges>

/** A request to a hook, and what became of it. */
export const HookRequestRecord = Type.Object(
  {
    id: Type.String(),
    at: Timestamp,
    status: Type.Integer({ description: 'The status of the response.' }),
    outcome: Type.String(),
    headers: Type.Record(Type.String(), Type.String(), {
      description: 'As they came. Secrets are redacted.',
    }),
    body: Type.String({ description: 'As it came, up to 64 KiB.' }),
    eventIds: Type.Array(Type.String()),
  },
  { $id: 'HookRequest', additionalProperties: false },
)
export type HookRequestRecord = Static<typeof HookRequestRecord>
export const HookRequestRecords = Type.Object({ items: Type.Array(HookRequestRecord) }, closed)

export const PreviewInput = Type.Object(
  { template: Nullable(Template) },
  { examples: [{ template: { title: '{{order.id}} was paid' } }] },
)
export type PreviewInput = Static<typeof PreviewInput>

export const HookPreview = Type.Object(
  {
    events: Type.Array(
      Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
      { description: 'Up to three events of each request. Empty without a request.' },
    ),
  },
  closed,
)
