import { createRandom, type Random } from '../../base/random.ts'
import type { Question } from '../events/question-schema.ts'
import type { EventInput } from '../events/schema.ts'
import { HOUR_MS } from '../events/time-buckets.ts'
import type { IdentifyInput } from '../identities/schema.ts'
import type { NewCard } from '../insights/schema.ts'
import type { NewView } from '../views/schema.ts'

const DAY_MS = 24 * HOUR_MS

/** An event of the invented shop, with the time at which it happens. */
export interface ShopEvent {
  atMs: number
  event: EventInput
}

/** An hour of the shop, whose events have the same numbers each time. */
interface Moment {
  random: Random
  /** Counts hours since 1970, for numbers that grow. */
  hour: number
}

/** A kind of event, and how often it happens in an hour of the day at its busiest. */
interface Kind {
  perHour: number
  /** Returns the share of `perHour` at an hour of the day, from 0 to 1. */
  share(hourOfDay: number, weekday: number): number
  toEvent(moment: Moment): EventInput
}

const NAMES = [
  'Ada Lovelace',
  'Barbara Liskov',
  'Frances Allen',
  'Grace Hopper',
  'Joan Clarke',
  'Katherine Johnson',
  'Margaret Hamilton',
  'Radia Perlman',
  'Sophie Wilson',
  'Vint Cerf',
  'Whitfield Diffie',
  'Yukihiro Matsumoto',
]
const PLANS = [
  { name: 'Starter', amount: 9 },
  { name: 'Pro', amount: 49 },
  { name: 'Team', amount: 129 },
]
const COUNTRIES = ['DE', 'FR', 'GB', 'IT', 'JP', 'SE', 'US']
const SERVICES = ['web', 'api', 'worker']

/** Users of the shop, with aliases. */
export const SHOP_USERS: readonly IdentifyInput[] = NAMES.map((name, index) => {
  const email = `${name.toLowerCase().replaceAll(' ', '.')}@example.com`
  return {
    user_id: `customer_${1001 + index}`,
    properties: {
      name,
      email,
      plan: pick(PLANS, index * 7).name,
      country: pick(COUNTRIES, index * 5),
    },
    aliases: [email],
  }
})

/** The insights of the shop. */
export const SHOP_CARDS: readonly NewCard[] = [
  { kind: 'series', q: 'channel:payments -tag:failed', title: 'Payments' },
  { kind: 'number', q: 'channel:sign-ups', title: 'Sign-ups' },
  { kind: 'number', q: 'tag:failed', title: 'Failed payments' },
  {
    ...{ kind: 'top', groupBy: 'metadata', metadataPath: 'plan' },
    ...{ q: 'channel:payments -tag:failed', hours: 30 * 24, title: 'Payments by plan' },
  },
  { kind: 'top', groupBy: 'user', q: 'channel:orders', hours: 30 * 24, title: 'Most orders' },
  { kind: 'top', groupBy: 'channel', title: 'Events by channel' },
]

/** A critical event, whose thread stays open. */
const OUTAGE: EventInput = {
  channelName: 'Monitoring',
  title: 'Checkout is down',
  icon: '🛒',
  description: 'The payment provider has not responded for 3 minutes.',
  tags: ['checkout'],
  level: 'critical',
  url: 'https://status.example.com/checkout',
  thread: 'checkout',
  state: 'firing',
}

/** A job that fails. A member acknowledges it, and it is resolved. */
export const FAILED_JOB: EventInput = {
  channelName: 'Jobs',
  title: 'Invoices were not sent',
  icon: '🧾',
  description: 'The mail server refused the connection.',
  tags: ['invoices'],
  metadata: { job: 'send-invoices', waiting: 18 },
  level: 'high',
  thread: 'send-invoices',
  state: 'firing',
}

