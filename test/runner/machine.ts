import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { isRunning } from '../support/leftovers.ts'

/** The work of the machine now. */
export interface Pressure {
  /** The processes that run or wait for a processor, for each core. */
  load: number
  /** The part of the last 10 s in which something waited for memory, from 0 to 1. */
  memory: number
}

/** Above this load for each core, a further batch only makes the others slower. */
const MAX_LOAD = 2
const MAX_MEMORY = 0.1
const EVERY_MS = 1_000
/** A mean over about this many samples. */
const SAMPLES = 10

/** How much may run side by side, as the pressure on this machine allows. */
export interface Room {
  /** Returns the capacity now, from `step` to `max`. */
  capacity(): number
  stop(): void
}

/** Watches the pressure. Ten seconds of too much take a `step`, and ten of rest add one. */
export function watchRoom(max: number, step: number, read = createPressureReader()): Room {
  let capacity = max
  const timer = setInterval(() => {
    capacity = adjust(capacity, read(), { max, step })
  }, EVERY_MS)
  return { capacity: () => Math.round(capacity), stop: () => clearInterval(timer) }
}

/**
 * Returns the next capacity at this pressure. Load leaves half of it, a batch for each core, so
 * that the run gets on beside other programs. Memory leaves one batch.
 */
export function adjust(
  capacity: number,
  { load, memory }: Pressure,
  { max, step }: { max: number; step: number },
): number {
  const change = step / SAMPLES
  if (memory > MAX_MEMORY) return Math.max(capacity - change, step)
  if (load <= MAX_LOAD) return Math.min(capacity + change, max)
  return Math.min(Math.max(capacity - change, max / 2), capacity)
}

/** Without /proc/pressure, memory counts as free. */
function createPressureReader(): () => Pressure {
  const cores = availableParallelism()
  let running: number | undefined
  return () => {
    // Unlike the mean of a minute, this follows the end of a batch at once.
    const now = / (\d+)\//.exec(tryRead('/proc/loadavg'))?.[1]
    const sample = now === undefined ? (loadavg()[0] ?? 0) : Number(now)
    running = running === undefined ? sample : running + (sample - running) / SAMPLES
    const memory = /^some avg10=([\d.]+)/.exec(tryRead('/proc/pressure/memory'))?.[1]
    return { load: running / cores, memory: Number(memory ?? 0) / 100 }
  }
}

/** Returns the average load of the last minute; undefined on systems without /proc. */
export function readLoad(): string | undefined {
  return tryRead('/proc/loadavg').split(' ')[0] || undefined
}

/** Processor time in seconds since a start. */
export interface ProcessorTime {
  /** The time of this process, of those that it waited for, and of Postgres. */
  ownS: number
  /** The part of all processors that was busy, with other programs too, from 0 to 1. */
  busy: number
}

/** Starts to count; undefined on systems without /proc. */
export function countProcessorTime(): () => ProcessorTime | undefined {
  const [own, machine] = [readOwn(), readMachine()]
  return () => {
    const now = readMachine()
    if (!machine || !now) return undefined
    const all = now.all - machine.all
    return { ownS: readOwn() - own, busy: (all - (now.idle - machine.idle)) / Math.max(all, 1) }
  }
}

/** In seconds. A process that nobody waited for is missing. */
function readOwn(): number {
  const ticks = [process.pid, ...listPostmasters()].map(pid => {
    const stat = tryRead(`/proc/${pid}/stat`)
    const fields = stat.slice(stat.lastIndexOf(')')).split(' ')
    return fields.slice(12, 16).reduce((sum, field) => sum + Number(field), 0)
  })
  return ticks.reduce((sum, one) => sum + one, 0) / 100
}

/** Returns the Postgres that all files share: it is a child of this process. */
function listPostmasters(): number[] {
  try {
    return readdirSync('/proc')
      .filter(name => /^\d+$/.test(name) && isRunning(Number(name)))
      .map(Number)
      .filter(pid => {
        const stat = tryRead(`/proc/${pid}/stat`)
        const parent = stat.slice(stat.lastIndexOf(')')).split(' ')[2]
        return stat.includes('(postgres)') && Number(parent) === process.pid
      })
  } catch {
    return []
  }
}

function readMachine(): { all: number; idle: number } | undefined {
  const fields = /^cpu +(.*)$/m.exec(tryRead('/proc/stat'))?.[1]?.split(' ').map(Number)
  if (!fields) return undefined
  // The seventh and eighth are those of guests, which the first two contain.
  return {
    all: fields.slice(0, 8).reduce((sum, field) => sum + field, 0),
    idle: (fields[3] ?? 0) + (fields[4] ?? 0),
  }
}

function tryRead(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
