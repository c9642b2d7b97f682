import { Kind, Type, type Static } from '@sinclair/typebox'
import { PageOf } from '../../http/envelope.ts'
import { JsonObject } from '../../http/json-object.ts'
import { PageQuery } from '../../http/paging.ts'
import {
  checkCharacters,
  checkLength,
  defineRule,
  FIND_MISTAKE,
  invalidType,
  issue,
  NO_ISSUES,
  NOT_BLANK,
  OneOf,
  Text,
  TrimmedText,
  type Issue,
} from '../../http/rules.ts'
import { Nullable } from '../../http/schema-parts.ts'
import { Icon } from '../channels/icon.ts'
import { LEVELS } from '../channels/level.ts'
import { AskedQuestion, Question } from './question-schema.ts'
import { STATES } from './state.ts'
import { ChannelName } from '../channels/name.ts'
import { explainTimestamp, parseIsoTimestamp, parseTimestamp } from './timestamp.ts'

const MAX_AHEAD_MS = 5 * 60_000
const YEAR = '^[0-9]{4}'
const YEARS = 'Years 0100 to 9999.'
const INSTANT = defineRule('Instant', value => {
  if (typeof value !== 'string') return invalidType('string', value)
  return parseIsoTimestamp(value) === undefined
    ? issue('invalid_format', explainTimestamp(value))
    : NO_ISSUES
})

const TIMESTAMP = defineRule('Timestamp', value => {
  if (typeof value !== 'string' && typeof value !== 'number') {
    return invalidType('string or number', value)
  }
  const ms = parseTimestamp(value)
  if (ms === undefined && typeof value === 'string') {
    return issue('invalid_format', explainTimestamp(value))
  }
  if (ms === undefined) return issue('out_of_range', 'Must be Unix seconds or milliseconds')
  // The clock of this process is exact enough for this limit.
  return isTooFarAhead(ms)
    ? issue('out_of_range', 'Must be at most 5 minutes in the future')
    : NO_ISSUES
})

const LINK = defineRule('Link', (value, schema) => {
  if (typeof value !== 'string') return invalidType('string', value)
  const bad = [...checkLength(value, schema), ...checkCharacters(value)]
  if (bad.length > 0) return bad
  // Programs differ about where a \ leads, and invisible characters disguise it.
  if (/[\s\\\p{Cc}\p{Cf}]/u.test(value))
    return issue(
      'invalid_format',
      'Must not contain white space, backslashes or invisible characters. Percent-encode them',
    )
  if (!/^https?:\/\/[^/]/i.test(value) || !URL.canParse(value))
    return issue(
      'invalid_format',
      'Must be an http or https URL, like https://example.com/orders/42',
    )
  const { username, password } = new URL(value)
  return username + password === ''
    ? NO_ISSUES
    : issue('invalid_value', 'Must not contain a user name or a password')
})

/** A time in ISO 8601, as filters take it. */
export function IsoTimestamp(description: string) {
  return Type.Unsafe<string>({
    [Kind]: INSTANT,
    type: 'string',
    format: 'date-time',
    pattern: YEAR,
    description: `${description} ${YEARS}`,
  })
}

/** When an event happened. */
const Timestamp = Type.Unsafe<string | number>({
  [Kind]: TIMESTAMP,
  type: ['string', 'number'],
  format: 'date-time',
  pattern: '^[0-9]',
  minimum: 0,
  description:
    'When it happened, at most 5 minutes in the future. Default: the time of creation. Text is ISO 8601 with ' +
    'an offset, in the extended or basic form. A number, also as text, is Unix seconds, or Unix milliseconds from ' +
    `100,000,000,000 on. ${YEARS}`,
  examples: ['2026-11-20T09:30:00Z', 1795167000],
})

/**
 * Returns true if a time (milliseconds since 1970) is more than 5 minutes ahead. Less can be a
 * clock difference.
 */
export function isTooFarAhead(ms: number): boolean {
  return ms > Date.now() + MAX_AHEAD_MS
}

