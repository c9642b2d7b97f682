import { expect, test } from 'bun:test'
import type { EgressResult } from '../../../src/http/egress/egress.ts'
import { newId, toId } from '../../../src/base/ids.ts'
import { PUSH_SCHEDULE_MS } from '../../../src/delivery/outbox/schedule.ts'
import {
  truncateToBytes,
  MAX_PAYLOAD_BYTES,
  toQuietMessage,
  toSummaryMessage,
  toEventMessage,
  toShortMessage,
  toTestMessage,
  type PushEvent,
  type PushMessage,
  type PushThread,
} from '../../../src/delivery/push/payload.ts'
import { toPushOutcome } from '../../../src/delivery/push/outcome.ts'
import { parseVapidSubject } from '../../../src/base/config/values.ts'

const DAY_MS = 86_400_000

const SITE = 'https://tidings.example.com'
const event: PushEvent = {
  eventId: newId('evt').uuid,
  seq: 7,
  projectId: newId('prj').uuid,
  project: 'Shop',
  channelId: newId('chn').uuid,
  channel: 'payments',
  title: 'New payment',
  description: 'Ada paid 12 €',
  icon: '💰',
  level: null,
  url: null,
  isRepeated: false,
  thread: null,
}
const opening: PushThread = {
  ...{ seq: 7, threadSeq: 7, state: 'firing', isOpening: true, isSilent: false },
  ...{ elapsedMs: 0, waitMs: null, storm: null, withheld: null },
}
const read = ({ payload }: PushMessage) => JSON.parse(payload)

test('delivery: the payload is Declarative Web Push, and opens its event', () => {
  const message = toEventMessage(SITE, event, { badge: 3, close: [] })
  const { web_push, notification, app_badge } = read(message)
  expect(web_push).toBe(8030)
  // WebKit reads the badge in the notification, and the draft of the standard beside it.
  expect([notification.app_badge, app_badge]).toEqual(['3', 3])
  expect(notification).toMatchObject({
    title: '💰 New payment',
    body: 'Ada paid 12 €\npayments · Shop',
    tag: message.topic,
  })
  // The dashboard closes it when the channel was read, or the event was opened.
  const path = `/e/${toId('evt', event.eventId)}`
  const about = `${toId('prj', event.projectId)} ${event.seq}`
  const data = { channel: toId('chn', event.channelId), path, about }
  expect([notification.data, read(toShortMessage(message)).notification.data]).toEqual([data, data])
  expect(notification.navigate).toMatch(/^https:\/\/tidings\.example\.com\/e\/evt_[a-z0-9]{26}$/)
  expect(message.topic).toMatch(/^[A-Za-z0-9]{32}$/)
  const plain = read(toEventMessage(SITE, { ...event, icon: null, description: null }))
  expect(plain.notification).toMatchObject({ title: 'New payment', body: 'payments · Shop' })
})

test('attention §1 high and critical events ask for interaction, and are urgent; others are as before', () => {
  const plain = toEventMessage(SITE, event)
  expect(plain.urgency).toBe('normal')
  expect(plain.payload).not.toMatch(/requireInteraction|actions/)
  expect(toEventMessage(SITE, { ...event, level: 'low' })).toEqual(plain)
  for (const level of ['high', 'critical'] as const) {
    const { payload, urgency } = toEventMessage(SITE, { ...event, level })
    expect(urgency).toBe('high')
    expect(JSON.parse(payload).notification.requireInteraction).toBe(true)
  }
  expect(toSummaryMessage(SITE, { ...event, count: 3, burstAtMs: 5 }).urgency).toBe('normal')
  expect(toTestMessage(SITE).urgency).toBe('high')
})

test('attention §5 somebody can acknowledge what is critical, and threads that fire and are high', () => {
  const thread = (state: PushThread['state']) => ({ thread: { ...opening, state } })
  const url = 'https://example.com'
  const events: [Partial<PushEvent>, string[]][] = [
    [{ level: 'high' }, []],
    [{ level: 'critical', url }, ['Acknowledge', 'Show event']],
    [{ level: 'high', ...thread('firing') }, ['Acknowledge']],
    [{ level: 'high', ...thread('failed') }, []],
    [{ level: 'critical', ...thread('failed') }, ['Acknowledge']],
    [{ level: 'critical', ...thread('resolved'), url }, ['Show event']],
  ]
  const path = `/api/projects/${toId('prj', event.projectId)}/events/${toId('evt', event.eventId)}/acknowledgement`
  for (const [one, titles] of events) {
    const { data, actions = [] } = read(toEventMessage(SITE, { ...event, ...one })).notification
    const isAlarm = titles.includes('Acknowledge')
    expect([actions.map(({ title }: { title: string }) => title), data.acknowledge]).toEqual([
      ...[titles, isAlarm ? path : undefined],
    ])
  }
})

