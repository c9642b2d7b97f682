import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Measured on two idle cores of 2024: a start of a process, and a query. */
const START_MS = 13
const QUERY_MS = 12
const SAMPLES = 5
const EVERY_MS = 60_000
/** The factor falls after this many measurements, and rises at once. */
const KEPT = 3
/** A slower machine is told so, not waited for. */
const MAX_FACTOR = 10

/** Watches how many times slower than usual this machine is, at least 1. */
export interface Speed {
  /** Returns the greatest factor of the last minutes. A measurement that lasts counts already. */
  factor(): number
  stop(): Promise<void>
}

/** Measures the factor now, by the start of a process. */
export async function measureStart(samples = SAMPLES): Promise<number> {
  return toFactor(await takeMiddle(startProcess, samples), START_MS)
}

/**
 * Measures now, and then each minute beside the tests: the start of a process, and `query`. Passes
 * each new factor to `onChange`.
 */
export async function watchSpeed(
  query: () => Promise<unknown>,
  onChange: (factor: number) => void,
  everyMs = EVERY_MS,
): Promise<Speed> {
  const work = async () => {
    await startProcess()
    await query()
  }
  const measured: number[] = []
  let sinceMs: number | undefined
  const factor = () => {
    const lasts = sinceMs === undefined ? 1 : (performance.now() - sinceMs) / (START_MS + QUERY_MS)
    return Math.max(...measured, Math.min(lasts / SAMPLES, MAX_FACTOR))
  }
  const measure = async () => {
    sinceMs = performance.now()
    const middleMs = await takeMiddle(work, SAMPLES)
    sinceMs = undefined
    measured.push(toFactor(middleMs, START_MS + QUERY_MS))
    measured.splice(0, measured.length - KEPT)
    onChange(factor())
  }
  // The first query connects.
  await work()
  await measure()
  let running = Promise.resolve()
  const timer = setInterval(() => {
    if (sinceMs === undefined) running = measure()
  }, everyMs)
  return {
    factor,
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}

const toFactor = (ms: number, usualMs: number) => Math.min(Math.max(ms / usualMs, 1), MAX_FACTOR)

async function takeMiddle(work: () => Promise<unknown>, samples: number): Promise<number> {
  const tookMs: number[] = []
  for (let nth = 0; nth < samples; nth++) {
    const startedMs = performance.now()
    await work()
    tookMs.push(performance.now() - startedMs)
  }
  return tookMs.toSorted((a, b) => a - b)[samples >> 1] ?? 0
}

async function startProcess(): Promise<void> {
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'close')
}
