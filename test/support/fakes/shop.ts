import { PROJECT, type FakeApi } from './api.ts'
import { fakeUsers } from './users.ts'

/** An event with every field. */
export const REFUND = {
  id: 'evt_7',
  seq: 7,
  channelId: 'chn_payments',
  channelName: 'payments',
  userId: 'linus@example.com',
  timestamp: '2026-11-20T10:00:00.000Z',
  createdAt: '2026-11-20T10:00:01.000Z',
  title: 'Refund requested',
  description:
    'The customer writes: “I ordered two by mistake, sorry! Could you take one back?”\nIt has not been packed yet.',
  icon: '↩️',
  tags: ['vip', 'support'],
  metadata: {
    order: { number: 81_023, lines: [{ sku: 'b-12', count: 2 }], paid: true },
    reason: 'mistake',
    agent: null,
  },
  source: 'shop-backend',
  notify: true,
  level: 'high',
  url: 'https://support.analytical-engines.example/tickets/81023?from=tidings',
}

/** Adds users of a shop. */
export function fillUsers(api: FakeApi): void {
  fillShop(api)
  fakeUsers(api, [
    {
      userId: 'user_123',
      aliases: ['ada@example.com', 'ada.lovelace@analytical-engines.example'],
      properties: { plan: 'pro', since: 2024, address: { city: 'London', zip: 'W1' } },
    },
    { userId: 'user_8841', aliases: ['grace@example.com'], properties: { plan: 'free' } },
    { userId: 'دفعة', aliases: [] },
  ])
}

export function noUsers(api: FakeApi): void {
  fakeUsers(api, [])
}

/** Adds a day's events of a shop, and a rush of orders after them. */
export function fillRush(api: FakeApi): void {
  fillShop(api)
  const startMs = Math.floor((Date.now() - 11_000) / 5_000) * 5_000
  const users = ['Ada Lovelace', 'grace@example.com', 'user_8841']
  for (let nth = 0; nth < 32; nth++) {
    const time = new Date(startMs + nth * 150).toISOString()
    const [title, icon] =
      nth % 10 === 4 ? ['Refund requested', '↩️'] : nth === 19 ? ['Stock is low', '📦'] : []
    api.emit({
      ...{ title: title ?? 'Order placed', icon: icon ?? '🛒', channelName: 'orders' },
      ...{ userId: users[nth % users.length], timestamp: time, createdAt: time },
      ...(title === 'Refund requested' && { level: 'high' }),
    })
  }
}

/** Views of a shop: one of the member, and one of all members with new matches. */
const VIEWS = [
  ...[{ id: 'viw_1', name: 'Big orders', q: 'meta:total=1000', isShared: false, newEvents: 0 }],
  ...[{ id: 'viw_2', name: 'Night shift', q: 'tag:warning', isShared: true, newEvents: 3 }],
].map(view => ({ ...view, hasBell: view.isShared, isPartial: false }))

export function fillViews(api: FakeApi): void {
  api.on('GET /api/projects/:id/views', () => ({ data: { items: VIEWS } }))
}

/** Events of a day: the minutes since then, the icon, the title, the channel and other fields. */
const DAY: [minutes: number, icon: string | null, title: string, channel: string, more?: object][] =
  [
    [1_900, '💾', 'Backup finished', 'ops', { description: '412 MB in 38 s' }],
    [
      1_500,
      '🚀',
      'Deploy of v2.31.0 went live',
      'deploys',
      { tags: ['production'], thread: 'v2.31.0', state: 'succeeded' },
    ],
    [1_440, null, 'Certificate renewed', 'ops', { level: 'low' }],
    [
      170,
      '🌱',
      'New subscription',
      'payments',
      { userId: 'grace@example.com', tags: ['pro', 'yearly'] },
    ],
    [
      96,
      '🐢',
      `Queue is 10,000 jobs behind and growing, ${'and growing, '.repeat(4)}`,
      'ops',
      { tags: ['warning'], level: 'critical', thread: 'queue', state: 'firing' },
    ],
    [41, '💰', 'دفعة جديدة', 'payments', { userId: 'user_8841' }],
    [
      12,
      '↩️',
      'Refund requested',
      'payments',
      { userId: 'linus@example.com', description: REFUND.description, level: 'high' },
    ],
    [3, '💰', 'New payment', 'payments', { userId: 'user_123', tags: ['vip'] }],
    [0, '👋', 'Ada signed up', 'growth', { userId: 'ada@example.com' }],
  ]