const Title = TrimmedText({
  maxLength: 500,
  description: 'What happened.',
  examples: ['New payment'],
})
const Description = Text({ maxLength: 5_000, description: 'More about it.' })
const UserId = Text({ minLength: 1, maxLength: 255, description: 'A user_id, or an alias of one.' })
const Tag = Text({ minLength: 1, maxLength: 50 })
const Notify = Type.Boolean({
  default: true,
  description: 'True if members are notified on their devices.',
})

const Level = OneOf(
  LEVELS,
  'How urgent it is. Default: the level of its open thread, or of the channel, which is `normal` unless a member changes it.',
)
const Link = Type.Unsafe<string>({
  [Kind]: LINK,
  type: 'string',
  minLength: 1,
  maxLength: 2_048,
  format: 'uri',
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?://',
  description:
    'An http or https address, without a user name and a password. The title and notifications lead there.',
  examples: ['https://example.com/orders/42'],
})

const Thread = Text({
  minLength: 1,
  maxLength: 255,
  description:
    'The key of what it is about, such as an incident. Events of a channel with the same key are updates of one thread.',
  examples: ['disk db1'],
})
const State = OneOf(
  STATES,
  'The state of the thread after it. Requires `thread`. Default: the state before it.',
)

/** The fields that an event as plain text has in the query. */
export const TextQuery = Type.Object({
  level: Type.Optional(Level),
  url: Type.Optional(Link),
  thread: Type.Optional(Thread),
  state: Type.Optional(State),
})

/** Recognizes the body of LogSnag's clients, which has neither a channelName nor a title. */
function findLogSnag(body: object): readonly Issue[] {
  if (!('channel' in body && 'event' in body) || 'channelName' in body || 'title' in body) {
    return NO_ISSUES
  }
  const message = 'LogSnag names the title so. Send bodies of its clients to /v1/log'
  return [{ path: ['event'], code: 'invalid_value', message }]
}

/** The fields of an event. */
export const EventInput = Type.Object(
  {
    channelName: ChannelName,
    title: Title,
    description: Type.Optional(Description),
    icon: Type.Optional(Icon),
    tags: Type.Optional(Type.Array(Tag, { maxItems: 20 })),
    metadata: Type.Optional(JsonObject('Anything else about the event.')),
    userId: Type.Optional(Nullable(UserId)),
    user_id: Type.Optional(Nullable(UserId, 'The same as `userId`, which takes precedence.')),
    notify: Type.Optional(Notify),
    source: Type.Optional(Text({ minLength: 1, maxLength: 100, default: 'api' })),
    timestamp: Type.Optional(Timestamp),
    level: Type.Optional(Level),
    url: Type.Optional(Link),
    thread: Type.Optional(Thread),
    state: Type.Optional(State),
  },
  { [FIND_MISTAKE]: findLogSnag },
)
export type EventInput = Static<typeof EventInput>

/** The body of a request that creates an event, with a question that it asks. */
export const EventRequest = Type.Object(
  { ...EventInput.properties, ...Question.properties },
  {
    $id: 'EventInput',
    [FIND_MISTAKE]: findLogSnag,
    examples: [
      { channelName: 'payments', title: 'New payment', icon: '💰', metadata: { amount: 42 } },
    ],
  },
)
export type EventRequest = Static<typeof EventRequest>

/** The body of an event from LogSnag's clients. */
export const LogInput = Type.Object(
  {
    channel: ChannelName,
    event: Title,
    description: Type.Optional(Description),
    icon: Type.Optional(Icon),
    tags: Type.Optional(JsonObject('Becomes the metadata, and a tag `key:value` each.')),
    user_id: Type.Optional(UserId),
    notify: Type.Optional(Type.Boolean({ default: false })),
    timestamp: Type.Optional(Timestamp),
  },
  {
    $id: 'LogInput',
    examples: [{ channel: 'payments', event: 'New payment', tags: { amount: 42 } }],
  },
)
export type LogInput = Static<typeof LogInput>

/** An event as plain text. This schema only documents it: `EventInput` validates the fields. */
export const TextInput = Type.String({
  examples: ['💾 Backup failed\nThe disk is full.'],
  minLength: 1,
  pattern: NOT_BLANK,
  description:
    'The first line that is not blank is the title, up to 500 characters. An emoji or its shortcode at its start is ' +
    'the icon, if other text follows. The other lines are the description, up to 5,000 characters.',
})

