import { setTimeout as sleep } from 'node:timers/promises'

/** How many times slower than usual this machine is. `test/run.ts` measures it. */
const FACTOR = Number(process.env['TIDINGS_TEST_FACTOR'] ?? 1)

/** Returns a time limit in milliseconds for this machine from one for a machine of usual speed. */
export function scaled(ms: number): number {
  return ms * FACTOR
}

/** Resolves once `condition` is true, polled every 10 ms; throws after `scaled(limitMs)`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  limitMs = 30_000,
): Promise<void> {
  const deadline = performance.now() + scaled(limitMs)
  while (!(await condition())) {
    if (performance.now() > deadline)
      throw new Error(`Not within ${scaled(limitMs)} ms: ${condition}`)
    await sleep(10)
  }
}
