import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'

export const registry = new Registry()

const BATCH_SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500]

export const requests = new Counter({
  name: 'tidings_http_requests_total',
  help: 'Answered requests.',
  labelNames: ['route', 'status'],
  registers: [registry],
})

export const requestSeconds = new Histogram({
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

/** A gauge that is read when somebody looks: a value for each label `of`. Asking again replaces its sources. */
export function gauge(
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

/** Adds the metrics of the process: memory, CPU, event loop. */
export function collectProcessMetrics(): void {
  if (!registry.getSingleMetric('process_resident_memory_bytes'))
    collectDefaultMetrics({ register: registry })
}
