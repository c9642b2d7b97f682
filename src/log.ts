import { configureSync, getLogger, jsonLinesFormatter } from '@logtape/logtape'
import type { Logger, LogLevel, LogRecord } from '@logtape/logtape'

export type Log = Logger
export const LOG_LEVELS = ['debug', 'info', 'warning', 'error'] as const

let lowestLevel: LogLevel = 'info'

/**
 * Returns true when `debug` lines are logged. Building a line per request costs more than this
 * check.
 */
export function isDebugging(): boolean {
  return lowestLevel === 'debug'
}

/** Writes log lines of `level` and above with `write`, each as a JSON object. Call it once. */
export function configureLog(level: LogLevel, write: (line: string) => void): void {
  lowestLevel = level
  configureSync({
    reset: true,
    sinks: { lines: (record: LogRecord) => write(jsonLinesFormatter(record)) },
    loggers: [
      { category: 'tidings', lowestLevel: level, sinks: ['lines'] },
      { category: ['logtape', 'meta'], lowestLevel: 'error', sinks: ['lines'] },
    ],
  })
}

/** Returns the logger of one part of the server, usually a folder: `logger('db')`. */
export function logger(part: string): Log {
  return getLogger(['tidings', part])
}
