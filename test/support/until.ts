import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SHARED } from './scratch.ts'

/** The file with the factor of the machine, which `test/run.ts` writes at each measurement. */
export const FACTOR_FILE = join(SHARED, 'factor')
/** The factor at the start of this process. */
const FACTOR = Number(process.env['TIDINGS_TEST_FACTOR'] ?? 1)

/**
 * Returns a time limit in milliseconds for this machine, as it is now, from one for a machine of
 * usual speed.
 */
export function scaled(ms: number): number {
  return ms * Math.max(FACTOR, readFactor())
}

function readFactor(): number {
  try {
    return Number(readFileSync(FACTOR_FILE, 'utf8')) || 1
  } catch {
    return 1
  }
}

/**
 * Returns a function that returns the seconds since now, rounded up a little: so much less may be
 * left of a time that began before.
 */
export function countSeconds(): () => number {
  const startedMs = performance.now()
  return () => (performance.now() - startedMs) / 1_000 + 0.1
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
    if (passedMs > scaled(limitMs)) throw new Error(`Not within ${passedMs} ms: ${condition}`)
    // A poll can cost more processor time than the work that it waits for.
    await sleep(Math.min(Math.max(passedMs / 10, MIN_PAUSE_MS), MAX_PAUSE_MS))
  }
}