test('attention §2 a click leads to the url, and a button to the event', () => {
  const url = 'https://example.com/orders/42?from=push'
  const page = `${SITE}/e/${toId('evt', event.eventId)}`
  const message = toEventMessage(SITE, { ...event, url })
  const { notification } = read(message)
  expect(notification).toMatchObject({
    navigate: url,
    actions: [{ action: 'event', title: 'Show event', navigate: page }],
  })
  expect(message.topic).toBe(toEventMessage(SITE, event).topic)
  // The shortest form leads to the event, which has the url.
  const short = read(toShortMessage(message)).notification
  expect([short.navigate, short.actions]).toEqual([page, undefined])
})

test('attention §2 notifications of a thread replace each other, silently unless it became worse', () => {
  const of = (thread: Partial<PushThread>) => {
    const message = toEventMessage(SITE, { ...event, thread: { ...opening, ...thread } })
    return { ...read(message).notification, topic: message.topic }
  }
  const opened = of({})
  const worse = of({ seq: 9, isOpening: false, state: 'failed', elapsedMs: 179_999 })
  const better = of({
    ...{ seq: 12, isOpening: false, isSilent: true, state: 'resolved', elapsedMs: 720_000 },
  })
  expect(
    [opened, worse, better].map(({ silent, renotify, data }) => [silent, renotify, data.seq]),
  ).toEqual([
    [undefined, undefined, 7],
    [undefined, true, 9],
    [true, undefined, 12],
  ])
  expect(new Set([opened, worse, better].map(({ tag }) => tag)).size).toBe(1)
  expect([opened.topic, worse.topic]).toEqual([opened.tag, opened.tag])
  // It must not replace an undelivered one that makes a sound.
  expect(better.topic).toMatch(/^[A-Za-z0-9]{32}$/)
  expect(better.topic).not.toBe(better.tag)
  expect(of({ threadSeq: 8 }).tag).not.toBe(opened.tag)
  const place = 'payments · Shop'
  expect([opened, worse, better].map(({ body }) => body)).toEqual([
    `Ada paid 12 €\nFiring · ${place}`,
    `Ada paid 12 €\nFailed after 2 minutes · ${place}`,
    `Ada paid 12 €\nResolved after 12 minutes · ${place}`,
  ])
  const after = (elapsedMs: number) =>
    of({ isOpening: false, state: 'succeeded', elapsedMs }).body.split('\n')[1]
  expect([-5, 1_000, 3_600_000, 200_000_000].map(after)).toEqual([
    `Succeeded · ${place}`,
    `Succeeded after 1 second · ${place}`,
    `Succeeded after 1 hour · ${place}`,
    `Succeeded after 2 days · ${place}`,
  ])
  expect(of({ state: null }).body).toBe(`Ada paid 12 €\n${place}`)
})

test('attention §2 a storm is one notification, with its count', () => {
  const of = (openCount: number, count: number, thread: Partial<PushThread> = {}) =>
    read(
      toEventMessage(SITE, {
        ...{ ...event, level: 'high', url: 'https://example.com' },
        thread: { ...opening, storm: { seq: 5, openCount, count }, ...thread },
      }),
    ).notification
  const titles = [of(12, 12), of(1_000, 2), of(1_001, 2), of(0, 12, { isSilent: true })]
  expect(titles.map(({ title, silent, renotify }) => [title, silent, renotify])).toEqual([
    ['12 firing in payments', undefined, true],
    ['1,000 firing in payments', undefined, true],
    ['1,000+ firing in payments', undefined, true],
    ['All 12 resolved in payments', true, undefined],
  ])
  expect(of(12, 12)).toMatchObject({
    body: 'Shop',
    navigate: `${SITE}/p/${toId('prj', event.projectId)}?channel=${toId('chn', event.channelId)}`,
    requireInteraction: true,
    data: { seq: 7 },
  })
  const own = read(toEventMessage(SITE, { ...event, thread: opening })).notification.tag
  expect([of(12, 12).data.close, of(0, 12).data.close]).toEqual([undefined, [own]])
  expect(of(12, 12, { seq: 9, threadSeq: 9 }).tag).toBe(of(12, 12).tag)
})

