import { Kind, Type, type SchemaOptions, type Static } from '@sinclair/typebox'
import { QrCode } from '../../http/qr-code.ts'
import { defineRule, issue, invalidType, NO_ISSUES, Text, TrimmedText } from '../../http/rules.ts'
import { closed, Timestamp, Nullable } from '../../http/schema-parts.ts'
import { isP256Point } from './address.ts'
import { isTimeZone } from '../../base/zone-rules.ts'
import { IsoTimestamp } from '../../log/events/schema.ts'
import { isTimeOfDay } from './quiet-hours.ts'

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
const TIME_OF_DAY = ruleOf('TimeOfDay', isTimeOfDay, 'Must be a time of the day like 22:00')
const TIME_ZONE = ruleOf('TimeZone', isTimeZone, 'Must name a time zone like Europe/Berlin')

function toBytes(text: string): Buffer {
  // Browsers leave out the padding; some libraries add it.
  return /^[\w-]{1,128}={0,2}$/.test(text) ? Buffer.from(text, 'base64url') : Buffer.alloc(0)
}

function textOf(kind: string, options: SchemaOptions = {}) {
  return Type.Unsafe<string>({ ...options, [Kind]: kind, type: 'string' })
}

function timeOfDay(description: string) {
  return textOf(TIME_OF_DAY, { description, pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' })
}

export const PushKey = Type.Object(
  {
    id: Type.String(),
    publicKey: Type.String({ description: 'The applicationServerKey of pushManager.subscribe.' }),
  },
  closed,
)
export type PushKey = Static<typeof PushKey>

/** The link to the page on which a phone subscribes. */
export const PhoneLink = Type.Object(
  {
    url: Type.String(),
    qr: QrCode,
  },
  closed,
)
export type PhoneLink = Static<typeof PhoneLink>

const Days = Type.Array(Type.Integer({ minimum: 1, maximum: 7 }), {
  minItems: 1,
  maxItems: 7,
  description: 'The days on which they begin, from 1 for Monday to 7 for Sunday.',
})

/** Nothing is pushed in quiet hours. */
export const QuietHoursInput = Type.Array(
  Type.Object({
    days: Days,
    from: timeOfDay('The first minute.'),
    to: timeOfDay('The minute after the last one. On the next day if it is `from` or earlier.'),
    timeZone: textOf(TIME_ZONE, { description: 'The IANA name.' }),
  }),
  { maxItems: 14 },
)
export const QuietHours = Type.Array(
  Type.Object(
    { days: Days, from: Type.String(), to: Type.String(), timeZone: Type.String() },
    closed,
  ),
)

/** Channels and projects that are muted on a device. */
const Mutes = Type.Array(
  Type.Object({
    id: Text({ minLength: 1, maxLength: 40, description: 'The ID of a channel or a project.' }),
    until: Nullable(IsoTimestamp('When the mute ends. With null, it does not end.')),
  }),
  { maxItems: 100 },
)
export type Mute = Static<typeof Mutes>[number]

/** The quiet hours of all devices of an account that have none of their own. */
export const AccountQuietHours = Type.Object({ quietHours: QuietHours }, closed)
export const AccountQuietHoursInput = Type.Object(
  { quietHours: QuietHoursInput },
  {
    examples: [
      {
        quietHours: [{ days: [5, 6], from: '22:00', to: '09:00', timeZone: 'Europe/Berlin' }],
      },
    ],
  },
)
export type AccountQuietHours = Static<typeof AccountQuietHours>

const Label = TrimmedText({ maxLength: 60, description: 'The name of the device.' })

export const NewSubscription = Type.Object(
  {
    endpoint: Text({
      minLength: 1,
      maxLength: 2048,
      description: 'The endpoint of the PushSubscription in the browser.',
    }),
    keys: Type.Object({ p256dh: textOf(P256DH), auth: textOf(AUTH) }),
    label: Type.Optional(Label),
  },
  {
    // The keys are those of the example in RFC 8291.
    examples: [
      {
        endpoint: 'https://push.example.com/send/abc',
        keys: {
          p256dh:
            'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
          auth: 'BTBZMqHH6r4Tts7J_aSIgg',
        },
        label: 'Phone',
      },
    ],
  },
)
export type NewSubscription = Static<typeof NewSubscription>

export const SubscriptionEdit = Type.Object(
  {
    label: Type.Optional(Label),
    isOn: Type.Optional(Type.Boolean()),
    quietHours: Type.Optional(
      Nullable(QuietHoursInput, 'Its own quiet hours. With null, those of the account apply.'),
    ),
    mutes: Type.Optional(Mutes),
    hasQuietSummary: Type.Optional(
      Type.Boolean({ description: 'True if one push after quiet hours says what they withheld.' }),
    ),
    letsCriticalThrough: Type.Optional(
      Type.Boolean({ description: 'True if critical events pass quiet hours and mutes.' }),
    ),
  },
  { examples: [{ label: 'Phone', isOn: true }] },
)
export type SubscriptionEdit = Static<typeof SubscriptionEdit>

/** A device as its account sees it. */
export const Subscription = Type.Object(
  {
    id: Type.String(),
    label: Type.String(),
    /** The host of the push service. */
    host: Type.String(),
    isOn: Type.Boolean(),
    /** True for the browser that sends this request. */
    isCurrent: Type.Boolean(),
    /** Those that apply; null if neither the device nor the account has any. */
    quietHours: Nullable(QuietHours),
    /** True if the device has its own, false if those of the account apply. */
    ownQuietHours: Type.Boolean(),
    /** The channels and projects that are muted on this device, also where a view has a bell. */
    mutes: Type.Array(Type.Object({ id: Type.String(), until: Nullable(Type.String()) }, closed)),
    /** True if one push after quiet hours says what they withheld. */
    hasQuietSummary: Type.Boolean(),
    /** True if critical events pass quiet hours and mutes. Null until the member has decided. */
    letsCriticalThrough: Nullable(Type.Boolean()),
    createdAt: Timestamp,
    lastPushAt: Nullable(Timestamp),
    /** The last response of the push service, as a sentence. */
    lastOutcome: Nullable(Type.String()),
    /**
     * Refusals of this device alone since the last accepted push. After the fifth one, each event
     * is pushed once, without retries.
     */
    refusals: Type.Integer({ minimum: 0 }),
    /** The reason of the last of these refusals; null without one. */
    flagged: Nullable(Type.String()),
    /**
     * True if an organization of the account requires a second factor, and this device was signed
     * in without one. It then gets no notifications of that organization.
     */
    lacksSecondFactor: Type.Boolean(),
  },
  closed,
)
export type Subscription = Static<typeof Subscription>

export const RemovedSubscription = Type.Object({ id: Type.String() }, closed)

export const PushTestInput = Type.Object(
  {
    subscriptionId: Type.Optional(
      Text({
        minLength: 1,
        maxLength: 255,
        description: 'The browser of this request by default.',
      }),
    ),
  },
  { examples: [{ subscriptionId: 'sub_01kadz5p6vf2w8y3m4n5q6r7s8' }] },
)
export type PushTestInput = Static<typeof PushTestInput>

/** The response of a push service to a test. */
export const PushTestResult = Type.Object(
  {
    subscriptionId: Type.String(),
    isAccepted: Type.Boolean(),
    /** Null without a response. */
    status: Nullable(Type.Integer()),
    body: Nullable(Type.String({ description: 'The first 1 KiB of the response, as text.' })),
    /** The outcome as a sentence. */
    reason: Type.String(),
    latencyMs: Nullable(Type.Integer({ minimum: 0 })),
    /** True if the subscription was removed, because the push service no longer knows it. */
    isRemoved: Type.Boolean(),
  },
  closed,
)
export type PushTestResult = Static<typeof PushTestResult>
