import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'

export const registry = new Registry()

const BATCH_SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500]

export const requests = new Counter({
  name: 'tidings_http_requests_total',
  help: 'Answered HTTP requests.',
  labelNames: ['route', 'status'],
  registers: [registry],
})

const requestDuration = new Histogram({
  name: 'tidings_http_request_duration_seconds',
  help: 'Time from a request to its response.',
  labelNames: ['route'],
  buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
  registers: [registry],
})

export const admissionBatch = new Histogram({
  name: 'tidings_admission_batch_requests',
  help: 'Requests admitted in one statement.',
  buckets: BATCH_SIZES,
  registers: [registry],
})

export const appendBatch = new Histogram({
  name: 'tidings_append_batch_events',
  help: 'Events appended in one transaction.',
  buckets: BATCH_SIZES,
  registers: [registry],
})

export const quotaRefusals = new Counter({
  name: 'tidings_quota_refusals_total',
  help: 'Requests refused because of a quota of their organization, by quota.',
  labelNames: ['quota'],
  registers: [registry],
})

export const deliveryAttempts = new Counter({
  name: 'tidings_delivery_attempts_total',
  help: 'Delivery attempts, by kind and outcome.',
  labelNames: ['kind', 'outcome'],
  registers: [registry],
})

export const deliverySeconds = new Histogram({
  name: 'tidings_delivery_seconds',
  help: 'Time from the creation of an event to its delivery.',
  labelNames: ['kind'],
  buckets: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15, 60, 600, 3_600, 86_400],
  registers: [registry],
})

export const lostLeases = new Counter({
  name: 'tidings_delivery_leases_lost_total',
  help: 'Deliveries that lost their lease before their outcome was known.',
  labelNames: ['kind'],
  registers: [registry],
})

/** One value, or one for each value of a label. */
type GaugeReader =
  { read(): number } | { label: string; readEach: Readonly<Record<string, () => number>> }

/** Registers a gauge that is read at each scrape. It replaces an earlier gauge of the same name. */
export function registerGauge(name: string, help: string, reader: GaugeReader): void {
  registry.removeSingleMetric(name)
  new Gauge({
    name,
    help,
    labelNames: 'label' in reader ? [reader.label] : [],
    registers: [registry],
    collect() {
      if ('read' in reader) return this.set(reader.read())
      for (const [value, read] of Object.entries(reader.readEach)) {
        this.set({ [reader.label]: value }, read())
      }
    },
  })
}

let isServed = false

/**
 * Counts an answered request that started at `startedMs` (of `performance.now`). It does nothing
 * unless metrics are served.
 */
export function countRequest(route: string, status: number, startedMs: number): void {
  if (!isServed) return
  requests.inc({ route, status })
  requestDuration.observe({ route }, (performance.now() - startedMs) / 1000)
}

/** Starts counting requests, and adds the metrics of the process: memory, CPU, event loop. */
export function collectProcessMetrics(): void {
  isServed = true
  if (!registry.getSingleMetric('process_resident_memory_bytes'))
    collectDefaultMetrics({ register: registry })
}

export const feedHints = new Counter({
  name: 'tidings_feed_hints_total',
  help: 'Hints by result: NOTIFY statements sent, hints that shared one, and hints that were dropped.',
  labelNames: ['result'],
  registers: [registry],
})

export const feedLagSeconds = new Histogram({
  name: 'tidings_feed_lag_seconds',
  help: "Time from an event's createdAt to its publication to live sockets. createdAt is the database's time.",
  buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
  registers: [registry],
})

export const feedCloses = new Counter({
  name: 'tidings_feed_closes_total',
  help: 'Closed live sockets, by the reason for closing.',
  labelNames: ['reason'],
  registers: [registry],
})

export const feedReplayRows = new Counter({
  name: 'tidings_feed_replay_rows_total',
  help: 'Events read again for clients that had missed them.',
  registers: [registry],
})