/** A stored event. */
export const Event = Type.Object(
  {
    id: Type.String({ examples: ['evt_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
    seq: Type.Integer({
      minimum: 1,
      description: "Its place in the project's log: dense, in commit order.",
    }),
    channelId: Type.String({ examples: ['chn_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
    channelName: Type.String(),
    userId: Nullable(Type.String(), 'The user_id, or the reference as sent when no user has it.'),
    timestamp: Type.String({ format: 'date-time', description: 'When it happened.' }),
    createdAt: Type.String({ format: 'date-time', description: 'When it was accepted.' }),
    title: Type.String(),
    description: Nullable(Type.String(), 'More about it.'),
    icon: Nullable(Type.String(), 'A single emoji.'),
    tags: Type.Array(Type.String()),
    metadata: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
    source: Type.String(),
    notify: Type.Boolean(),
    level: Type.Optional(OneOf(LEVELS, 'How urgent it is. Absent for `normal`.')),
    url: Type.Optional(
      Type.String({ description: 'The page that it leads to. Absent if it has none.' }),
    ),
    thread: Type.Optional(
      Type.String({ description: 'The key of its thread. Absent if it has none.' }),
    ),
    state: Type.Optional(
      OneOf(STATES, 'The state of the thread after it. Absent if the thread has none.'),
    ),
    threadSeq: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'The `seq` of the event that opened the thread. A thread that ended and opens again has another one. Absent without `thread`.',
      }),
    ),
  },
  { $id: 'Event', additionalProperties: false },
)
export type Event = Static<typeof Event>

/** An event, with the question that it asks. */
export const EventDetail = Type.Object(
  { ...Event.properties, ...AskedQuestion.properties },
  { $id: 'EventDetail', additionalProperties: false },
)

/** A page of the log. */
export const LogPage = Type.Object(
  {
    ...PageOf(Event).properties,
    completeAfter: Type.Integer({
      minimum: 0,
      description:
        'The last `seq` that retention has removed; 0 for none. The log has every later event, unless a member deleted it.',
    }),
  },
  { additionalProperties: false },
)

/** The events of threads that a list has. */
export const ThreadChoice = Type.Object({
  threads: Type.Optional(
    OneOf(
      ['latest', 'all'],
      'With `all`, a list has every event of a thread. By default, only its latest one. With `after`, or with another filter than channels, levels, states and threads, a list has every event that matches.',
    ),
  ),
  threadSeq: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Only the events of the thread with this `threadSeq`, all of them.',
    }),
  ),
})

/** The filters of a list of events. */
export const EventQuery = Type.Object({
  channel: Type.Optional(
    Text({ minLength: 1, maxLength: 255, description: 'Name or id of a channel.' }),
  ),
  tag: Type.Optional(
    Text({ minLength: 1, maxLength: 50, description: 'A tag that the event has.' }),
  ),
  userId: Type.Optional(
    Text({
      minLength: 1,
      maxLength: 255,
      description: 'A user_id or an alias. Finds the events under every name of the user.',
    }),
  ),
  source: Type.Optional(
    Text({ minLength: 1, maxLength: 100, description: 'The source of the event.' }),
  ),
  level: Type.Optional(OneOf(LEVELS, 'The level of the event.')),
  state: Type.Optional(OneOf(STATES, 'The state of a thread after the event.')),
  thread: Type.Optional(Thread),
  ...ThreadChoice.properties,
  text: Type.Optional(
    Text({
      minLength: 1,
      maxLength: 200,
      description:
        'Up to 20 words of the title or description, or their beginnings. All must match. ' +
        '`a.b` matches words next to each other, and symbols as in `C++` match as written.',
    }),
  ),
  from: Type.Optional(IsoTimestamp('Only events at this time or later.')),
  to: Type.Optional(IsoTimestamp('Only events at this time or earlier.')),
  after: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Reads forward in the order of the log, from the event after this seq.',
    }),
  ),
  ...PageQuery.properties,
})
export type EventQuery = Static<typeof EventQuery>
