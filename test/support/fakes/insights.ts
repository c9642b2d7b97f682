import { PROJECT, type FakeApi } from './api.ts'

const HOUR_MS = 3_600_000
const DAY = 24

/** The cards of a shop's board, one of each kind. */
const CARDS = [
  toCard(1, { kind: 'series', hours: 168, title: 'Sales and sign-ups' }),
  toCard(2, { kind: 'number', q: 'channel:payments tag:vip', hours: DAY }),
  toCard(3, { kind: 'top', groupBy: 'user', q: 'channel:payments' }),
  toCard(4, { kind: 'top', groupBy: 'channel', hours: 720 }),
  toCard(5, { kind: 'top', groupBy: 'metadata', metadataPath: 'order.currency', q: '-tag:test' }),
  toCard(6, { kind: 'top', groupBy: 'tag', q: 'source:cron', hours: 1 }),
]

/** Adds a board with a card of each kind. */
export function fillBoard(api: FakeApi): void {
  const from = new Date(Math.floor(Date.now() / HOUR_MS - 167) * HOUR_MS).toISOString()
  const common = { kind: 'counts', from, to: new Date().toISOString(), completeSince: null }
  const results: Record<string, object> = {
    crd_1: { kind: 'series', histogram: toHistogram(from) },
    crd_2: { ...common, total: 1_284, previous: 1_147, values: [], hasMore: false },
    crd_3: {
      ...common,
      ...{ total: 412, previous: null, hasMore: true },
      values: [
        toValue('user_123', 'Ada Lovelace', 97),
        toValue('user_8841', 'grace@example.com', 61),
        toValue('user_linus_with_a_very_long_identifier_of_another_system', null, 12),
        toValue('دفعة', null, 3),
      ],
    },
    crd_4: {
      ...common,
      ...{ total: 9_120, previous: null, hasMore: false },
      values: [
        toValue('chn_payments', 'payments', 6_210),
        toValue('chn_deploys', 'deploys', 310),
        toValue('chn_ops', 'ops', 12),
      ],
    },
    crd_5: {
      ...common,
      ...{ total: 80, previous: null, hasMore: false, completeSince: from },
      values: [toValue('EUR', null, 60), toValue('', null, 2)],
    },
    crd_6: { ...common, total: 0, previous: null, values: [], hasMore: false },
  }
  api.on('GET /api/projects/:id/insights', () => ({ data: { cards: CARDS } }))
  api.on('GET /api/projects/:id/insights/:card/result', (_, url) => ({
    data: results[url.pathname.split('/').at(-2) ?? ''],
  }))
}

/** Adds an empty board. */
export function noCards(api: FakeApi): void {
  api.on('GET /api/projects/:id/insights', () => ({ data: { cards: [] } }))
}

function toCard(nth: number, some: object) {
  return {
    id: `crd_${nth}`,
    ...{ groupBy: null, metadataPath: null, q: '', hours: 168, title: null },
    createdAt: '2026-11-20T10:00:00.000Z',
    ...some,
  }
}

function toValue(value: string, name: string | null, total: number) {
  return { value, name, total }
}

/** A week in bars of three hours, with one burst. */
function toHistogram(from: string) {
  const bars = 56
  const wave = (height: number, phase: number) =>
    Array.from({ length: bars }, (_, at) =>
      Math.round(height * (1 + Math.sin((at + phase) / 1.3)) + (at === 40 ? 60 * height : 0)),
    )
  const channels = ['payments', 'sign-ups', 'deploys', 'ops'].map((name, at) => ({
    id: `chn_${name}`,
    name,
    counts: wave(24 / (at + 1), at),
  }))
  const others = wave(1, 0)
  const total = [...channels.map(({ counts }) => counts), others].flat().reduce((a, b) => a + b)
  return {
    from,
    to: new Date(Date.parse(from) + bars * 3 * HOUR_MS).toISOString(),
    stepMs: 3 * HOUR_MS,
    total,
    channels,
    others,
    isPartial: false,
    completeSince: null,
  }
}

/** Adds an overview of two projects, one of which needs a look. */
export function fillOverview(api: FakeApi): void {
  const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
  const organization = { id: 'org_1', name: 'Analytical Engines' }
  const toEvent = (nth: number, icon: string | null, title: string) => ({
    ...{ id: `evt_${nth}`, icon, title, channelName: 'payments', createdAt: at(7 * nth) },
    level: nth === 1 ? 'high' : null,
  })
  const hours = Array.from({ length: 24 }, (_, hour) => (hour * 7) % 11)
  const projects = [
    {
      ...{ id: PROJECT, name: 'Web shop', organization, head: 0, unseen: 37, hours },
      newest: [
        toEvent(1, '💰', 'New payment of 42 €'),
        toEvent(
          2,
          '↩️',
          'Refund requested for an order that was sent by mistake, with a long title',
        ),
        toEvent(3, null, 'دفعة جديدة'),
      ],
      unusual: [
        {
          channel: { id: 'chn_payments', name: 'payments', icon: '💰' },
          ...{ kind: 'loud', from: at(90), to: at(30), count: 1_240 },
          usual: { least: 80, most: 130 },
        },
        {
          channel: { id: 'chn_ops', name: 'ops', icon: null },
          ...{ kind: 'silent', from: at(1_500), to: at(60), count: 0 },
          usual: { least: 1, most: 1 },
        },
      ],
      failed: { deliveries: 3, lastAt: at(80), webhooks: 1 },
      isComplete: true,
    },
    {
      ...{ id: 'prj_2', name: 'Newsletter', organization, head: 0, unseen: 0, hours: [] },
      ...{ newest: [], firing: 0, unusual: [], failed: null, isComplete: true },
    },
  ]
  api.on('GET /api/overview', () => ({ data: { projects, more: 0 } }))
}
