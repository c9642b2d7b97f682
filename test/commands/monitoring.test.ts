import { afterAll, beforeAll, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { registerDiskGauges } from '../../src/server/gauges.ts'
import dashboard from '../../docs/monitoring/grafana.json' with { type: 'json' }
import { openDeliveries, type Deliveries } from '../support/worlds/deliveries.ts'
import { addTarget, createTestKind } from '../support/worlds/delivery-kind.ts'
import { readText, ROOT } from '../support/docs.ts'
import { openFeed, type FeedClient } from '../support/clients/feed.ts'
import { newFeedProject, type FeedProject } from '../support/worlds/feed-project.ts'
import { startPrometheus, type Prometheus } from '../support/servers/prometheus.ts'
import { SCRATCH } from '../support/scratch.ts'
import { boot, type Booted } from '../support/servers/server.ts'
import { hasTool } from '../support/tools.ts'
import { until } from '../support/until.ts'

const FOLDER = join(ROOT, 'docs/monitoring')

/** Metrics of expressions that can be without a series here, with the reason. */
const EMPTY = new Map([
  ['tidings_replication_lag_seconds', 'there is no standby'],
  ['tidings_replication_lag_bytes', 'there is no standby'],
  ['tidings_push_refused_devices', 'no push service refuses this server'],
  ['tidings_backup_last_success_timestamp_seconds', 'the server makes no backups'],
  ['tidings_database_pool_waiting', 'nothing has to wait for a connection'],
])

interface Rule {
  alert: string
  expr: string
  for: string
  labels: { severity: string }
  annotations: Record<'summary' | 'description' | 'runbook_url', string>
}
const { groups } = Bun.YAML.parse(readText('docs/monitoring/alerts.yml')) as {
  groups: { rules: Rule[] }[]
}
const rules = groups.flatMap(group => group.rules)

const expressions = dashboard.panels.flatMap(({ targets = [] }) =>
  targets.map(({ expr }) =>
    expr
      .replaceAll('$job', 'tidings')
      .replaceAll('$instance', '.*')
      .replaceAll('$__rate_interval', '1m'),
  ),
)

test('the dashboard has a source, a unit, a title and a description in each panel', () => {
  const variables = dashboard.templating.list.map(({ name }) => name)
  expect(variables).toEqual(['datasource', 'job', 'instance'])
  const panels = dashboard.panels.filter(({ type }) => type !== 'row')
  expect(panels.length).toBeGreaterThan(30)
  for (const panel of panels) {
    const { title, description, datasource, fieldConfig, targets = [] } = panel
    expect(datasource).toEqual({ type: 'prometheus', uid: '${datasource}' })
    expect([title, description, fieldConfig?.defaults.unit].every(Boolean)).toBe(true)
    expect(targets.length).toBeGreaterThan(0)
  }
  const ids = dashboard.panels.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  // No panel covers another one, or leaves the grid of 24 columns.
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, nth) => `${x + (nth % w)} ${y + Math.floor(nth / w)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
  expect(cells.filter(cell => Number(cell.split(' ')[0]) >= 24)).toEqual([])
})

test('each alert has a severity, a text, and a section of the documentation', () => {
  const headings = [...readText('docs/monitoring.md').matchAll(/^### (\w+)$/gm)].map(
    ([, name]) => name,
  )
  expect(rules.map(({ alert }) => alert)).toEqual(headings as string[])
  const tests = readText('docs/monitoring/alerts.test.yml')
  for (const { alert, for: wait, labels, annotations } of rules) {
    expect(wait).toMatch(/^\d+[mh]$/)
    expect(['critical', 'warning']).toContain(labels.severity)
    expect(annotations.description).toMatch(/\.$/)
    expect(annotations.runbook_url).toEndWith(`/docs/monitoring#${alert.toLowerCase()}`)
    expect(tests).toContain(`alertname="${alert}"`)
  }
})

test('the tests in which no alert fires have a value for every metric of the rules', () => {
  // Without a series, a rule is silent whatever it says.
  const [silent = ''] = readText('docs/monitoring/alerts.test.yml').split('- name: every alert')
  const names = new Set(rules.flatMap(({ expr }) => expr.match(/\b(tidings|nodejs)_\w+/g) ?? []))
  expect([...names].filter(name => !silent.includes(`'${name}{`))).toEqual([])
})

// Debian's package `prometheus` has both programs.
const withPrometheus = test.skipIf(!hasTool('prometheus') || !hasTool('promtool'))

