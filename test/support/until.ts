import { setTimeout as sleep } from 'node:timers/promises'

/** How many times slower than usual this machine is. `test/run.ts` measures it. */
const FACTOR = Number(process.env['TIDINGS_TEST_FACTOR'] ?? 1)

/** Returns a time limit in milliseconds for this machine from one for a machine of usual speed. */
export function scaled(ms: number): number {
  return ms * FACTOR
}

/** The first pause between two polls. Later ones are a tenth of the time that has passed. */
const MIN_PAUSE_MS = 10
const MAX_PAUSE_MS = 100

/**
 * Resolves once `condition` is true, polled every 10 ms, and after a second every 100 ms; throws
 * after `scaled(limitMs)`.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  limitMs = 30_000,
): Promise<void> {
  const startedMs = performance.now()
  while (!(await condition())) {
    const passedMs = performance.now() - startedMs
    if (passedMs > scaled(limitMs))
      throw new Error(`Not within ${scaled(limitMs)} ms: ${condition}`)
    // A poll can cost more processor time than the work that it waits for.
    await sleep(Math.min(Math.max(passedMs / 10, MIN_PAUSE_MS), MAX_PAUSE_MS))
  }
}
