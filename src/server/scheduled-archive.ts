import { spawn } from 'node:child_process'
import type { ArchiveSettings } from '../base/config/archive.ts'
import { toReason } from '../base/errors.ts'
import { logger } from '../base/log.ts'
import { startLoop, type Loop } from '../base/loop.ts'
import { registerGauge } from '../base/metrics.ts'
import { isClockUntrusted } from '../database/clock.ts'
import type { Pool } from '../database/pool.ts'
import { readSize } from '../log/archive/files.ts'
import { readLastRun } from '../log/archive/runs.ts'
import { isDue, toKnownTime, type LastTime } from './schedule.ts'

const log = logger('archive')
const EVERY_MS = 30_000
const STOP_MS = 10_000
const MAX_OUTPUT = 2_000

/** The command line of this program, without the name of a command. */
export type SelfCommand = readonly [command: string, ...words: string[]]

export interface ScheduledArchiveOptions {
  pool: Pool
  settings: ArchiveSettings
  command: SelfCommand
  /** The DATA_DIR of the server, if it is set. */
  dataDir: string | undefined
}

interface Figures {
  succeededAt: Date | null
  events: number
}

/**
 * Runs `tidings archive` every day in a process of its own, because writing Parquet would delay the
 * requests of this one. A run that was missed, and the first one, begins at once. Of several
 * servers, one process works, and the others end at once.
 */
export function startScheduledArchive(options: ScheduledArchiveOptions): Loop {
  const { pool, settings } = options
  let figures: Figures | undefined
  /** The last start of this process. One that fails before it records a run is retried later. */
  let started: LastTime | undefined

  async function note(): Promise<void> {
    const { succeeded_at: succeededAt = null } = (await pool.run(readLastRun)) ?? {}
    const known = toKnownTime(succeededAt, new Date())
    figures = { succeededAt: known, events: (await pool.run(readSize)).events }
  }

  async function check(signal: AbortSignal): Promise<void> {
    // A run can take hours, and the first one can fail to end.
    await note()
    if (await isClockUntrusted(pool)) return
    const now = new Date()
    const last = await pool.run(readLastRun)
    if (isDue(last, settings, now) && (!started || isDue(started, settings, now))) {
      started = { attempted_at: now, succeeded_at: null }
      await runCommand(options, signal)
    }
    await note()
  }
  registerGauge(
    'tidings_archive_last_run_timestamp_seconds',
    'When the last complete run of the archive ended, in Unix time. 0 if none did.',
    { read: () => figures && (figures.succeededAt?.getTime() ?? 0) / 1000 },
  )
  registerGauge('tidings_archive_events', 'Events in the archive.', {
    read: () => figures?.events,
  })
  return startLoop({
    everyMs: EVERY_MS,
    runsAtOnce: true,
    round: check,
    onFailure: reason => log.warning('The schedule of the archive failed: {reason}', { reason }),
  })
}

/** Runs the command until it ends. The signal ends it after its current step, or within 10 s. */
async function runCommand(
  { command: [command, ...words], dataDir }: ScheduledArchiveOptions,
  signal: AbortSignal,
): Promise<void> {
  const child = spawn(command, [...words, 'archive', '--json'], {
    env: { ...process.env, ...(dataDir !== undefined && { DATA_DIR: dataDir }) },
    stdio: ['ignore', 'ignore', 'pipe'],
    // Ctrl-C at the terminal must reach only this process, which stops the command.
    detached: true,
  })
  let output = ''
  child.stderr.on('data', (data: Buffer) => (output = `${output}${data}`.slice(-MAX_OUTPUT)))
  let killing: ReturnType<typeof setTimeout> | undefined
  const stop = () => {
    child.kill('SIGTERM')
    // A run can end at any moment, and the next one continues.
    killing = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  }
  signal.addEventListener('abort', stop)
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  child.once('error', error => resolve(toReason(error)))
  child.once('close', code => resolve(code === 0 ? undefined : output.trim()))
  const problem = await promise
  clearTimeout(killing)
  signal.removeEventListener('abort', stop)
  if (problem !== undefined && !signal.aborted) {
    log.error('A run of the archive failed and will be retried: {problem}', { problem })
  }
}