withPrometheus.each([
  ['check', 'rules', 'alerts.yml'],
  ['check', 'config', 'prometheus.yml'],
  ['test', 'rules', 'alerts.test.yml'],
])('promtool %s %s accepts %s', (verb, kind, file) => {
  const { status, stdout, stderr } = spawnSync('promtool', [verb, kind, file], {
    cwd: FOLDER,
    encoding: 'utf8',
  })
  expect({ status, output: stdout + stderr }).toEqual({
    status: 0,
    output: expect.stringContaining('SUCCESS'),
  })
})

let deliveries: Deliveries
let server: Booted
let watched: FeedProject
let client: FeedClient
let prometheus: Prometheus
let target: string

beforeAll(async () => {
  deliveries = await openDeliveries()
  server = await boot(
    {
      databaseUrl: deliveries.databaseUrl,
      metricsPort: 0,
      quotas: { eventsPerMinute: 1_000, bytesPerDay: 1e9, channels: 1, webhooks: 1 },
    },
    { kinds: [createTestKind()] },
  )
  // The server registers them for an embedded Postgres, which takes seconds to start.
  registerDiskGauges(SCRATCH)
  watched = await newFeedProject(server)
  await addTarget(server.sql, watched.id)
  client = await openFeed(server.url, watched.member)
  await client.subscribe(watched.project)
  target = `127.0.0.1:${server.server.metricsPort}`
})

afterAll(async () => {
  await prometheus?.[Symbol.asyncDispose]()
  client.close()
  await server[Symbol.asyncDispose]()
  await deliveries[Symbol.asyncDispose]()
})

/** Sends events that are delivered and shown, and requests that are refused. */
async function makeTraffic(): Promise<void> {
  const { length } = await deliveries.ended(watched.id)
  await watched.postEvents(3)
  await client.seqs(3)
  await watched.post('/v1/events', { channelName: 'second', title: 'over the quota' })
  await fetch(`${server.url}/v1/me`, { headers: { authorization: 'Bearer nobody' } })
  const other = await openFeed(server.url, watched.member)
  other.close()
  await until(async () => (await deliveries.ended(watched.id)).length === length + 3)
}

withPrometheus('promtool check metrics accepts a scrape', async () => {
  await makeTraffic()
  const input = await (await fetch(`http://${target}/metrics`)).text()
  expect(input).toContain(
    'tidings_http_requests_total{method="POST",route="/v1/events",code="201"}',
  )
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input,
    encoding: 'utf8',
  })
  expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: '' })
})

withPrometheus(
  'Prometheus finds a value for every panel, and every metric of the rules',
  async () => {
    prometheus = await startPrometheus(target)
    const countScrapes = async () => {
      const [scrapes] = await prometheus.query('sum_over_time(up[1m])')
      return Number(scrapes?.value[1] ?? 0)
    }
    await until(async () => (await countScrapes()) > 0)
    await makeTraffic()
    const before = await countScrapes()
    await until(async () => (await countScrapes()) > before + 1)

    let results: { expr: string; samples: Awaited<ReturnType<Prometheus['query']>> }[] = []
    const findEmpty = () =>
      results.filter(({ samples }) => samples.length === 0).map(({ expr }) => expr)
    const isKnown = (expr: string) => [...EMPTY.keys()].some(name => expr.includes(name))
    // A failed scrape of a busy machine ends every series until the next one.
    await until(async () => {
      results = await Promise.all(
        expressions.map(async expr => ({ expr, samples: await prometheus.query(expr) })),
      )
      return findEmpty().every(isKnown)
    }, 10_000).catch(() => {})
    expect(findEmpty().filter(expr => !isKnown(expr))).toEqual([])
    const values = results.flatMap(({ expr, samples }) =>
      samples.map(({ value }) => `${expr} ${value[1]}`),
    )
    expect(values).toContainEqual(expect.stringMatching(/^sum by \(code\) .* 0\.\d+/))

    // Every metric of the rules exists, so that none is silent because of its name.
    const names = new Set(
      rules.flatMap(({ expr }) => expr.match(/\b(tidings|process|nodejs)_\w+/g) ?? []),
    )
    expect(names.size).toBeGreaterThan(15)
    let missing: string[] = []
    await until(async () => {
      const found = await Promise.all(
        [...names].map(async name => ((await prometheus.query(name)).length === 0 ? [name] : [])),
      )
      missing = found.flat().filter(name => !EMPTY.has(name))
      return missing.length === 0
    }, 10_000).catch(() => {})
    expect(missing).toEqual([])
    const states = await prometheus.listRules()
    expect(states.map(({ name }) => name)).toEqual(rules.map(({ alert }) => alert))
    expect(states.filter(({ health }) => health !== 'ok')).toEqual([])
  },
)
