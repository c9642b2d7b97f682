import { readFileSync } from 'node:fs'
import { listRunning } from '../support/leftovers.ts'

const PERIOD_MS = 3_000

/**
 * Watches the memory of this process and of all processes that work in `folder`. Shared memory
 * counts once. Returns a function that ends the watch and returns the peak in bytes; undefined on
 * systems without /proc.
 */
export function watchMemory(folder: string): () => number | undefined {
  let peak: number | undefined
  const timer = setInterval(() => {
    const pids = [process.pid, ...listRunning(folder).map(({ pid }) => pid)]
    const sum = pids.reduce((total, pid) => total + readMemory(pid), 0)
    if (sum > 0) peak = Math.max(peak ?? 0, sum)
  }, PERIOD_MS)
  return () => {
    clearInterval(timer)
    return peak
  }
}

/** Returns the proportional set size in bytes; 0 of a process that has ended. */
function readMemory(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1_024
  } catch {
    return 0
  }
}
