import { Type, type Static } from '@sinclair/typebox'
import { OneOf, Text, TrimmedText } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { LEVELS } from '../../log/channels/level.ts'
import { SearchText } from '../../log/events/search-schema.ts'

const EXAMPLE = { q: 'tag:failed', moreThan: 3, withinSeconds: 600 }

const Condition = {
  q: SearchText,
  moreThan: Nullable(
    Type.Integer({ minimum: 0, maximum: 1_000 }),
    'It fires with more events than this in the time. Null: it fires with none.',
  ),
  withinSeconds: Type.Integer({ minimum: 60, maximum: 2_592_000 }),
}

/** A rule to save. */
export const NewRule = Type.Object(
  {
    name: TrimmedText({ maxLength: 60 }),
    channel: Text({
      minLength: 1,
      maxLength: 255,
      description: 'Name or id of the channel that its events go to.',
    }),
    ...Condition,
    level: Type.Optional(OneOf(LEVELS, 'The level of its event, by default `high`.')),
    isOn: Type.Optional(Type.Boolean({ default: true })),
  },
  { examples: [{ name: 'Failed payments', channel: 'payments', ...EXAMPLE }] },
)
export type NewRule = Static<typeof NewRule>

/** A rule of a project. */
export const Rule = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    channelId: Type.String(),
    channelName: Type.String(),
    ...Condition,
    q: Type.String({ description: 'The search.' }),
    level: OneOf(LEVELS),
    isOn: Type.Boolean(),
    firingSince: Nullable(Timestamp, 'Null while it does not fire.'),
    createdAt: Timestamp,
  },
  { $id: 'Rule', additionalProperties: false },
)
export type Rule = Static<typeof Rule>

/** The rules of a project, newest first. */
export const Rules = Type.Object({ items: Type.Array(Rule) }, closed)

/** A condition to look for in the events of the past. */
export const RulePreviewInput = Type.Object(
  {
    ...Condition,
    days: Type.Optional(Type.Integer({ minimum: 1, maximum: 30, default: 30 })),
    cursor: Type.Optional(
      Text({
        minLength: 1,
        maxLength: 25_000,
        description: 'The `nextCursor` of a preview of the same condition. It looks further.',
      }),
    ),
  },
  { examples: [EXAMPLE] },
)
export type RulePreviewInput = Static<typeof RulePreviewInput>

/** When a rule would have fired. */
export const RulePreview = Type.Object(
  {
    count: Type.Integer({ minimum: 0, description: 'How often it would have fired in this time.' }),
    firings: Type.Array(
      Type.Object(
        { from: Timestamp, to: Nullable(Timestamp, 'Null if it would still fire.') },
        closed,
      ),
      { description: 'The newest 50, newest first.' },
    ),
    since: Nullable(
      Timestamp,
      'The time from which on it looked, at most the days; null without events.',
    ),
    until: Nullable(Timestamp, 'The time up to which it looked; null without events.'),
    nextCursor: Nullable(Type.String(), 'Looks further. Null if it looked at all events.'),
  },
  { $id: 'RulePreview', additionalProperties: false },
)
export type RulePreview = Static<typeof RulePreview>