test.each([
  ['a long url beside long texts', 2_048, 500, false],
  ['a long url beside a short title', 1_800, 20, true],
  ['a url beside long texts', 500, 500, true],
])(
  'attention §2 %s fits into a payload: %d characters, title of %d',
  (_, length, title, hasUrl) => {
    const url = `https://example.com/${'x'.repeat(length)}`.slice(0, length)
    const long = { url, title: 'T'.repeat(title), description: 'd'.repeat(5_000) }
    const close = Array.from({ length: 20 }, () => 'a'.repeat(32))
    for (const description of [long.description, null]) {
      const all = { ...event, ...long, description }
      for (const { payload } of [
        toEventMessage(SITE, all),
        toEventMessage(SITE, all, { badge: 100, close }),
      ]) {
        expect(Buffer.byteLength(payload)).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
        expect(JSON.parse(payload).notification.navigate === url).toBe(hasUrl)
      }
    }
  },
)

const LONG: [string, Partial<PushEvent>][] = [
  ['ASCII', { title: 'x'.repeat(500), description: 'y'.repeat(5_000) }],
  [
    'emoji',
    {
      title: '💰'.repeat(500),
      description: '👩‍👩‍👧‍👦'.repeat(700),
      channel: '💥'.repeat(255),
      project: '🚀'.repeat(255),
    },
  ],
  ['quotes', { title: '"'.repeat(500), description: '\\'.repeat(5_000) }],
  [
    'control characters',
    { title: '\u0001'.repeat(500), description: '\u0002'.repeat(5_000), channel: '"'.repeat(255) },
  ],
  [
    'three bytes each',
    { title: '語'.repeat(500), description: '語'.repeat(5_000), project: '語'.repeat(255) },
  ],
]

test.each(LONG)(
  'delivery: a payload has at most 2,600 bytes of %s, cut between characters',
  (_, long) => {
    const message = toEventMessage(SITE, { ...event, ...long })
    const bytes = Buffer.byteLength(message.payload)
    expect(bytes).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
    // One more character would exceed the limit. A family has 25 bytes.
    expect(bytes).toBeGreaterThan(MAX_PAYLOAD_BYTES - 28)
    const { notification } = read(message)
    for (const text of [notification.title, notification.body]) {
      expect(text.isWellFormed()).toBe(true)
    }
    expect(notification.body).toContain('…')
    const short = toShortMessage(message)
    expect(Buffer.byteLength(short.payload)).toBeLessThan(500)
    expect(read(short).notification).toMatchObject({
      navigate: notification.navigate,
      tag: notification.tag,
    })
  },
)

test('delivery: a payload that fits is not cut', () => {
  expect(truncateToBytes('abc', 3)).toBe('abc')
  expect(truncateToBytes('abcd', 3)).toBe('…')
  expect(truncateToBytes('abcd', 4)).toBe('abcd')
  expect(truncateToBytes('💰💰', 7)).toBe('💰…')
  expect(truncateToBytes('abcdefgh👩‍👩‍👧', 20)).toBe('abcdefgh…')
  const description = 'y'.repeat(2_000)
  expect(read(toEventMessage(SITE, { ...event, description })).notification.body).toBe(
    `${description}\npayments · Shop`,
  )
})

test('delivery: a count replaces the one before in the same burst alone', () => {
  const count = (n: number, burstAtMs: number, channelId = event.channelId) =>
    toSummaryMessage(SITE, { ...event, channelId, count: n, burstAtMs })
  expect(read(count(37, 5)).notification).toMatchObject({
    title: '37 more in payments',
    body: 'Shop',
  })
  expect(count(38, 5).topic).toBe(count(37, 5).topic)
  expect(count(38, 6).topic).not.toBe(count(37, 5).topic)
  expect(count(38, 5, newId('chn').uuid).topic).not.toBe(count(37, 5).topic)
  expect(read(toTestMessage(SITE)).notification.navigate).toBe(`${SITE}/`)
})

const NOW_MS = Date.parse('2026-11-20T12:00:00Z')
const answer = (status: number, headers = {}, body = ''): EgressResult => ({
  status,
  headers,
  body: Buffer.from(body),
  latencyMs: 1,
})

