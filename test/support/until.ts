import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves once `condition` is true, polled every 10 ms; throws after `timeoutMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 30_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Not within ${timeoutMs} ms: ${condition}`)
    await sleep(10)
  }
}
