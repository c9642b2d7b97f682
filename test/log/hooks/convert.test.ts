import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { cutBytes, MAX_KEPT, readDrafts, toEvents } from '../../../src/log/hooks/convert.ts'
import { readBody } from '../../../src/log/hooks/read-body.ts'
import { PRESETS, type PresetName, type Template } from '../../../src/log/hooks/schema.ts'
import { createValidator } from '../../../src/http/validation.ts'
import { EventInput } from '../../../src/log/events/schema.ts'
import alertmanager from './bodies/alertmanager.json' with { type: 'json' }
import github from './bodies/github.json' with { type: 'json' }
import grafana from './bodies/grafana.json' with { type: 'json' }
import stripe from './bodies/stripe.json' with { type: 'json' }
import uptimeKuma from './bodies/uptime-kuma.json' with { type: 'json' }

interface Sent {
  headers?: Record<string, string>
  template?: Template
}

/** Converts a request as the server does. */
async function receive(preset: PresetName, body: string | object, sent: Sent = {}) {
  const headers = new Headers(sent.headers ?? {})
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const read = await readBody(Buffer.from(text), { headers, caller: 'test' })
  const { template = null } = sent
  const hook = { id: 'hok_1', name: 'Shop', preset, channel: 'ops', template }
  const request = { ...read, headers, hook }
  const { drafts, fits } = readDrafts(request)
  return { events: toEvents(drafts, request), fits }
}

async function read(preset: PresetName, body: string | object, sent: Sent = {}) {
  const { events } = await receive(preset, body, sent)
  return events.map(({ input: { metadata: _, ...input } }) => input)
}

const ops = { channelName: 'ops' }

test('each alert of Alertmanager is a thread by its fingerprint, whatever its group does', async () => {
  expect(await read('alertmanager', alertmanager)).toEqual([
    {
      ...{ ...ops, source: 'alertmanager', level: 'critical' },
      ...{ title: 'The disk of db1 will be full in 4 hours', description: 'It has 8 % left.' },
      ...{ thread: '8d2c5a1e7b904f36', state: 'firing' },
      url: 'http://prometheus.example.com:9090/graph?g0.expr=node_filesystem',
    },
    {
      ...{ ...ops, source: 'alertmanager', level: 'normal', title: 'DiskWillFill' },
      ...{ thread: '1f9e6c2b5d8a4730', state: 'resolved' },
      url: 'http://prometheus.example.com:9090/graph?g0.expr=node_filesystem',
    },
  ])
  // Some programs say resolved while the alert has no end.
  const [first] = alertmanager.alerts
  const bare = { ...first, status: 'resolved', fingerprint: undefined, labels: { b: '2', a: '1' } }
  const turned = { ...bare, endsAt: '2026-11-20T09:30:00Z', labels: { a: '1', b: '2' } }
  const [firing, resolved] = await read('alertmanager', { alerts: [bare, turned] })
  expect([firing?.state, resolved?.state]).toEqual(['firing', 'resolved'])
  expect(firing?.thread).toBe(resolved?.thread)
  const noted = ['a', 'b'].map(summary => ({ annotations: { summary } }))
  const [one, other] = await read('alertmanager', { alerts: noted })
  expect(one?.thread).not.toBe(other?.thread)
})

test('the levels of severities', async () => {
  const severities = ['critical', 'error', 'high', 'page', 'warning', 'info', 'none', 'constructor']
  const alerts = severities.map(severity => ({ labels: { severity } }))
  const levels = (await read('alertmanager', { alerts })).map(({ level }) => level)
  expect(levels).toEqual(['critical', 'high', 'high', 'high', 'normal', 'low', 'low', undefined])
})

test('an alert of Grafana leads to its panel, or else to its rule', async () => {
  const [event] = await read('grafana', grafana)
  expect(event).toEqual({
    ...{ ...ops, source: 'grafana', thread: 'c6eadffa33fcdf37', state: 'firing' },
    title: 'This alert was triggered for zone us-1',
    description: 'The system has high memory usage',
    url: 'https://grafana.example.com/alerting/1afz29v7z/edit',
  })
})

test('a monitor of Uptime Kuma is a thread, and a test is an event', async () => {
  const heartbeat = (more: object) => ({
    ...uptimeKuma,
    heartbeat: { ...uptimeKuma.heartbeat, ...more },
  })
  expect(await read('uptime-kuma', uptimeKuma)).toEqual([
    {
      ...{ ...ops, source: 'uptime-kuma', title: 'Shop is down', level: 'high' },
      description: 'Request failed with status code 502',
      ...{ thread: 'hok_1 3', state: 'firing', url: 'https://shop.example.com' },
    },
  ])
  const states = [1, 2, 3].map(async status => read('uptime-kuma', heartbeat({ status })))
  expect((await Promise.all(states)).map(([event]) => [event?.title, event?.state])).toEqual([
    ['Shop is up', 'resolved'],
    ['Shop is being checked again', undefined],
    ['Shop is under maintenance', undefined],
  ])
  const test = { heartbeat: null, monitor: null, msg: 'Webhook Testing' }
  expect(await read('uptime-kuma', test)).toEqual([
    { ...ops, source: 'uptime-kuma', title: 'Webhook Testing' },
  ])
  const { events } = await receive('uptime-kuma', heartbeat({ time: undefined }))
  expect(events[0]?.key).toBeUndefined()
})