test.each([
  ['accepted', [200, 201, 202]],
  ['failed', [301, 307, 405]],
  ['refused', [400, 401, 403]],
  ['gone', [404, 410]],
  ['busy', [408, 429, 500, 503]],
  ['too large', [413]],
])('delivery: a push is %s with any body and the status %p', (kind, statuses) => {
  for (const status of statuses)
    for (const body of ['', '{"reason":"Unregistered"}', 'gone', 'ok'])
      expect([status, toPushOutcome(answer(status, {}, body), NOW_MS).kind]).toEqual([
        ...[status, kind as never],
      ])
})

test('delivery: Retry-After is kept, and an unsent push says nothing about its target', () => {
  const after = toPushOutcome(answer(429, { 'retry-after': '120' }), NOW_MS)
  expect(after).toMatchObject({ kind: 'busy', afterMs: 120_000 })
  for (const error of ['dns', 'connect', 'tls', 'timeout', 'reset', 'refused'] as const) {
    expect(toPushOutcome({ error, message: 'x', latencyMs: 1 }, NOW_MS).kind).toBe('busy')
  }
  for (const error of ['busy', 'cancelled'] as const) {
    expect(toPushOutcome({ error, message: 'x', latencyMs: 1 }, NOW_MS).kind).toBe('unsent')
  }
})

test('delivery: pushes are retried for a day', () => {
  const total = PUSH_SCHEDULE_MS.reduce((sum, ms) => sum + ms, 0)
  expect(PUSH_SCHEDULE_MS[0]).toBe(0)
  expect(total).toBeWithin(0.9 * DAY_MS, DAY_MS + 1)
})

test('delivery: the VAPID contact is reachable from the internet', () => {
  const sites = ['https://example.com', 'https://a.example.com/contact']
  for (const text of ['mailto:ops@example.com', ...sites])
    expect([text, parseVapidSubject(text)]).toEqual([text, text])
  const mails = ['ops@localhost', 'ops@nas.local', 'ops@mail.internal', 'ops@nas.home.arpa']
  const odd = [' ops@example.com', 'a@b@example.com', 'ops@example.com?subject=x']
  const own = ['localhost', '127.0.0.1', '[::1]', 'tidings', 'nas.local./x', 'tidings.lan']
  for (const text of [
    ...[...mails, ...odd].map(mail => `mailto:${mail}`),
    ...[...own, 'user:password@example.com', 'example.com/our contact'].map(at => `https://${at}`),
    ...['ops@example.com', ' https://example.com', 'http://example.com', ''],
  ])
    expect([text, parseVapidSubject(text)]).toEqual([text, undefined])
})

test('attention §3 the message after quiet hours names five channels, and fits however long their names', () => {
  const counts = [9, 8, 7, 6, 5, 4, 3].map(count => ({
    ...{ channel: `channel ${count}`, count, isMore: count === 8 || count === 3 },
  }))
  const few = read(toQuietMessage(SITE, { id: 'a', counts: counts.slice(0, 2) }))
  expect(few.notification.body).toBe('9 in channel 9, 8+ in channel 8 while you were away')
  const many = read(toQuietMessage(SITE, { id: 'a', counts }))
  expect(many.notification.body).toEndWith(
    '6 in channel 6, 5 in channel 5, 7+ in other channels while you were away',
  )
  expect(many.notification.tag).toBe(few.notification.tag)
  const long = counts.map(one => ({ ...one, channel: '💰'.repeat(1_000) }))
  const { payload } = toQuietMessage(SITE, { id: 'a', counts: long })
  expect(Buffer.byteLength(payload)).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
})

test('attention §7 answers that leave no room for the title are left out', () => {
  const name = '語'.repeat(255)
  const actions = ['a', 'b'].map(id => ({ id: id.repeat(50), label: '語'.repeat(40) }))
  const asking = { ...event, title: '語'.repeat(500), channel: name, project: name, actions }
  const message = toEventMessage(`https://${'x'.repeat(60)}.${'y'.repeat(60)}.example.com`, asking)
  expect(Buffer.byteLength(message.payload)).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
  expect(read(message).notification.actions).toBeUndefined()
  expect(read(toEventMessage(SITE, { ...event, actions })).notification.actions).toHaveLength(2)
})
