import { Type, type Static } from '@sinclair/typebox'
import { PageOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import { OneOf, Text } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { LEVELS } from '../channels/level.ts'
import { STATES } from './state.ts'

/** The query of a list of threads. `channel` and `thread` stand together. */
export const ThreadQuery = Type.Object({
  channel: Type.Optional(
    Text({ minLength: 1, maxLength: 255, description: 'Name or id of the channel of `thread`.' }),
  ),
  thread: Type.Optional(
    Text({
      minLength: 1,
      maxLength: 255,
      description: 'The key of a thread. Lists it and the former ones of this key, newest first.',
    }),
  ),
  ...PageQuery.properties,
})
export type ThreadQuery = Static<typeof ThreadQuery>

/** A thread, as its latest event leaves it. */
export const Thread = Type.Object(
  {
    threadSeq: Type.Integer({
      minimum: 1,
      description: 'The `seq` of the event that opened it. It identifies the thread.',
    }),
    thread: Type.String({ description: 'Its key, as events have it.' }),
    channelId: Type.String(),
    channelName: Type.String(),
    state: Type.Optional(OneOf(STATES, 'Absent if no event had one.')),
    level: Type.Optional(OneOf(LEVELS, 'Absent for `normal`.')),
    count: Type.Integer({ minimum: 1, description: 'The number of its events.' }),
    openedAt: Type.String({ format: 'date-time', description: 'When its first event happened.' }),
    updatedAt: Type.String({ format: 'date-time', description: 'When its latest event happened.' }),
    event: Type.Object(
      {
        id: Type.String(),
        seq: Type.Integer({ minimum: 1 }),
        title: Type.String(),
        icon: Nullable(Type.String(), 'A single emoji.'),
        url: Type.Optional(Type.String({ description: 'The page that it leads to.' })),
      },
      { ...closed, description: 'Its latest event.' },
    ),
    acknowledged: Type.Optional(
      Type.Object(
        { by: Type.String(), at: Timestamp, until: Type.Optional(Timestamp) },
        { ...closed, description: 'The member who takes care of it. Absent while nobody does.' },
      ),
    ),
  },
  { $id: 'Thread', additionalProperties: false },
)
export type Thread = Static<typeof Thread>

export const ThreadPage = PageOf(Thread)
export type ThreadPage = Static<typeof ThreadPage>
