import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'

export const registry = new Registry()

const BATCH_SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500]

export const requests = new Counter({
  name: 'tidings_http_requests_total',
  help: 'Answered requests.',
  labelNames: ['route', 'status'],
  registers: [registry],
})

const requestSeconds = new Histogram({
  name: 'tidings_http_request_seconds',
  help: 'Time from a request to its answer.',
  labelNames: ['route'],
  buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
  registers: [registry],
})

export const admissionBatch = new Histogram({
  name: 'tidings_admission_batch_requests',
  help: 'Requests that were admitted in one statement.',
  buckets: BATCH_SIZES,
  registers: [registry],
})

export const appendBatch = new Histogram({
  name: 'tidings_append_batch_events',
  help: 'Events that were appended in one transaction.',
  buckets: BATCH_SIZES,
  registers: [registry],
})

export const deliveryAttempts = new Counter({
  name: 'tidings_delivery_attempts_total',
  help: 'Attempts of deliveries, by what came of them.',
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
  help: 'Deliveries whose lease was lost before their outcome was known.',
  labelNames: ['kind'],
  registers: [registry],
})

/** Registers a gauge that is read on each scrape, with a value for each label `of`. It replaces an earlier one. */
export function registerGauge(
  name: string,
  help: string,
  read: Readonly<Record<string, () => number>>,
): void {
  registry.removeSingleMetric(name)
  new Gauge({
    name,
    help,
    labelNames: ['of'],
    registers: [registry],
    collect() {
      for (const [of, readOne] of Object.entries(read)) this.set({ of }, readOne())
    },
  })
}

let isServed = false

/** Counts an answered request; `startedMs` is of `performance.now`. It costs a microsecond, where nobody reads it none. */
export function countRequest(route: string, status: number, startedMs: number): void {
  if (!isServed) return
  requests.inc({ route, status })
  requestSeconds.observe({ route }, (performance.now() - startedMs) / 1000)
}

/** Starts to count requests, and adds the metrics of the process: memory, CPU, event loop. */
export function collectProcessMetrics(): void {
  isServed = true
  if (!registry.getSingleMetric('process_resident_memory_bytes'))
    collectDefaultMetrics({ register: registry })
}

export const feedHints = new Counter({
  name: 'tidings_feed_hints_total',
  help: 'NOTIFY statements sent, and hints that shared one or were dropped.',
  labelNames: ['of'],
  registers: [registry],
})

export const feedLagSeconds = new Histogram({
  name: 'tidings_feed_lag_seconds',
  help: "Time from an event's createdAt, by the database's clock, to its publication to live sockets.",
  buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
  registers: [registry],
})

export const feedCloses = new Counter({
  name: 'tidings_feed_closes_total',
  help: 'Closed live sockets by what ended them.',
  labelNames: ['of'],
  registers: [registry],
})

export const feedReplayRows = new Counter({
  name: 'tidings_feed_replay_rows_total',
  help: 'Events that were read for clients that had missed them.',
  registers: [registry],
})