test('events of GitHub have readable titles; runs and deployments are threads', async () => {
  const events = await Promise.all(
    Object.entries(github).map(async ([event, body]) => {
      const [made] = await read('github', body, { headers: { 'x-github-event': event } })
      return [made?.title, made?.thread, made?.state]
    }),
  )
  const none = [undefined, undefined]
  expect(events).toEqual([
    ['CI of octo-org/shop: failure', 'workflow 10242848394 1', 'failed'],
    ['octocat pushed 1 commit to main of octo-org/shop', ...none],
    ['octocat merged pull request #7: Mend the cart', ...none],
    ['octocat opened issue #8: The cart is empty', ...none],
    ['octo-org/shop published v1.4', ...none],
    ['octocat starred octo-org/shop', ...none],
    ['GitHub is connected to octo-org/shop', ...none],
    ['Deployment of octo-org/shop to production: success', 'deployment 12', 'succeeded'],
    ['label created in octo-org/shop', ...none],
  ])
  const tag = { ...github.push, ref: 'refs/tags/v1' }
  expect(await read('github', tag, { headers: { 'x-github-event': 'push' } })).toMatchObject([
    { title: 'octocat pushed the tag v1 of octo-org/shop' },
  ])
  for (const [ref, what] of [
    ['refs/tags/v1', 'tag v1'],
    ['refs/heads/late', 'branch late'],
  ]) {
    const gone = { ...github.push, ref, deleted: true, commits: [], head_commit: null }
    expect(await read('github', gone, { headers: { 'x-github-event': 'push' } })).toMatchObject([
      { title: `octocat deleted the ${what} of octo-org/shop` },
    ])
  }
  // GitHub can also send a form.
  const form = new URLSearchParams({ payload: JSON.stringify(github.star) }).toString()
  const headers = {
    'x-github-event': 'star',
    'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
  }
  expect(await read('github', form, { headers })).toMatchObject([{ title: events[5]?.[0] }])
})

test('amounts of Stripe have the digits of their currency', async () => {
  const [event] = await read('stripe', stripe)
  expect(event).toEqual({
    ...{ ...ops, source: 'stripe', description: 'Order 42' },
    title: 'Payment intent succeeded: $20.00',
    url: 'https://dashboard.stripe.com/test/events/evt_1NG8Du2eZvKYlo2CUI79vXWy',
  })
  const titles = ['jpy', 'kwd', 'isk', 'x', '']
    .map(currency => ({ ...stripe, data: { object: { amount: 2000, currency } } }))
    .map(async body => (await read('stripe', body))[0]?.title.replace(/^[^:]*:? ?/, ''))
  expect(await Promise.all(titles)).toEqual(['¥2,000', 'KWD 2.000', 'ISK 20.00', '', ''])
  const object = { amount: 2000, amount_refunded: 500, currency: 'usd' }
  const unpaid = { amount_paid: 0, amount_due: 2000, currency: 'usd' }
  const failed = { ...stripe, type: 'invoice.payment_failed', data: { object: unpaid } }
  expect(await read('stripe', failed)).toMatchObject([{ title: 'Invoice payment failed: $20.00' }])
  const refund = { ...stripe, type: 'charge.refunded', data: { object } }
  expect(await read('stripe', refund)).toMatchObject([{ title: 'Charge refunded: $5.00' }])
})

test('a template fills the fields of an event, and without one usual names do', async () => {
  const body = { title: 'Paid', order: { id: 42, 'a.b': 'x' }, severity: 'error', text: 'More' }
  expect(await read('generic', body)).toEqual([
    { ...ops, source: 'hook', title: 'Paid', description: 'More', level: 'high' },
  ])
  const template = {
    ...{ title: 'Order {{order.id}}{{nothing}}', channel: '{{order.a.b}}', level: 'low' },
    ...{ thread: '{{order.id}}', state: 'running', description: '{{nothing}}' },
  }
  expect(await read('generic', body, { template })).toEqual([
    {
      ...{ channelName: 'x', source: 'hook', title: 'Order 42', description: 'More' },
      ...{ level: 'low', thread: '42', state: 'running' },
    },
  ])
  const text = '🎉 First line\nmore'
  expect(await read('generic', text)).toMatchObject([{ title: 'First line', description: 'more' }])
  expect(await read('generic', { text: '🚀 Deployed' })).toMatchObject([
    { title: 'Deployed', icon: '🚀' },
  ])
  expect(await read('generic', '')).toMatchObject([{ title: 'Request to Shop' }])
  const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' } }
  expect(await read('generic', 'title=A+b&url=https%3A%2F%2Fa.example', form)).toMatchObject([
    { title: 'A b', url: 'https://a.example' },
  ])
  // As curl sends them.
  expect(await read('generic', 'It works\nnow', form)).toMatchObject([
    { title: 'It works', description: 'now' },
  ])
  expect(await read('generic', '{"title":"a=b"}', form)).toMatchObject([{ title: 'a=b' }])
  expect(await read('generic', 'Disk of db1 = 95%', form)).toMatchObject([
    { title: 'Disk of db1 = 95%' },
  ])
})

