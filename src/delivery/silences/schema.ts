import { Type, type Static } from '@sinclair/typebox'
import { Text, TrimmedText } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { QuietHours, QuietHoursInput } from '../push/subscription-schema.ts'

/** A project, a channel or a thread of whose events members are not told for a time. */
export const Silence = Type.Object(
  {
    id: Type.String({ examples: ['sil_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
    channelId: Nullable(Type.String(), 'Null for the whole project.'),
    channelName: Nullable(Type.String()),
    thread: Nullable(Type.String(), 'The key of the thread; null for the whole channel.'),
    reason: Type.String(),
    by: Type.String({ description: 'The name of the member, API key or token that began it.' }),
    createdAt: Timestamp,
    startsAt: Timestamp,
    endsAt: Nullable(Timestamp, 'Null until nothing in it is open.'),
    untilResolved: Type.Boolean(),
    hours: Nullable(QuietHours, 'The weekly hours of which `startsAt` and `endsAt` are the next.'),
    isActive: Type.Boolean({ description: 'False between weekly hours.' }),
  },
  { $id: 'Silence', additionalProperties: false },
)
export type Silence = Static<typeof Silence>

/** The silences of a project, newest first. */
export const Silences = Type.Object({ items: Type.Array(Silence) }, closed)

/** A silence to begin, with one of `minutes`, `untilResolved` and `hours`. */
export const NewSilence = Type.Object(
  {
    channel: Type.Optional(
      Text({
        minLength: 1,
        maxLength: 255,
        description: 'Name or id of a channel. Absent for the whole project.',
      }),
    ),
    thread: Type.Optional(
      Text({ minLength: 1, maxLength: 255, description: 'The key of a thread of the channel.' }),
    ),
    minutes: Type.Optional(
      // At its end it reads records, which are kept for 30 days.
      Type.Integer({ minimum: 1, maximum: 40_320, description: 'It ends after so many minutes.' }),
    ),
    untilResolved: Type.Optional(
      Type.Boolean({ description: 'True: it ends when no thread in it is open.' }),
    ),
    hours: Type.Optional({
      ...QuietHoursInput,
      minItems: 1,
      description: 'Hours of each week. Rows that meet or overlap are one time.',
    }),
    reason: TrimmedText({ maxLength: 500 }),
  },
  { examples: [{ channel: 'ops', minutes: 60, reason: 'Moving the database' }] },
)
export type NewSilence = Static<typeof NewSilence>
