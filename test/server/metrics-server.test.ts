import { afterEach, expect, test } from 'bun:test'
import { parseConfig } from '../../src/base/config.ts'
import type { Listener } from '../../src/base/listener.ts'
import { registerGauge, registry } from '../../src/base/metrics.ts'
import { startMetrics } from '../../src/server/metrics-server.ts'
import { sendRaw, toRequest } from '../support/clients/raw-http.ts'

const TOKEN = 'violet-anchor-77-meadow'

let listener: Listener | undefined
afterEach(() => listener?.stop())

function start(env: Record<string, string> = {}): void {
  listener = startMetrics(parseConfig({ METRICS_PORT: '0', ...env }, String))
}

async function ask(
  lines: string[],
  { first = 'GET /metrics HTTP/1.1', to = '127.0.0.1' } = {},
): Promise<number | undefined> {
  const answer = await sendRaw(`http://${to}:${listener?.port}`, toRequest(first, lines))
  if (answer?.status === 200) expect(answer.text).toContain('process_cpu_seconds_total')
  return answer?.status
}

test('metrics are off by default, and listen on loopback alone when on', async () => {
  expect(startMetrics(parseConfig({ HOST: '0.0.0.0' }, String))).toBeUndefined()
  start({ HOST: '0.0.0.0' })
  expect(await ask(['Host: 127.0.0.1'])).toBe(200)
  // On Linux, all of 127.0.0.0/8 is loopback. Only the one address of METRICS_HOST listens.
  if (process.platform === 'linux') {
    expect(await ask(['Host: 127.0.0.1'], { to: '127.0.0.2' })).toBeUndefined()
  }
})

test.each([
  ['127.0.0.1', 200],
  ['localhost', 200],
  ['[::1]:9464', 200],
  ['10.1.2.3', 200],
  ['attacker.example', 421],
  ['localhost.attacker.example', 421],
  ['127.0.0.1:9464.attacker.example', 421],
  ['metrics.internal', 421],
])('metrics without a token answer the Host %p with %p', async (host, status) => {
  start()
  expect(await ask([`Host: ${host}`])).toBe(status)
})

test('metrics answer the name of METRICS_HOST', async () => {
  start({ METRICS_HOST: 'localhost' })
  const { port = 0 } = listener ?? {}
  const response = await fetch(`http://localhost:${port}/metrics`)
  expect(response.status).toBe(200)
})

test.each([
  [[], 401],
  [[`Authorization: Basic ${TOKEN}`], 401],
  [[`Authorization: Bearer ${TOKEN}x`], 401],
  [[`Authorization: Bearer ${TOKEN.slice(0, -1)}`], 401],
  [[`Authorization: Bearer ${TOKEN}`], 200],
])('metrics with a token answer %p with %p', async (lines, status) => {
  start({ METRICS_TOKEN: TOKEN })
  // The token replaces the check of the Host header.
  for (const host of ['127.0.0.1', 'metrics.internal']) {
    expect(await ask([`Host: ${host}`, ...lines])).toBe(status)
  }
})

test('other paths and methods are refused', async () => {
  start()
  expect(await ask(['Host: localhost'], { first: 'GET /v1/me HTTP/1.1' })).toBe(404)
  expect(await ask(['Host: localhost'], { first: 'POST /metrics HTTP/1.1' })).toBe(405)
})

test('a METRICS_TOKEN that is too short is a problem that does not show it', () => {
  expect(() => parseConfig({ METRICS_TOKEN: 'short' }, String)).toThrow(/METRICS_TOKEN must be/)
  expect(() => parseConfig({ METRICS_TOKEN: 'short' }, String)).not.toThrow(/"short"/)
})

test('a gauge without a value is left out of a scrape, which a reader cannot fail', async () => {
  const readings: (() => number | undefined)[] = [
    () => 1,
    () => undefined,
    () => {
      throw new Error('The database does not reply')
    },
    () => 2,
  ]
  const scrapes: unknown[] = []
  let at = 0
  registerGauge('test_one', 'One value.', { read: () => readings[at]?.() })
  registerGauge('test_each', 'A value for each kind.', {
    label: 'kind',
    readEach() {
      const value = readings[at]?.()
      return value === undefined ? undefined : { push: value }
    },
  })
  for (; at < readings.length; at++) {
    const text = await registry.metrics()
    scrapes.push(text.match(/^test_.*$/gm))
  }
  expect(scrapes).toEqual([
    ['test_one 1', 'test_each{kind="push"} 1'],
    null,
    null,
    ['test_one 2', 'test_each{kind="push"} 2'],
  ])
  for (const name of ['test_one', 'test_each']) registry.removeSingleMetric(name)
})
