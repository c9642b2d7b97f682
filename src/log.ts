import { configureSync, getLogger, jsonLinesFormatter } from '@logtape/logtape'
import type { Logger, LogLevel, LogRecord } from '@logtape/logtape'

export type Log = Logger
export const LOG_LEVELS = ['debug', 'info', 'warning', 'error'] as const

let lowestLevel: LogLevel = 'info'

/** Whether lines of the level `debug` are kept: making one for every request costs more than asking. */
export function isDebugging(): boolean {
  return lowestLevel === 'debug'
}

/** Sends every line of `level` and above to `write`, as one JSON object a line. Call it once. */
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

/** The logger of one part of the server, named as its folder: `logger('db')`. */
export function logger(part: string): Log {
  return getLogger(['tidings', part])
}
