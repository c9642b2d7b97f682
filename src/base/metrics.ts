import { Counter, Gauge, Histogram, collectDefaultMetrics, register as registry } from 'prom-client'
import { RUNTIME } from './platform.ts'
import { REVISION, VERSION } from './version.ts'

export { registry }

const BATCH_SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500]
/** They include the aims of 25 ms for a page and of 250 ms beside a hostile organization. */
const LATENCIES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
/** Clients choose the method, so others share one label value. */
const METHODS = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'])
/** Gauges of prom-client whose names end as those of counters. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

const requests = new Counter({
  name: 'tidings_http_requests_total',
  help: 'Answered requests to /v1 and /api, by method, pattern of the route, and status code.',
  labelNames: ['method', 'route', 'code'],
})

const requestDuration = new Histogram({
  name: 'tidings_http_request_duration_seconds',
  help: 'Time from a request to /v1 or /api to its response, by method and pattern of the route.',
  labelNames: ['method', 'route'],
  buckets: LATENCIES,
})

export const httpErrors = new Counter({
  name: 'tidings_http_errors_total',
  help: 'Requests to /v1 and /api that were answered with an error, by its reason.',
  labelNames: ['reason'],
})

const poolWaits = new Histogram({
  name: 'tidings_database_pool_wait_seconds',
  help: 'Time that work waited for a connection of a pool.',
  labelNames: ['pool'],
  buckets: [0.001, 0.005, 0.025, 0.1, 0.25, 1, 5],
})

export const admissionBatch = new Histogram({
  name: 'tidings_admission_batch_requests',
  help: 'Requests admitted in one statement.',
  buckets: BATCH_SIZES,
})

export const appendBatch = new Histogram({
  name: 'tidings_append_batch_events',
  help: 'Events appended in one transaction.',
  buckets: BATCH_SIZES,
})

export const quotaRefusals = new Counter({
  name: 'tidings_quota_refusals_total',
  help: 'Requests refused because of a quota of their organization, by quota.',
  labelNames: ['quota'],
})

export const deliveryAttempts = new Counter({
  name: 'tidings_delivery_attempts_total',
  help: 'Delivery attempts, by kind and outcome.',
  labelNames: ['kind', 'outcome'],
})

export const deliverySeconds = new Histogram({
  name: 'tidings_delivery_seconds',
  help: 'Time from the creation of an event to its delivery.',
  labelNames: ['kind'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 600, 3_600, 86_400],
})

export const lostLeases = new Counter({
  name: 'tidings_delivery_leases_lost_total',
  help: 'Deliveries that lost their lease before their outcome was known.',
  labelNames: ['kind'],
})

export const feedHints = new Counter({
  name: 'tidings_feed_hints_total',
  help: 'Hints by result: NOTIFY statements sent, hints that shared one, and hints that were dropped.',
  labelNames: ['result'],
})

export const feedLagSeconds = new Histogram({
  name: 'tidings_feed_lag_seconds',
  help: "Time from an event's createdAt to its publication to live sockets. createdAt is the database's time.",
  buckets: LATENCIES,
})

export const feedCloses = new Counter({
  name: 'tidings_feed_closes_total',
  help: 'Closed live sockets, by the reason for closing.',
  labelNames: ['reason'],
})

export const feedReplayRows = new Counter({
  name: 'tidings_feed_replay_rows_total',
  help: 'Events read again for clients that had missed them.',
})

type Awaitable<Value> = Value | Promise<Value>
type Readings = Readonly<Record<string, number>>

/** One value, or one for each value of a label. Undefined leaves the gauge out of the scrape. */
type GaugeReader =
  | { read(): Awaitable<number | undefined> }
  | { label: string; readEach(): Awaitable<Readings | undefined> }

/**
 * Registers a gauge that is read at each scrape. It replaces an earlier gauge of the same name. A
 * gauge whose reader throws is left out of the scrape, which must not fail.
 */
export function registerGauge(name: string, help: string, reader: GaugeReader): void {
  registry.removeSingleMetric(name)
  new Gauge({
    name,
    help,
    labelNames: 'label' in reader ? [reader.label] : [],
    async collect() {
      if ('read' in reader) {
        const value = await orUndefined(reader.read)
        return value === undefined ? this.remove() : this.set(value)
      }
      const readings = (await orUndefined(reader.readEach)) ?? {}
      this.reset()
      for (const [value, reading] of Object.entries(readings)) {
        this.set({ [reader.label]: value }, reading)
      }
    },
  })
}

async function orUndefined<Value>(read: () => Awaitable<Value>): Promise<Value | undefined> {
  try {
    return await read()
  } catch {
    return undefined
  }
}

let isServed = false

/**
 * Counts an answered request that started at `startedMs` (of `performance.now`). It does nothing
 * unless metrics are served.
 */
export function countRequest(
  { method, route, startedMs }: { method: string; route: string; startedMs: number },
  status: number,
): void {
  if (!isServed) return
  const labels = { method: toMethod(method), route }
  requests.inc({ ...labels, code: status })
  requestDuration.observe(labels, (performance.now() - startedMs) / 1000)
}

function toMethod(method: string): string {
  return METHODS.has(method) ? method : 'other'
}

/** Returns the function that records how long work waited for a connection of a pool. */
export function createWaitObserver(pool: string): (waitedMs: number) => void {
  const waits = poolWaits.labels({ pool })
  return waitedMs => {
    if (isServed) waits.observe(waitedMs / 1000)
  }
}

/** Starts counting requests, and adds the metrics of the process: memory, CPU, event loop. */
export function collectProcessMetrics(): void {
  isServed = true
  if (registry.getSingleMetric('process_resident_memory_bytes')) return
  collectDefaultMetrics()
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  const [runtime = '', runtime_version = ''] = RUNTIME.toLowerCase().split(' ')
  const labels = {
    version: VERSION,
    revision: REVISION,
    runtime,
    runtime_version,
    platform: `${process.platform}-${process.arch}`,
  }
  new Gauge({
    name: 'tidings_build_info',
    help: 'Always 1. Its labels describe the program that this server runs.',
    labelNames: Object.keys(labels),
  }).set(labels, 1)
}
