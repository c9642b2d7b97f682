import { readFileSync } from 'node:fs'
import { listRunning } from '../support/leftovers.ts'

const PERIOD_MS = 3_000
const PAGE_BYTES = 4_096

/**
 * Watches the memory of this process and of all processes that work in `folder`. Shared memory
 * counts once: as much as one of them has of it. Returns a function that ends the watch and returns
 * the peak in bytes; undefined on systems without /proc.
 */
export function watchMemory(folder: string): () => number | undefined {
  let peak: number | undefined
  const timer = setInterval(() => {
    const pids = [process.pid, ...listRunning(folder).map(({ pid }) => pid)]
    const all = pids.map(readPages)
    const own = all.reduce((sum, { resident, shared }) => sum + resident - shared, 0)
    const pages = own + Math.max(...all.map(({ shared }) => shared))
    if (pages > 0) peak = Math.max(peak ?? 0, pages * PAGE_BYTES)
  }, PERIOD_MS)
  return () => {
    clearInterval(timer)
    return peak
  }
}

/** A process that has ended has none. The exact figures of smaps_rollup take 25 times as long. */
function readPages(pid: number): { resident: number; shared: number } {
  try {
    const [, resident = 0, shared = 0] = readFileSync(`/proc/${pid}/statm`, 'utf8')
      .split(' ')
      .map(Number)
    return { resident, shared }
  } catch {
    return { resident: 0, shared: 0 }
  }
}
