import { readdirSync, readFileSync } from 'node:fs'
import type { Sql } from '../../src/database/sql.ts'

/** The length of a clock tick in /proc, in ms. */
const TICK_MS = 10

/** Reads the processor time of a whole Postgres, in ms. It needs /proc, and is NaN without it. */
export async function openPostgresClock(sql: Sql): Promise<() => number> {
  const [row] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`
  const postmaster = readTimes(row.pid)?.parent
  return () => (postmaster === undefined ? NaN : readProcessorMs(postmaster))
}

/**
 * Reads the processor time of a process and its children, in ms. It needs /proc, and is NaN without
 * it.
 */
export function readProcessorMs(pid: number): number {
  const times = readTimes(pid)
  if (!times) return NaN
  // Children that have ended count towards their parent.
  let sumMs = times.ownMs + times.endedMs
  for (const name of readdirSync('/proc')) {
    const one = /^\d+$/.test(name) ? readTimes(Number(name)) : undefined
    if (one && one.parent === pid) sumMs += one.ownMs
  }
  return sumMs
}

/** Returns the processor time of a process, and of its children that have ended. */
function readTimes(pid: number): { parent: number; ownMs: number; endedMs: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [parent = 0, user = 0, system = 0, endedUser = 0, endedSystem = 0] = [
      fields[1],
      ...fields.slice(11, 15),
    ]
    const ownMs = (user + system) * TICK_MS
    return { parent, ownMs, endedMs: (endedUser + endedSystem) * TICK_MS }
  } catch {
    return undefined
  }
}
