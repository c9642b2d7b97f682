import { spawnSync } from 'node:child_process'

/** Measured on two idle cores of 2024. */
const REFERENCE_MS = 25
const SAMPLES = 5
/** A slower machine is told so, not waited for. */
const MAX_FACTOR = 10

/**
 * Measures how many times slower than usual this machine is now, at least 1: by the start of a
 * process, and by `query`.
 */
export async function measureSpeed(query: () => Promise<unknown>): Promise<number> {
  const samples: number[] = []
  for (let nth = 0; nth < SAMPLES; nth++) {
    const startedMs = performance.now()
    spawnSync(process.execPath, ['-e', '0'])
    await query()
    samples.push(performance.now() - startedMs)
  }
  const [middle = REFERENCE_MS] = samples.toSorted((a, b) => a - b).slice(SAMPLES >> 1)
  return Math.min(Math.max(middle / REFERENCE_MS, 1), MAX_FACTOR)
}
