import { Kind, Type, type Static } from '@sinclair/typebox'
import { IsoTimestamp } from '../events/schema.ts'
import {
  defineRule,
  issue,
  invalidType,
  NO_ISSUES,
  type Issue,
  OneOf,
  Text,
  TrimmedText,
} from '../http/rules.ts'
import { closed, Timestamp, Nullable } from '../http/schema-parts.ts'
import { isP256Point } from './address.ts'
import { isTimeZone, parseTimeOfDay } from './quiet-hours.ts'

/** Defines a rule for text that `isValid` checks. */
function ruleOf(kind: string, isValid: (text: string) => boolean, message: string): string {
  return defineRule(kind, value => {
    if (typeof value !== 'string') return invalidType('string', value)
    return isValid(value) ? NO_ISSUES : issue('invalid_format', message)
  })
}

const P256DH = ruleOf(
  'P256dh',
  text => isP256Point(toBytes(text)),
  "Must be the browser's key: an uncompressed point of P-256 in base64url",
)
const AUTH = ruleOf('Auth', text => toBytes(text).length === 16, 'Must be 16 bytes in base64url')
const TIME_OF_DAY = '^([01]\\d|2[0-3]):[0-5]\\d$'
const QUIET_HOURS = defineRule('QuietHours', value => {
  if (value === null) return NO_ISSUES
  if (typeof value !== 'object' || Array.isArray(value)) return invalidType('object', value)
  const { from, to, timeZone } = value as Record<string, unknown>
  const issues = [
    ...checkPart('from', from, isTime, 'Must be a time of the day like 22:00'),
    ...checkPart('to', to, isTime, 'Must be a time of the day like 07:00'),
    ...checkPart('timeZone', timeZone, isTimeZone, 'Must name a time zone like Europe/Berlin'),
  ]
  if (issues.length > 0 || from !== to) return issues
  return issue('invalid_value', 'Must not end when it begins: turn the device off instead')
})

function checkPart(
  name: string,
  value: unknown,
  isValid: (text: string) => boolean,
  message: string,
): Issue[] {
  const at = (issues: readonly Issue[]) => issues.map(one => ({ ...one, path: [name] }))
  if (value === undefined) return at(issue('required', 'Required'))
  if (typeof value !== 'string') return at(invalidType('string', value))
  return isValid(value) ? [] : at(issue('invalid_format', message))
}

function isTime(text: string): boolean {
  return parseTimeOfDay(text) !== undefined
}

function toBytes(text: string): Buffer {
  // Browsers leave out the padding, and some libraries add it.
  return /^[\w-]{1,128}={0,2}$/.test(text) ? Buffer.from(text, 'base64url') : Buffer.alloc(0)
}

function textOf(kind: string) {
  return Type.Unsafe<string>({ [Kind]: kind, type: 'string' })
}

export const PushKey = Type.Object(
  {
    id: Type.String(),
    publicKey: Type.String({ description: 'The applicationServerKey of pushManager.subscribe.' }),
  },
  closed,
)
export type PushKey = Static<typeof PushKey>

/** The link to the page where a phone subscribes. */
export const PhoneLink = Type.Object(
  {
    url: Type.String(),
    qr: Type.Object(
      {
        size: Type.Integer({ minimum: 21, description: 'Modules in a row, without a margin.' }),
        path: Type.String({ description: 'What is dark, as the path of an SVG of this size.' }),
      },
      closed,
    ),
  },
  closed,
)
export type PhoneLink = Static<typeof PhoneLink>

/** Nothing is pushed in quiet hours; null for none. */
const QuietHoursInput = Type.Unsafe<{ from: string; to: string; timeZone: string } | null>({
  [Kind]: QUIET_HOURS,
  type: ['object', 'null'],
  required: ['from', 'to', 'timeZone'],
  properties: {
    from: { type: 'string', pattern: TIME_OF_DAY, description: 'Its first minute.' },
    to: {
      type: 'string',
      pattern: TIME_OF_DAY,
      description: 'Of the next day where it is earlier.',
    },
    timeZone: { type: 'string', description: 'As IANA names it.' },
  },
})

const Label = TrimmedText({ maxLength: 60, description: 'What to call the device.' })

export const NewSubscription = Type.Object({
  endpoint: Text({ minLength: 1, maxLength: 2048, description: 'As the browser has it.' }),
  keys: Type.Object({ p256dh: textOf(P256DH), auth: textOf(AUTH) }),
  label: Type.Optional(Label),
})
export type NewSubscription = Static<typeof NewSubscription>