/** A question that waits for a member. */
export const SHOP_QUESTION: EventInput & Required<Question> = {
  channelName: 'Payments',
  title: 'Refund €490 to Grace Hopper?',
  icon: '💸',
  description: 'She paid twice for a year of Pro. The shop waits for the answer.',
  userId: 'customer_1004',
  metadata: { amount: 490, currency: 'EUR' },
  actions: [
    { id: 'refund', label: 'Refund' },
    { id: 'decline', label: 'Decline' },
  ],
  answer: { expiresInSeconds: 7 * 24 * 3_600 },
}

/** The number of times that the outage is reported: unusually many for its channel. */
const REPORTS = 12
const MINUTE_MS = 60_000

/** Returns what happened in the last hours of the shop with sample data, oldest first. */
export function listShopStory(nowMs: number): ShopEvent[] {
  const failedMs = nowMs - 3 * HOUR_MS
  const isBack = { title: 'Invoices are sent', description: '', state: 'resolved' } as const
  // Within one minute, and so within one hour.
  const outageMs = nowMs - (nowMs % MINUTE_MS) - 30 * MINUTE_MS
  return [
    { atMs: failedMs, event: FAILED_JOB },
    { atMs: failedMs + 25 * MINUTE_MS, event: { ...FAILED_JOB, ...isBack } },
    ...Array.from({ length: REPORTS }, (_, report) => ({
      atMs: outageMs + report * 1_000,
      event: { ...OUTAGE, metadata: { service: 'checkout', errors: 30 + 12 * report } },
    })),
    {
      atMs: nowMs - 4 * MINUTE_MS,
      event: {
        ...{ channelName: 'Sign-ups', title: 'New sign-up', icon: '👋', tags: ['search'] },
        ...{ description: 'Joan Clarke created an account', userId: 'customer_1005' },
      },
    },
  ]
}

/** The view that all members of the shop share. */
export const SHOP_VIEW: NewView = { name: 'Declined', q: 'tag:failed', isShared: true }

const byDay = (hourOfDay: number) =>
  Math.max(0.06, Math.sin((Math.PI * (((hourOfDay + 24 - 6) % 24) - 1)) / 17))
const atWork = (hourOfDay: number, weekday: number) =>
  weekday >= 1 && weekday <= 5 && hourOfDay >= 9 && hourOfDay < 18 ? 1 : 0
const at = (hour: number) => (hourOfDay: number) => (hourOfDay === hour ? 1 : 0)

