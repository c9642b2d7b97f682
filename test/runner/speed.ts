import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Measured on two idle cores of 2024: a start of a process, and a query. */
const START_MS = 13
const QUERY_MS = 12
const SAMPLES = 5
/** The processor time of a loop. Unlike a short start, it shows what other programs leave. */
const LOOP_MS = 100
const LOOP = `
  const startedMs = performance.now()
  for (let used = 0; used < ${LOOP_MS}; ) {
    const { user, system } = process.cpuUsage()
    used = (user + system) / 1_000
  }
  console.log((performance.now() - startedMs) / ${LOOP_MS})`
const USUAL_MS = SAMPLES * (START_MS + QUERY_MS) + START_MS + LOOP_MS
const EVERY_MS = 60_000
/** The factor falls after this many measurements, and rises at once. */
const KEPT = 3
/** A slower machine is told so, not waited for. */
const MAX_FACTOR = 10

/** How many times slower than usual this machine is, at least 1. */
export interface Speed {
  /** Returns the greatest factor of the last minutes. A measurement that lasts counts already. */
  factor(): number
  stop(): Promise<void>
}

/** Measures the factor now, by starts of processes. */
export async function measureStart(): Promise<number> {
  return toFactor((await takeMiddle(startProcess)) / START_MS, await measureShare())
}

/**
 * Measures now, and then each minute beside the tests: `work`, which starts a process and makes a
 * query, and the share of the processors. Passes each new factor to `onChange`. Nothing runs beside
 * the first measurement, which counts `beside` times in place of that.
 */
export async function watchSpeed(
  work: () => Promise<unknown>,
  onChange: (factor: number) => void,
  { everyMs = EVERY_MS, beside = 1, takeShare = measureShare } = {},
): Promise<Speed> {
  const measured: number[] = []
  let sinceMs: number | undefined
  const factor = () => {
    const lasts = sinceMs === undefined ? 1 : (performance.now() - sinceMs) / USUAL_MS
    return Math.max(...measured, Math.min(lasts, MAX_FACTOR))
  }
  const measure = async (times = 1) => {
    sinceMs = performance.now()
    const middleMs = await takeMiddle(work)
    measured.push(toFactor(middleMs / (START_MS + QUERY_MS), times * (await takeShare())))
    sinceMs = undefined
    measured.splice(0, measured.length - KEPT)
    onChange(factor())
  }
  // The first query connects.
  await work()
  await measure(beside)
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

/** Combines how slow the machine is with how long a process waits for it. */
function toFactor(slowness: number, share: number): number {
  return Math.min(Math.max(slowness, 1) * share, MAX_FACTOR)
}

async function takeMiddle(work: () => Promise<unknown>): Promise<number> {
  const tookMs: number[] = []
  for (let nth = 0; nth < SAMPLES; nth++) {
    const startedMs = performance.now()
    await work()
    tookMs.push(performance.now() - startedMs)
  }
  return tookMs.toSorted((a, b) => a - b)[SAMPLES >> 1] ?? 0
}

/**
 * Returns how many times longer a loop lasts than its processor time, at least 1. Like the tests,
 * it is a child of this process: the system can share processors by sessions.
 */
async function measureShare(): Promise<number> {
  const child = spawn(process.execPath, ['-e', LOOP], { stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await once(child, 'close')
  return Math.max(Number(output), 1) || 1
}

export async function startProcess(): Promise<void> {
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'close')
}