export const SubscriptionEdit = Type.Object({
  label: Type.Optional(Label),
  isOn: Type.Optional(Type.Boolean()),
  quietHours: Type.Optional(QuietHoursInput),
})
export type SubscriptionEdit = Static<typeof SubscriptionEdit>

/** A device as its account sees it. */
export const Subscription = Type.Object(
  {
    id: Type.String(),
    label: Type.String(),
    /** The host of its push service. */
    host: Type.String(),
    isOn: Type.Boolean(),
    /** Whether it is the browser of this request. */
    isCurrent: Type.Boolean(),
    quietHours: Nullable(
      Type.Object({ from: Type.String(), to: Type.String(), timeZone: Type.String() }, closed),
    ),
    createdAt: Timestamp,
    lastPushAt: Nullable(Timestamp),
    /** The last answer of the push service. */
    lastOutcome: Nullable(Type.String()),
    /** Consecutive refusals; the fifth removes it. */
    refusals: Type.Integer({ minimum: 0 }),
    /** Why it was refused. */
    flagged: Nullable(Type.String()),
  },
  closed,
)
export type Subscription = Static<typeof Subscription>

export const RemovedSubscription = Type.Object({ id: Type.String() }, closed)

export const PushTestInput = Type.Object({
  subscriptionId: Type.Optional(
    Text({ minLength: 1, maxLength: 255, description: 'This browser by default.' }),
  ),
})
export type PushTestInput = Static<typeof PushTestInput>

/** The answer of a push service to a test. */
export const PushTestResult = Type.Object(
  {
    subscriptionId: Type.String(),
    isAccepted: Type.Boolean(),
    /** Null without an answer. */
    status: Nullable(Type.Integer()),
    body: Nullable(Type.String({ description: 'The first 1 KiB of its answer, as text.' })),
    /** The outcome as a sentence. */
    reason: Type.String(),
    latencyMs: Nullable(Type.Integer({ minimum: 0 })),
    /** Whether the subscription was removed, as the push service no longer knows it. */
    isRemoved: Type.Boolean(),
  },
  closed,
)
export type PushTestResult = Static<typeof PushTestResult>

const STATES = ['on', 'mute'] as const
const Until = Type.Optional(
  Nullable(IsoTimestamp('The end of the mute; without it the mute has none.')),
)
const COLLAPSE =
  'Whether more than 10 notifications from one channel in a minute become one that counts the rest.'

/** Settings for the channels of a project without settings of their own. An absent `collapse` stays as it is. */
export const DefaultNotificationSettingsInput = Type.Object({
  state: OneOf(STATES),
  muteUntil: Until,
  collapse: Type.Optional(Type.Boolean({ description: COLLAPSE })),
})
export type DefaultNotificationSettingsInput = Static<typeof DefaultNotificationSettingsInput>

export const ChannelNotificationSettingsInput = Type.Object({
  state: OneOf([...STATES, 'default'], 'default: as for the project.'),
  muteUntil: Until,
  collapse: Type.Optional(Nullable(Type.Boolean(), `${COLLAPSE} null: as for the project.`)),
})
export type ChannelNotificationSettingsInput = Static<typeof ChannelNotificationSettingsInput>

const setting = {
  state: OneOf(STATES),
  muteUntil: Nullable(Timestamp),
  collapse: Type.Boolean({ description: COLLAPSE }),
}

/** Settings for the channels of a project without settings of their own. */
export const DefaultNotificationSettings = Type.Object(setting, closed)
export type DefaultNotificationSettings = Static<typeof DefaultNotificationSettings>

/** Settings that apply to one channel: its own, or those of the project. */
export const ChannelNotificationSettings = Type.Object(
  {
    channelId: Type.String(),
    isDefault: Type.Boolean({ description: 'Whether the state is that of the project.' }),
    isCollapseDefault: Type.Boolean({ description: 'Whether `collapse` is that of the project.' }),
    ...setting,
  },
  closed,
)
export type ChannelNotificationSettings = Static<typeof ChannelNotificationSettings>

export const NotificationSettingsPage = Type.Object(
  {
    default: DefaultNotificationSettings,
    items: Type.Array(ChannelNotificationSettings),
    nextCursor: Nullable(Type.String()),
  },
  closed,
)
export type NotificationSettingsPage = Static<typeof NotificationSettingsPage>