const KINDS: readonly Kind[] = [
  {
    perHour: 3,
    share: byDay,
    toEvent({ random, hour }) {
      const user = random.pick(SHOP_USERS)
      const plan = random.pick(PLANS)
      const isYearly = random.below(4) === 0
      const amount = isYearly ? plan.amount * 10 : plan.amount
      return {
        channelName: 'Payments',
        title: 'New payment',
        icon: '💰',
        description: `${toUserName(user)} paid €${amount} for ${plan.name}`,
        tags: [isYearly ? 'yearly' : 'monthly', plan.name.toLowerCase()],
        userId: user.user_id,
        metadata: {
          amount,
          currency: 'EUR',
          plan: plan.name,
          invoice: `INV-${hour}-${random.below(1_000)}`,
        },
      }
    },
  },
  {
    perHour: 0.2,
    share: byDay,
    toEvent({ random }) {
      const user = random.pick(SHOP_USERS)
      const { amount, name: plan } = random.pick(PLANS)
      return {
        channelName: 'Payments',
        title: 'Payment failed',
        icon: '⚠️',
        description: `The card of ${toUserName(user)} was declined`,
        tags: ['failed'],
        userId: user.user_id,
        metadata: { amount, currency: 'EUR', plan, reason: 'card_declined' },
      }
    },
  },
  {
    perHour: 2,
    share: byDay,
    toEvent({ random }) {
      const user = random.pick(SHOP_USERS)
      return {
        channelName: 'Sign-ups',
        title: 'New sign-up',
        icon: '👋',
        description: `${toUserName(user)} created an account`,
        tags: [random.pick(['search', 'newsletter', 'friend'])],
        userId: user.user_id,
        metadata: { country: random.pick(COUNTRIES), trial: random.below(3) > 0 },
      }
    },
  },
  {
    perHour: 1.6,
    share: byDay,
    toEvent({ random, hour }) {
      const items = 1 + random.below(4)
      return {
        channelName: 'Orders',
        title: `Order ${hour % 100_000} shipped`,
        icon: '📦',
        description: `${items} ${items === 1 ? 'item' : 'items'}, express: ${random.below(5) === 0 ? 'yes' : 'no'}`,
        tags: ['shipped'],
        userId: random.pick(SHOP_USERS).user_id,
        metadata: { items, weightKg: items * 0.5 },
      }
    },
  },
  {
    perHour: 0.5,
    share: atWork,
    toEvent({ random, hour }) {
      const service = random.pick(SERVICES)
      return {
        channelName: 'Deployments',
        title: `Deployed ${service} 3.${hour % 90}.${random.below(5)}`,
        icon: '🚀',
        tags: [service],
        metadata: { service, seconds: 40 + random.below(90) },
        notify: false,
        level: 'low',
      }
    },
  },
  {
    perHour: 1,
    share: at(3),
    toEvent({ random }) {
      const hasFailed = random.below(15) === 0
      return {
        channelName: 'Backups',
        title: hasFailed ? 'Backup failed' : 'Backup completed',
        icon: hasFailed ? '🔥' : '💾',
        ...(hasFailed && {
          description: 'The disk of the backup server is full.',
          level: 'high',
        }),
        tags: ['database'],
        metadata: { megabytes: 4_200 + random.below(300) },
        notify: hasFailed,
      }
    },
  },
  {
    perHour: 0.2,
    share: byDay,
    toEvent({ random }) {
      const service = random.pick(SERVICES)
      return {
        channelName: 'Monitoring',
        title: `Responses of ${service} are slow`,
        icon: '🐢',
        tags: [service],
        metadata: { service, milliseconds: 900 + random.below(2_000) },
        level: 'high',
        thread: `slow ${service}`,
        state: 'firing',
      }
    },
  },
]

/**
 * Returns the events of the shop from `fromMs` to `toMs`, oldest first. The same hours always have
 * the same events.
 */
export function listShopEvents(fromMs: number, toMs: number): ShopEvent[] {
  const events: ShopEvent[] = []
  for (let startMs = fromMs - (fromMs % HOUR_MS); startMs < toMs; startMs += HOUR_MS)
    events.push(...listHour(startMs))
  return events.filter(({ atMs }) => atMs >= fromMs && atMs < toMs)
}

function listHour(startMs: number): ShopEvent[] {
  const hour = startMs / HOUR_MS
  const weekday = (Math.floor(startMs / DAY_MS) + 4) % 7
  const random = createRandom(hour)
  const events = KINDS.flatMap(({ perHour, share, toEvent }) => {
    const expected = perHour * share(hour % 24, weekday)
    const count = Math.floor(expected + random.next())
    const begun = Array.from({ length: count }, () => {
      const atMs = startMs + random.below(HOUR_MS)
      return { atMs, event: toEvent({ random, hour }) }
    })
    // An alert is resolved in the same hour.
    const resolved = begun.flatMap(({ atMs, event }): ShopEvent[] => {
      const leftMs = startMs + HOUR_MS - atMs
      const end: EventInput = { ...event, state: 'resolved' }
      return event.state ? [{ atMs: atMs + random.below(leftMs), event: end }] : []
    })
    return [...begun, ...resolved]
  })
  return events.toSorted((one, other) => one.atMs - other.atMs)
}

function toUserName({ user_id, properties }: IdentifyInput): string {
  return String(properties?.['name'] ?? user_id)
}

function pick<Item>(items: readonly Item[], index: number): Item {
  return items[index % items.length] as Item
}
