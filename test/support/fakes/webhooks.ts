import type { FakeApi } from './api.ts'

const MINUTE_MS = 60_000
const DAY_MINUTES = 1_440

/** Returns the moment `minutes` minutes ago. */
function ago(minutes: number): string {
  return new Date(Date.now() - minutes * MINUTE_MS).toISOString()
}

function listOf(items: readonly unknown[]) {
  return () => ({ data: { items, nextCursor: null } })
}

const ALL_SCOPES = ['events:write', 'events:read', 'identities:write', 'identities:read']
const CALM = { state: 'closed', failures: 0, failingSince: null, pausedUntil: null }
/** A key as the server returns it. */
function toFakeKey(fields: Record<string, unknown> = {}) {
  return {
    id: 'key_1',
    name: 'Web shop',
    prefix: 'tdg_',
    lastFour: 'x9Qa',
    limit: 6_000,
    scopes: ALL_SCOPES,
    createdAt: ago(40 * DAY_MINUTES),
    createdBy: 'Ada Lovelace',
    lastUsedAt: ago(1),
    expiresAt: null,
    revokedAt: null,
    isPrinted: false,
    requestsPerHour: [
      ...[120, 80, 46, 31, 12, 9, 14, 60, 210, 480, 760, 812],
      ...[640, 702, 905, 1_240, 988, 730, 512, 430, 380, 260, 190, 44],
    ],
    ...fields,
  }
}

/** Adds keys in each of their states. */
export function fillKeys(api: FakeApi): void {
  const keys = [
    toFakeKey({ createdBy: null, isPrinted: true }),
    toFakeKey({
      ...{ id: 'key_2', name: 'Nightly backup', lastFour: 'p03d', limit: 100 },
      ...{ scopes: ['events:write'], expiresAt: ago(-9 * DAY_MINUTES), lastUsedAt: ago(700) },
      requestsPerHour: Array.from({ length: 24 }, (_, at) => (at === 12 ? 1 : 0)),
    }),
    toFakeKey({
      ...{ id: 'key_3', name: 'Billing, before the move', lastFour: 'T7kk', createdBy: null },
      ...{ lastUsedAt: null, revokedAt: ago(5 * DAY_MINUTES), scopes: ['events:write'] },
      requestsPerHour: Array.from({ length: 24 }, () => 0),
    }),
  ]
  api.on('GET /api/projects/:id/keys', listOf(keys))
  api.on('POST /api/projects/:id/keys', ({ name }) => {
    const made = toFakeKey({ id: 'key_9', name, lastFour: 'Zk4e', limit: 100, lastUsedAt: null })
    keys.unshift(made)
    const key = 'tdg_4mWq8ZrT1nYb6KcX0sLh9VdJ3gEf7PuRa2Zk4e'
    return { status: 201, data: { ...made, key } }
  })
}

/** A webhook as the server returns it to an admin. */
function toFakeWebhook(fields: Record<string, unknown> = {}) {
  return {
    id: 'whk_1',
    name: 'Fulfilment',
    host: 'orders.shop.example',
    url: 'https://orders.shop.example/hooks/tidings?token=9f2c41',
    type: 'event.created',
    preset: 'standard',
    channels: ['chn_payments'],
    ...{ body: '{"text":"{{title}}"}', headers: ['X-Team'], viewId: 'viw_1' },
    isEnabled: true,
    disabledAt: null,
    disabledReason: null,
    breaker: CALM,
    backlogFullAt: null,
    previousSecretUntil: null,
    createdAt: ago(12 * DAY_MINUTES),
    updatedAt: ago(12 * DAY_MINUTES),
    ...fields,
  }
}

const FAILING = { failures: 12, failingSince: ago(130) }

/** Webhooks in each of their states. */
const WEBHOOKS = [
  toFakeWebhook(),
  toFakeWebhook({
    ...{ id: 'whk_2', name: 'Team chat', host: 'hooks.slack.com', preset: 'slack', channels: null },
    breaker: { ...FAILING, state: 'paused', pausedUntil: ago(-4) },
  }),
  toFakeWebhook({
    ...{ id: 'whk_3', name: 'Warehouse', channels: ['chn_payments', 'chn_ops'] },
    breaker: { ...FAILING, state: 'probing', pausedUntil: ago(1) },
  }),
  toFakeWebhook({
    ...{ id: 'whk_4', name: 'Archive', host: 'archive.shop.example' },
    breaker: { ...CALM, failures: 1, failingSince: ago(3) },
    backlogFullAt: ago(20),
  }),
  toFakeWebhook({
    ...{ id: 'whk_5', name: 'old.partner.example', host: 'old.partner.example', isEnabled: false },
    ...{
      disabledAt: ago(2 * DAY_MINUTES),
      disabledReason: 'The receiver answered 410: it is permanently gone',
    },
  }),
]