test('a request that a preset does not know is an event with the body', async () => {
  for (const preset of PRESETS.filter(one => one !== 'generic')) {
    for (const body of [{ a: 1 }, { alerts: [1], heartbeat: 3, object: 'event' }]) {
      const { events, fits } = await receive(preset, body)
      expect(fits).toBe(false)
      expect(events.map(({ input }) => input)).toEqual([
        {
          ...ops,
          title: `Unknown ${preset} request to Shop`,
          ...{ source: preset, metadata: body },
        },
      ])
    }
  }
})

test('an event keeps what fits of a large body, and a request makes 1,000 events and says so', async () => {
  const body = { title: 'Large', long: 'x'.repeat(MAX_KEPT), last: 1 }
  const [event] = (await receive('generic', body)).events
  expect(event?.input.metadata).toEqual({ title: 'Large', last: 1 })
  const alerts = Array.from({ length: 1_200 }, (_, n) => ({ fingerprint: `${n}` }))
  const events = await read('alertmanager', { alerts })
  expect(events.length).toBe(1_001)
  expect(events.at(-1)?.title).toBe('Of a request with over 1,000 events, the others were left out')
  // Postgres stores no such number.
  const [bare] = (await receive('generic', '{"title":"A","n":1e99999}')).events
  expect(bare?.input).toMatchObject({ title: 'A', metadata: { body: '{"title":"A","n":1e99999}' } })
})

test('the events of a request keep at most 1 MiB of it', async () => {
  const { events: large } = await receive('alertmanager', {
    receiver: 'x'.repeat(60_000),
    alerts: Array.from({ length: 1_000 }, (_, n) => ({ fingerprint: `${n}` })),
  })
  expect(large[0]?.input.metadata).toEqual({ fingerprint: '0', receiver: 'x'.repeat(255) })
  const bad = Array.from({ length: 50 }, () => '{"n":1e99999}').join()
  const text = `{"alerts":[${bad}],"long":"${'x'.repeat(MAX_KEPT)}"}`
  const { events } = await receive('alertmanager', text)
  const kept = events.filter(({ input }) => Object.keys(input.metadata ?? {}).length > 0)
  expect([events.length, kept.length]).toEqual([50, 15])
})

test('a cut body ends with a whole character', () => {
  expect(cutBytes('x'.repeat(MAX_KEPT - 1) + '🎉')).toBe('x'.repeat(MAX_KEPT - 1))
})

const SAMPLES = { alertmanager, grafana, 'uptime-kuma': uptimeKuma, stripe, generic: { a: 1 } }
const event = createValidator(EventInput)
const TEXTS = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('\u0000', '\ud800', '\u202e', '__proto__', '{{a}}', '9'.repeat(400)),
  fc.string({ minLength: 600, maxLength: 6_000 }),
)
const VALUES = fc.oneof(
  TEXTS,
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(null, [], {}, -0, 1e300, [[]], [null], [{}], { length: 4e9 }),
)

test.each([...PRESETS])(
  '2,000 hostile bodies make events of %s within their bounds',
  async preset => {
    const samples = preset === 'github' ? Object.entries(github) : [['', SAMPLES[preset]] as const]
    const values = fc.sample(VALUES, 500)
    const texts = fc.sample(TEXTS, 100)
    let seed = 1
    const roll = (sides: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % sides
    }
    /** Returns a body in which some values are hostile. */
    const spoil = (value: unknown): unknown => {
      if (roll(10) === 0) return values[roll(values.length)]
      if (Array.isArray(value)) return value.map(spoil)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, spoil(one)]))
    }
    const template = { title: '{{a}}', channel: '{{a}}', url: '{{b}}', state: '{{a}}' }
    for (let n = 0; n < 2_000; n++) {
      const [name, sample] = samples[n % samples.length]!
      const headers = name ? { 'x-github-event': name } : {}
      const body = n % 20 === 0 ? texts[roll(texts.length)]! : (JSON.stringify(spoil(sample)) ?? '')
      const sent = { headers, ...(preset === 'generic' && n % 2 === 0 && { template }) }
      const { events } = await receive(preset, body, sent)
      expect(events.length, body).toBeGreaterThan(0)
      for (const { input } of events) {
        const json = JSON.stringify(event.parse(input))
        expect(Buffer.byteLength(json), body).toBeLessThan(MAX_KEPT * 2)
        expect(json.replaceAll('\\\\', ''), body).not.toMatch(/\\u(0000|d[89a-f])/i)
      }
    }
  },
)