/** Adds threads to the events of a shop: some are open, and one is resolved. */
export function fillThreads(api: FakeApi): void {
  fillShop(api)
  const checkout = { channelName: 'monitoring', thread: 'checkout', icon: '🛒', level: 'high' }
  const link = { url: 'https://grafana.analytical-engines.example/d/checkout' }
  const deploy = { channelName: 'deploys', thread: 'v2.32.0', icon: '🚀', state: 'running' }
  const disk = { channelName: 'ops', thread: 'disk db1', state: 'firing' }
  for (const [minutes, event] of [
    [190, { ...disk, title: 'Disk of db1 is 90 % full' }],
    [52, { ...checkout, title: 'Checkout is slow', state: 'firing', ...link }],
    [47, { ...checkout, title: 'Checkout is down', state: 'firing', level: 'critical', ...link }],
    [41, { ...checkout, title: 'Checkout is slow', state: 'firing', ...link }],
    [40, { ...checkout, title: 'Checkout works again', state: 'resolved' }],
    [9, { ...checkout, title: 'Checkout is down', state: 'firing', level: 'critical', ...link }],
    [2, { ...deploy, title: 'Deploy of v2.32.0 to production' }],
  ] as const) {
    const timestamp = new Date(Date.now() - minutes * 60_000).toISOString()
    api.emit({ ...event, timestamp, createdAt: timestamp })
  }
}

/** Adds alarms: one that a member has, and one that is silenced. */
export function fillAlarms(api: FakeApi): void {
  fillThreads(api)
  const route = 'GET /api/projects/:id/channels'
  const list = api.handler(route)
  api.on(route, (body, url) => {
    const { data } = list(body, url) as { data: object }
    return { data: { ...data, alarms: 100 } }
  })
  const at = (path: string) => new URL(`http://x/api/projects/${PROJECT}/${path}`)
  const acknowledge = 'POST /api/projects/:id/events/:event/acknowledgement'
  api.handler(acknowledge)({}, at('events/evt_5/acknowledgement'))
  const until = new Date(Date.now() + 86_400_000).toISOString()
  api.handler('PUT /api/projects/:id/on-duty')({ memberId: 'per_2', until }, at('on-duty'))
  const hours = [{ days: [6, 7], from: '01:00', to: '05:00', timeZone: 'Europe/Berlin' }]
  for (const silence of [
    { channel: 'chn_ops', thread: 'disk db1', minutes: 480, reason: 'A larger disk is ordered' },
    { channel: 'chn_deploys', untilResolved: true, reason: 'Moving to the new cluster' },
    { hours, reason: 'Backups of the weekend' },
  ])
    api.handler('POST /api/projects/:id/silences')(silence, at('silences'))
  for (const rule of [
    { name: 'Payments fail', q: 'payment failed', moreThan: 3, withinSeconds: 600 },
    { name: 'No orders', q: 'channel:orders', moreThan: null, withinSeconds: 3_600 },
  ])
    api.handler('POST /api/projects/:id/rules')({ channel: 'chn_ops', ...rule }, at('rules'))
}

/** Adds heartbeats in each state. */
export function fillHeartbeats(api: FakeApi): void {
  fillShop(api)
  const at = new URL(`http://x/api/projects/${PROJECT}/heartbeats`)
  const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
  for (const [name, status, lastPingAt, startedAt = null] of [
    ['Backup of db1', 'down', ago(300)],
    ['Invoices', 'up', ago(20), ago(2)],
    ['تقرير الليل', 'paused', ago(9000)],
    ['Renewal of certificates', 'new', null],
  ] as const) {
    const fields = { name, channel: 'chn_ops', periodSeconds: 86_400, graceSeconds: 5400 }
    api.handler('POST /api/projects/:id/heartbeats')(
      { ...fields, status, lastPingAt, startedAt },
      at,
    )
  }
}

/** Adds a day's events of a shop, and its views. */
export function fillShop(api: FakeApi): void {
  fillViews(api)
  for (const [minutes, icon, title, channelName, more] of DAY) {
    const timestamp = new Date(Date.now() - minutes * 60_000).toISOString()
    api.emit({ title, channelName, timestamp, ...(icon && { icon }), ...more })
  }
}