function toFakeAttempt(fields: Record<string, unknown>) {
  return {
    kind: 'event.created',
    eventId: 'evt_01kadz5p6vf2w8y3m4n5q6r7s8',
    eventTitle: 'New payment',
    number: 1,
    outcome: 'delivered',
    status: 200,
    error: null,
    reason: 'The receiver answered 200',
    response: '{"ok":true}',
    latencyMs: 38,
    startedAt: ago(3),
    ...fields,
  }
}

const TEST = { kind: 'webhook.test', eventId: null, eventTitle: null }
const FAILED = { outcome: 'failed', status: 500, reason: 'The receiver answered 500' }

/** Adds webhooks, the attempts of one of them, and dead letters. */
export function fillWebhooks(api: FakeApi): void {
  const attempts: Record<string, unknown>[] = [
    toFakeAttempt({ id: 'att_4' }),
    toFakeAttempt({
      ...FAILED,
      id: 'att_3',
      number: 2,
      response: 'Out of order',
      startedAt: ago(9),
    }),
    toFakeAttempt({ ...FAILED, id: 'att_2b', response: 'Out of order', startedAt: ago(10) }),
    toFakeAttempt({
      ...{ id: 'att_2', outcome: 'failed', status: null, response: null, latencyMs: 15_003 },
      ...{ error: 'timeout', reason: 'No answer within 15 s', startedAt: ago(10) },
    }),
    toFakeAttempt({ ...TEST, id: 'att_1', response: '', startedAt: ago(2_000) }),
  ]
  // The fake takes the last part for an id.
  api.on('POST /api/projects/:id/webhooks/:webhook', () => ({
    data: {
      ...{ url: 'https://orders.shop.example/', headers: {} },
      items: [{ eventId: 'evt_01kadz5p6vf2w8y3m4n5q6r7s8', body: '{"text":"New payment"}' }],
    },
  }))
  const one = '/api/projects/:id/webhooks/:webhook'
  const find = (url: URL) => WEBHOOKS.find(({ id }) => url.pathname.split('/')[5] === id)
  api.on('GET /api/projects/:id/webhooks', listOf(WEBHOOKS))
  api.on(`GET ${one}`, (_, url) => {
    const data = find(url)
    return data ? { data } : { status: 404, code: 'not_found', error: 'No webhook has this id' }
  })
  api.on(`GET ${one}/attempts`, listOf(attempts))
  api.on(`GET ${one}/attempts/:attempt`, (_, url) => ({
    data: {
      ...attempts.find(({ id }) => url.pathname.endsWith(`/${id}`)),
      request: {
        method: 'POST',
        headers: {
          host: 'orders.shop.example',
          'content-type': 'application/json',
          'webhook-id': 'msg_01kadz5p6vf2w8y3m4n5q6r7s8',
          'webhook-timestamp': '1795257600',
        },
        body: `{"type":"event.created","data":{"title":"New payment","description":"${'long '.repeat(60)}"}}`,
        note: null,
      },
    },
  }))
  api.on(`POST ${one}/test`, () => {
    const made = toFakeAttempt({ ...FAILED, ...TEST, id: 'att_5', response: 'Out of order' })
    attempts.unshift(made)
    return { data: made }
  })
  const delivery = {
    id: 'dlv_1',
    eventId: 'evt_01kadz5p6vf2w8y3m4n5q6r7s8',
    kind: 'webhook',
    target: { id: 'whk_2', name: 'Team chat' },
    state: 'dead',
    attempts: 10,
    latencyMs: null,
    reason: 'The receiver answered 500',
    at: ago(300),
    nextAttemptAt: null,
  }
  const waiting = { state: 'pending', attempts: 3, at: null, nextAttemptAt: ago(-30) }
  api.on('GET /api/projects/:id/deliveries', (_, url) => {
    const dead = [
      delivery,
      { ...delivery, id: 'dlv_2', kind: 'push', target: { id: 'psh_1', name: null } },
    ]
    const isDead = url.searchParams.get('state') === 'dead'
    return { data: { items: isDead ? dead : [{ ...delivery, ...waiting }], nextCursor: null } }
  })
}
